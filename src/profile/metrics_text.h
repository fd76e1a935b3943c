/*
 * metrics text: reads samples out of Prometheus text. For what attune itself writes
 * (profile/metrics.h); lines that are no samples of this form are passed over.
 */
#ifndef ATT_PROFILE_METRICS_TEXT_H
#define ATT_PROFILE_METRICS_TEXT_H

#include <stddef.h>

/* One sample; the pointers lead into the text. */
typedef struct att_metrics_sample {
    const char *name;
    size_t name_length;
    const char *labels; /* what stands between the braces, escapes and all */
    size_t labels_length;
    double value;
} att_metrics_sample_t;

/* The next sample after *at, which moves behind its line. 1, or 0 at the end. */
int att_metrics_text_next(const char **at, const char *end, att_metrics_sample_t *sample);
/* The next label's value after *at within the labels, with its quotes and escapes taken off, cut to
 * `size`. 1, or 0 at the end or where it is malformed. */
int att_metrics_label_next(const char **at, const char *end, char *value, size_t size);

#endif
