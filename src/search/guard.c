#include "search/guard.h"

#include "base/names.h"
#include "search/statistics.h"

#include <math.h>
#include <stdio.h>

void att_guard_begin(att_guard_t *guard, att_setting_t winner, uint32_t spent)
{
    *guard = (att_guard_t){.spent = spent > ATT_GUARD_SPENT ? spent : ATT_GUARD_SPENT};
    guard->sides[0].setting = ATT_SETTING_KEEP;
    guard->sides[1].setting = winner;
}

void att_guard_list(const att_guard_t *guard, att_playlist_t *list)
{
    uint32_t block = list->period > ATT_GUARD_BLOCK ? list->period : ATT_GUARD_BLOCK;
    uint32_t from = list->period > list->discard ? list->period : list->discard;
    for (uint32_t pair = 0; list->count + 2 <= ATT_PLAN_ENTRIES; pair++)
        for (uint32_t k = 0; k < 2; k++) {
            /* a b, b a, a b, ...: what comes second gains nothing from it. */
            uint32_t side = (pair + k) % 2;
            att_playlist_add(list, guard->sides[side].setting, from + block, ATT_PLAY_GUARD, side);
        }
}

static void take(att_guard_side_t *side, const att_play_t *play)
{
    if (side->calls == 0)
        side->first_call = play->first;
    side->calls += play->calls;
    for (uint32_t i = 0; i < play->count && side->count < ATT_GUARD_ROOM; i++)
        side->samples_us[side->count++] = play->samples_us[i];
}

/* The other measure of a block, per call; 0: not known. Steps are added up, long ones too: the
 * calls of one task need not be evenly spaced, and pairs forgive what happens once. */
static double beside_us(const att_play_t *play)
{
    if (play->steps > 0)
        return play->steps_us / play->steps;
    return play->collectives > 0 ? play->collective_us / play->collectives : 0;
}

static void add_pair(att_guard_t *guard, const att_play_t *pair)
{
    double own[2], beside[2];
    for (uint32_t k = 0; k < 2; k++) {
        const att_play_t *play = &pair[k];
        own[play->index] = att_midmean(play->samples_us, play->count);
        beside[play->index] = beside_us(play);
        guard->steps |= play->steps > 0;
        take(&guard->sides[play->index], play);
    }
    att_comparison_add(&guard->comparison, own[0], own[1]);
    att_comparison_add(&guard->beside, beside[0], beside[1]);
    att_comparison_add(&guard->share, own[0], beside[0]);
}

/* The collective wins; what does the step say? */
static att_verdict_t look_beside(const att_guard_t *guard, double worth)
{
    const att_comparison_t *step = &guard->beside;
    if (!guard->steps || step->count < ATT_COMPARISON_FIRST)
        return ATT_VERDICT_WIN;
    if (step->upper < 0 && step->median < -ATT_COMPARISON_LEAST)
        return ATT_VERDICT_HARM;
    const att_comparison_t *own = &guard->comparison;
    if (own->looks >= ATT_COMPARISON_LOOKS || own->lists >= ATT_COMPARISON_LISTS)
        return ATT_VERDICT_WIN;
    double error = att_comparison_error(step);
    /* The median: a pause in a block makes the collective no smaller a part. */
    double prior = ATT_GUARD_SHARE * exp(att_median(guard->share.gains, guard->share.count));
    double trust = prior * prior / (prior * prior + error * error);
    double loss = att_expected_gain(-trust * step->median, error * sqrt(trust));
    double enough = worth > ATT_COMPARISON_LEAST / 2 ? worth : ATT_COMPARISON_LEAST / 2;
    return loss < enough ? ATT_VERDICT_WIN : ATT_VERDICT_OPEN;
}

att_verdict_t att_guard_ran(att_guard_t *guard, const att_playlist_t *list)
{
    for (uint32_t i = 0; i + 1 < list->count; i += 2)
        add_pair(guard, &list->plays[i]);
    att_comparison_bounds(&guard->beside);
    uint32_t calls = guard->sides[0].calls + guard->sides[1].calls;
    double worth = ATT_GUARD_WORTH * calls / guard->spent;
    att_verdict_t verdict = att_comparison_look(&guard->comparison, worth);
    return verdict == ATT_VERDICT_WIN ? look_beside(guard, worth) : verdict;
}

void att_guard_status(const att_guard_t *guard, att_verdict_t verdict,
                      att_optimizer_status_t *status)
{
    const att_comparison_t *own = &guard->comparison, *beside = &guard->beside;
    const att_guard_side_t *keep = &guard->sides[0], *winner = &guard->sides[1];
    bool both = own->count > 0 && beside->count >= ATT_COMPARISON_FIRST;
    status->gain_median = own->median;
    status->gain_lower = own->lower;
    status->baseline_us = att_median(keep->samples_us, keep->count);
    status->tuned_us = att_median(winner->samples_us, winner->count);
    status->baseline_samples = keep->count;
    status->tuned_samples = winner->count;
    status->collective_gain = !both ? 0 : guard->steps ? own->median : beside->median;
    status->step_gain = !both ? 0 : guard->steps ? beside->median : own->median;
    status->harms = verdict == ATT_VERDICT_HARM;
}

void att_guard_forget(att_optimizer_status_t *status)
{
    status->gain_median = status->gain_lower = 0;
    status->collective_gain = status->step_gain = 0;
    status->harms = 0;
}

void att_guard_text(const att_guard_t *guard, att_verdict_t verdict, char *text, size_t size)
{
    const att_comparison_t *c = &guard->comparison, *step = &guard->beside;
    char setting[ATT_SETTING_TEXT];
    if (verdict == ATT_VERDICT_HARM)
        snprintf(text, size,
                 "%s is %.1f %% faster alone, its step %.1f %% slower (bound %.1f %%); try "
                 "--objective step",
                 att_setting_text(guard->sides[1].setting, setting, sizeof setting),
                 100 * c->median, -100 * step->median, -100 * step->upper);
    else if (verdict == ATT_VERDICT_WIN)
        snprintf(text, size, "wins by %.1f %% (lower 95 %% bound %.1f %%)", 100 * c->median,
                 100 * c->lower);
    else if (verdict == ATT_VERDICT_BLIND)
        snprintf(text, size, "too few usable samples to compare with NCCL's choice");
    else if (c->upper < 0)
        snprintf(text, size, "the best setting found is %.1f %% slower", -100 * c->median);
    else
        snprintf(text, size, "gain %.1f %% is within the noise (lower 95 %% bound %.1f %%)",
                 100 * c->median, 100 * c->lower);
}
