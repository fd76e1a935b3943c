#include "control/source.h"

#include "search/statistics.h"

#include <math.h>
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
    source->window = 1;
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
    source->watched++;
    return source->durations == ATT_SOURCE_CALLS &&
           (!source->step || source->watched >= ATT_SOURCE_STEPS);
}

uint32_t att_source_choose(att_source_t *source, bool whole_stamps)
{
    source->chosen = true;
    if (source->step) {
        source->reduction = ATT_REDUCTION_INTERVAL;
        source->window = source->rhythm.period > 1 ? source->rhythm.period : 1;
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

/* A step that is longer by a whole period, and none like it less than two periods before: the job
 * has paused (a checkpoint, an evaluation). That is no property of a setting, and would be in as
 * many samples as a period has calls. What a slow setting does comes again. */
static void look_for_pause(att_source_t *source, uint64_t call, double us)
{
    if (source->window < 2 || !att_rhythm_breaks(&source->rhythm, call, us))
        return;
    bool again = source->broke > 0 && call + 1 - source->broke <= 2 * source->window;
    source->broke = call + 1;
    source->paused = again ? 0 : call + 1;
}

/* The step that is to be short ends with the call before: the mean of the last `window` ones; not
 * above 0 when one of them is not known or a pause. What a setting does to compute may all lie in
 * the long one, which no robust statistic of single ones would see. */
static double step_ending_before(att_source_t *source, const att_part_t *whole)
{
    double us = step_before(source, whole), sum = 0;
    if (!(us > 0)) {
        source->run = 0;
        return us;
    }
    uint64_t call = source->previous.call;
    source->run_us[call % ATT_RHYTHM_PERIOD] = us;
    if (source->run < ATT_RHYTHM_PERIOD)
        source->run++;
    if (source->previous.disturbed || whole->disturbed)
        source->disturbed = call + 1;
    look_for_pause(source, call, us);
    bool paused = source->paused > 0 && call + 1 - source->paused < source->window;
    if (source->run < source->window || paused)
        return -1;
    for (uint32_t k = 0; k < source->window; k++)
        sum += source->run_us[(call - k) % ATT_RHYTHM_PERIOD];
    return sum / source->window;
}

/* As step_before, made level: a single step as good as any other. NAN: not known, or of no
 * interest: calls are many. */
static double level_step_before(att_source_t *source, const att_part_t *whole, uint64_t even_from)
{
    double us = step_before(source, whole);
    bool idle = source->chosen && !source->step && !source->beside;
    if (!(us > 0) || idle)
        return NAN;
    if (source->previous.call >= even_from)
        att_rhythm_add(&source->rhythm, source->previous.call, us);
    return source->beside ? att_rhythm_level(&source->rhythm, source->previous.call, us) : NAN;
}

int att_source_sample(att_source_t *source, const att_part_t *whole, uint64_t even_from,
                      att_source_sample_t *sample)
{
    const att_part_t *before = &source->previous;
    double level_us = level_step_before(source, whole, even_from);
    *sample = (att_source_sample_t){.call = whole->call, .step_us = NAN};
    if (source->reduction == ATT_REDUCTION_INTERVAL) {
        sample->call = before->call;
        sample->duration_us =
            source->step ? step_ending_before(source, whole) : step_before(source, whole);
        sample->disturbed = source->step && source->disturbed > 0 &&
                            before->call + 1 - source->disturbed < source->window;
        sample->collective_us = att_part_duration_us(before, source->stamps);
    } else {
        sample->duration_us = sample->collective_us =
            att_part_duration_us(whole, source->reduction);
        if (source->beside && isfinite(level_us)) {
            sample->before = before->call;
            sample->step_us = level_us;
            sample->disturbed = before->disturbed || whole->disturbed;
        }
    }
    source->previous = *whole;
    return sample->duration_us > 0;
}
