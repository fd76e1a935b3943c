#include "control/source.h"

#include "search/statistics.h"

#include <string.h>

/* Start to start over the duration by stamps, below which calls follow each other at once. */
#define BACK_TO_BACK 1.25
/* For long calls the limit is higher: what comes on top of the stamps belongs to the setting (the
 * blocks' wait for multiprocessors that other work holds, the skew between ranks), while between
 * short calls it may be the launch, which the timing itself slows down. Above the limit the host or
 * compute between the calls sets the pace: intervals would be noise, and stamps tell more. */
#define OWN_PACE 3.0
#define LONG_US  50.0

void att_source_init(att_source_t *source, att_reduction_t reduction, bool step)
{
    memset(source, 0, sizeof *source);
    source->reduction = source->stamps = reduction;
    source->step = step;
    source->native = ATT_SETTING_KEEP;
}

/* The call before this one: only now is it known how long its step was. */
static double step_before(const att_source_t *source, const att_part_t *whole)
{
    return source->previous.ranks > 0 ? att_part_interval_us(&source->previous, whole) : -1;
}

int att_source_watch(att_source_t *source, const att_part_t *whole)
{
    if (whole->untimed == ATT_UNTIMED_NO) {
        source->native.algorithm = whole->algorithm;
        source->native.protocol = whole->protocol;
        source->native.channels = whole->channels;
    }
    double us = att_part_duration_us(whole, source->reduction);
    double interval_us = step_before(source, whole);
    if (interval_us > 0 && source->intervals < ATT_SOURCE_CALLS)
        source->interval_us[source->intervals++] = interval_us;
    if (us > 0 && source->durations < ATT_SOURCE_CALLS)
        source->duration_us[source->durations++] = us;
    return source->durations == ATT_SOURCE_CALLS;
}

uint32_t att_source_choose(att_source_t *source, bool whole_stamps)
{
    if (source->step) {
        source->reduction = ATT_REDUCTION_INTERVAL;
        return source->intervals >= ATT_SOURCE_CALLS / 2 ? UINT32_MAX : 0;
    }
    double us = att_median(source->duration_us, source->durations);
    source->beside = us >= LONG_US;
    if (whole_stamps)
        return UINT32_MAX;
    double interval_us = att_median(source->interval_us, source->intervals);
    double pace = us >= LONG_US ? OWN_PACE : BACK_TO_BACK;
    if (source->intervals >= ATT_SOURCE_CALLS / 2 && interval_us <= pace * us) {
        source->reduction = ATT_REDUCTION_INTERVAL;
        source->beside = false;
        return UINT32_MAX;
    }
    return ATT_PAIR_BIT(ATT_ALGORITHM_RING, ATT_PROTOCOL_LL) |
           ATT_PAIR_BIT(ATT_ALGORITHM_RING, ATT_PROTOCOL_LL128) |
           ATT_PAIR_BIT(ATT_ALGORITHM_RING, ATT_PROTOCOL_SIMPLE);
}

int att_source_sample(att_source_t *source, const att_part_t *whole, att_source_sample_t *sample)
{
    double step_us = step_before(source, whole);
    const att_part_t *before = &source->previous;
    *sample = (att_source_sample_t){.call = whole->call};
    if (source->reduction == ATT_REDUCTION_INTERVAL) {
        sample->call = before->call;
        sample->duration_us = step_us;
        sample->collective_us = att_part_duration_us(before, source->stamps);
    } else {
        sample->duration_us = sample->collective_us =
            att_part_duration_us(whole, source->reduction);
        if (source->beside && step_us > 0) {
            sample->before = before->call;
            sample->step_us = step_us;
            sample->disturbed = before->disturbed || whole->disturbed;
        }
    }
    source->previous = *whole;
    return sample->duration_us > 0;
}
