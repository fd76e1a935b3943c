/* What a task tells of itself. */
#include "control/notes.h"
#include "control/task_inside.h"

#include <math.h>
#include <string.h>

#define DISAGREEMENT 0.02 /* gains and losses of a measure below it are noise */

bool att_task_disagrees(const att_optimizer_status_t *status)
{
    double collective = status->collective_gain, step = status->step_gain;
    return status->phase == ATT_PHASE_SETTLED && !status->kept_default &&
           fabs(collective) > DISAGREEMENT && fabs(step) > DISAGREEMENT &&
           (collective > 0) != (step > 0);
}

double att_task_tuned_us(const att_task_report_t *report)
{
    if (report->observed)
        return 0;
    return report->status.kept_default ? report->status.baseline_us : report->status.tuned_us;
}

void att_task_report(const struct att_task *t, att_task_report_t *report)
{
    memset(report, 0, sizeof *report);
    report->hash = t->group->hash;
    report->ranks = t->group->ranks;
    report->nodes = t->group->nodes;
    report->collective = t->task->collective;
    report->legal_pairs = t->task->legal_pairs;
    report->bytes = t->task->bytes;
    report->state = t->state;
    report->native = t->source.native;
    report->samples_seen = t->samples_seen;
    report->calls_seen = t->calls_seen;
    report->lost = t->aggregate != NULL ? att_aggregate_lost(t->aggregate) : t->lost;
    report->switches = t->sw.switches;
    report->aborts = t->sw.aborts;
    report->disturbed = t->disturbed;
    report->reduction = t->source.reduction;
    report->now_us = att_recent_duration_us(&t->recent);
    if (t->recent.samples > 0)
        report->now_age_s = (double)(t->stepped_ns - t->recent.sampled_ns) * 1e-9;
    att_recent_late_t late = {.rank = ATT_NONE};
    att_recent_late(&t->recent, &late);
    report->late_rank = late.rank;
    report->late_us = late.late_us;
    report->late_share = late.share;
    report->status.kept_default = 1;
    report->tuned = t->source.native;
    report->reason = t->reason;
    report->pinned = t->pinned;
    report->step_objective = t->source.step;
    if (t->optimizer == NULL) {
        report->observed = t->shared->config->observe;
        if (report->observed) {
            report->status.baseline_us = report->now_us;
            report->status.baseline_samples = (uint32_t)t->recent.samples;
        }
        return;
    }
    att_optimizer_status(t->optimizer, &report->status);
    report->disagrees = att_task_disagrees(&report->status);
    report->lost_us = report->status.lost_us;
    if (!report->status.kept_default)
        report->tuned = report->status.incumbent;
    if (t->state == ATT_TASK_TUNING || report->status.phase >= ATT_PHASE_SETTLED)
        report->reason = report->status.reason;
}

void att_task_coverage(const struct att_task *t, att_coverage_t *coverage)
{
    att_aggregate_fates_t fates =
        t->aggregate != NULL ? att_aggregate_fates(t->aggregate) : t->fates;
    coverage->incomplete += fates.lost + fates.late;
    coverage->waiting += fates.waiting;
    coverage->unused += t->unused;
}

void att_task_note_end(struct att_task *t)
{
    if (!t->noted || !att_node_all_left(t->shared->node, t->task->group))
        return;
    /* A communicator is aborted when a call hangs: then too its ranks leave by themselves. */
    const att_segment_memory_t *memory = att_node_memory(t->shared->node);
    uint64_t low = att_task_watermark(t);
    for (uint32_t i = 0; i < t->lane_count; i++)
        if (atomic_load(&memory->lanes[t->lanes[i]].word) >> 1 > low)
            return;
    t->noted = false;
    att_notes_over(t->shared->notes, t->index, t->sw.coordinator.txn);
}
