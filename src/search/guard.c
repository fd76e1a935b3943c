#include "search/guard.h"

#include "search/statistics.h"

#include <stdio.h>

void att_guard_begin(att_guard_t *guard, att_setting_t winner, uint32_t spent)
{
    *guard = (att_guard_t){.spent = spent > ATT_GUARD_SPENT ? spent : ATT_GUARD_SPENT};
    guard->sides[0].setting = ATT_SETTING_KEEP;
    guard->sides[1].setting = winner;
}

void att_guard_list(const att_guard_t *guard, att_playlist_t *list)
{
    for (uint32_t pair = 0; list->count + 2 <= ATT_PLAN_ENTRIES; pair++)
        for (uint32_t k = 0; k < 2; k++) {
            /* a b, b a, a b, ...: what comes second gains nothing from it. */
            uint32_t side = (pair + k) % 2;
            att_playlist_add(list, guard->sides[side].setting, list->discard + ATT_GUARD_BLOCK,
                             ATT_PLAY_GUARD, side);
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

att_verdict_t att_guard_ran(att_guard_t *guard, const att_playlist_t *list)
{
    for (uint32_t i = 0; i + 1 < list->count; i += 2) {
        double us[2];
        for (uint32_t k = 0; k < 2; k++) {
            const att_play_t *play = &list->plays[i + k];
            us[play->index] = att_midmean(play->samples_us, play->count);
            take(&guard->sides[play->index], play);
        }
        att_comparison_add(&guard->comparison, us[0], us[1]);
    }
    uint32_t calls = guard->sides[0].calls + guard->sides[1].calls;
    return att_comparison_look(&guard->comparison, ATT_GUARD_WORTH * calls / guard->spent);
}

void att_guard_text(const att_guard_t *guard, att_verdict_t verdict, char *text, size_t size)
{
    const att_comparison_t *c = &guard->comparison;
    if (verdict == ATT_VERDICT_WIN)
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
