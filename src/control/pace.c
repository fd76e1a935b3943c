#include "control/pace.h"

/* Time until the fullest ring has used its share, at the fastest rate seen lately. */
static uint64_t until_share(const att_pace_t *pace, uint32_t ring)
{
    if (pace->fill_per_ns <= 0)
        return ATT_PACE_IDLE_NS;
    double ns = (double)ring / ATT_PACE_RING_SHARE / pace->fill_per_ns;
    return ns >= (double)ATT_PACE_IDLE_NS ? ATT_PACE_IDLE_NS : (uint64_t)ns;
}

uint64_t att_pace_sleep_ns(att_pace_t *pace, const att_pace_round_t *round, uint32_t ring)
{
    uint64_t now = round->now_ns;
    double rate = now > pace->round_ns && pace->round_ns != 0
                      ? (double)round->fullest / (double)(now - pace->round_ns)
                      : 0;
    pace->fill_per_ns = rate > pace->fill_per_ns / 2 ? rate : pace->fill_per_ns / 2;
    pace->round_ns = now;
    if (round->fullest > 0)
        pace->record_ns = now;
    if (round->messages > 0)
        pace->message_ns = now;
    if (round->moved)
        return 0;
    if (round->searching && pace->message_ns != 0 && now - pace->message_ns < ATT_PACE_SPIN_NS)
        return 0;
    if (round->searching && pace->record_ns != 0 && now - pace->record_ns < ATT_PACE_RECENT_NS)
        return ATT_PACE_BUSY_NS;
    uint64_t sleep = until_share(pace, ring);
    return sleep < ATT_PACE_BUSY_NS ? ATT_PACE_BUSY_NS : sleep;
}
