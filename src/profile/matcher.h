/*
 * matcher: puts the records of one collective together, over ranks.
 *
 * A collective is named by its task (communicator, collective, bytes) and the call's number there,
 * which counts from the communicator's start on every rank, recorded or not: so windows that begin
 * and end elsewhere on each rank, or have holes, still match. What has no partner, comes twice, or
 * disagrees on NCCL's own sequence number is counted, never guessed.
 */
#ifndef ATT_PROFILE_MATCHER_H
#define ATT_PROFILE_MATCHER_H

#include "profile/window.h"

/* One collective: an event a rank, by rank. `expected` of them, of the ranks that were recorded. */
typedef void (*att_match_fn)(void *context, const att_trace_event_t *const *ranks, uint32_t count);

typedef struct att_match_counts {
    uint64_t collectives, matched; /* matched: records */
    uint64_t unmatched;            /* records whose partners were not recorded */
    uint64_t twice, disagree;      /* records, not used */
} att_match_counts_t;

struct att_matcher;

/* Of the selected members (NULL: all). The catalog must outlive it. */
int att_matcher_create(const att_catalog_t *catalog, const bool *members, att_match_fn each,
                       void *context, struct att_matcher **matcher);
void att_matcher_destroy(struct att_matcher *matcher); /* NULL is fine */
/* Events of the next window, in order of start. Incomplete collectives wait for two windows more.
 * Complete ones come out in order of their last arrival. 0 or -ATT_ENOMEM. */
int att_matcher_add(struct att_matcher *matcher, const att_trace_event_t *events, size_t count);
/* No more windows: what is incomplete is unmatched. */
int att_matcher_finish(struct att_matcher *matcher);
/* Per group of the catalog. */
const att_match_counts_t *att_matcher_counts(const struct att_matcher *matcher, uint32_t group);
/* Ranks of a group that take part. */
uint32_t att_matcher_expected(const struct att_matcher *matcher, uint32_t group);

#endif
