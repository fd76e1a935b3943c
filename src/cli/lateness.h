/*
 * lateness: straggler analysis of all communicators of a trace (profile/straggler.h has the rules),
 * read window by window.
 */
#ifndef ATT_CLI_LATENESS_H
#define ATT_CLI_LATENESS_H

#include "cli/trace_select.h"
#include "profile/matcher.h"
#include "profile/straggler.h"

typedef struct att_lateness_group {
    uint32_t group; /* of the catalog */
    struct att_straggler *straggler;
    uint32_t *ranks;  /* straggler's rank -> rank of the group */
    uint32_t *places; /* straggler's rank -> place of the catalog */
    uint32_t rank_count;
    att_match_counts_t counts;
    double uncertainty_ns; /* median over steps */
} att_lateness_group_t;

typedef struct att_lateness {
    att_lateness_group_t *groups; /* those with at least one step */
    uint32_t group_count;
} att_lateness_t;

/* -ATT_EMISMATCH: clocks are not tied together. */
int att_lateness_make(const struct att_trace *trace, const att_trace_choice_t *choice,
                      att_lateness_t *lateness, att_error_t *error);
void att_lateness_free(att_lateness_t *lateness);

/* What the ranks of a node come to. */
typedef struct att_lateness_node {
    uint64_t last, named;
    double wait_caused_ns, waited_ns;
} att_lateness_node_t;

/* By node of the catalog; the caller frees it. NULL: no memory. */
att_lateness_node_t *att_lateness_nodes(const struct att_trace *trace,
                                        const att_lateness_t *lateness);

/* Iteration that a rank was in at a time, by its marks; false: it has none before. */
bool att_lateness_iteration(const struct att_trace *trace, uint32_t place, int64_t at_ns,
                            uint64_t *iteration);

#endif
