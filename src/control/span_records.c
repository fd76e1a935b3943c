/* The records of groups over several nodes on one node: each goes to a branch, or is counted. */
#include "control/span_inside.h"

void att_span_record(struct att_span *span, const att_record_t *record)
{
    att_branch_t *b = span->branch_of[record->task];
    if (b != NULL && b->ready && !b->group->ended)
        att_branch_record(b, record);
    else
        span->unused++;
}

void att_span_coverage(const struct att_span *span, att_coverage_t *coverage)
{
    coverage->unused += span->unused;
    for (uint32_t i = 0; i < att_node_group_count(span->node); i++) {
        if (span->groups[i] == NULL)
            continue;
        coverage->waiting += span->groups[i]->early.records;
        for (att_branch_t *b = span->groups[i]->branches; b != NULL; b = b->next)
            att_branch_coverage(b, coverage);
    }
}
