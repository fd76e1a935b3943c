/* Prometheus text of any bytes: samples lie within it, labels within their sample. */
#include "profile/metrics_text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *at = (const char *)data, *end = at + size, *before = at;
    att_metrics_sample_t s;
    while (att_metrics_text_next(&at, end, &s)) {
        if (at <= before || at > end || s.name < before || s.name_length == 0 ||
            s.name + s.name_length > at)
            abort();
        if (s.labels_length > 0 && (s.labels < before || s.labels + s.labels_length > at))
            abort();
        const char *label = s.labels;
        char value[8];
        while (s.labels_length > 0 &&
               att_metrics_label_next(&label, s.labels + s.labels_length, value, sizeof value))
            if (label > s.labels + s.labels_length || strlen(value) >= sizeof value)
                abort();
        before = at;
    }
    return 0;
}
