#include "control/node_turn.h"

#include <string.h>

void att_node_turn_init(att_node_turn_t *turn)
{
    *turn = (att_node_turn_t){.group = ATT_NONE};
}

static bool expired(const att_node_turn_t *turn, uint64_t now_ns)
{
    return turn->group == ATT_NONE || (!turn->spanning && now_ns >= turn->until_ns);
}

bool att_node_turn_may(const att_node_turn_t *turn, uint32_t group, uint64_t now_ns)
{
    if (turn->waiting_count > 0)
        return false;
    return turn->group == group || expired(turn, now_ns);
}

void att_node_turn_take(att_node_turn_t *turn, uint32_t group, bool holds, uint64_t until_ns)
{
    if (turn->spanning)
        return;
    if (turn->group != group) {
        turn->group = group;
        turn->lists = 0;
        holds = false;
    }
    turn->lists += !holds;
    turn->until_ns = until_ns;
}

void att_node_turn_release(att_node_turn_t *turn, uint32_t group)
{
    if (!turn->spanning && turn->group == group && turn->lists > 0 && --turn->lists == 0)
        turn->group = ATT_NONE;
}

void att_node_turn_request(att_node_turn_t *turn, uint32_t group)
{
    for (uint32_t i = 0; i < turn->waiting_count; i++)
        if (turn->waiting[i] == group)
            return;
    if (turn->waiting_count < ATT_TURN_QUEUE && !(turn->spanning && turn->group == group))
        turn->waiting[turn->waiting_count++] = group;
}

uint32_t att_node_turn_next(att_node_turn_t *turn, uint64_t now_ns)
{
    if (turn->waiting_count == 0 || !expired(turn, now_ns))
        return ATT_NONE;
    turn->group = turn->waiting[0];
    turn->spanning = true;
    turn->lists = 0;
    memmove(turn->waiting, turn->waiting + 1, --turn->waiting_count * sizeof turn->waiting[0]);
    return turn->group;
}

void att_node_turn_end(att_node_turn_t *turn, uint32_t group)
{
    for (uint32_t i = 0; i < turn->waiting_count; i++)
        if (turn->waiting[i] == group) {
            memmove(turn->waiting + i, turn->waiting + i + 1,
                    (--turn->waiting_count - i) * sizeof turn->waiting[0]);
            return;
        }
    if (turn->spanning && turn->group == group) {
        turn->group = ATT_NONE;
        turn->spanning = false;
    }
}
