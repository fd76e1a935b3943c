/* The keeper of the turns: who may have trials in force, over several nodes. */
#include "control/turn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define AGENTS 8

typedef struct keeper {
    struct att_turn_keeper *turns;
    uint32_t held[AGENTS]; /* group that has the node, 0 = nobody */
    uint32_t nodes[64][AGENTS], counts[64];
    uint32_t granted[64];
} keeper_t;

static void grant(void *context, uint32_t leader, const att_group_key_t *group)
{
    keeper_t *k = context;
    assert_int_equal(leader, group->hash % AGENTS);
    for (uint32_t i = 0; i < k->counts[group->hash]; i++) {
        uint32_t *held = &k->held[k->nodes[group->hash][i]];
        assert_int_equal(*held, 0); /* one group a node */
        *held = (uint32_t)group->hash;
    }
    k->granted[group->hash]++;
}

static const att_turn_ops_t ops = {grant};

static void tell(keeper_t *k, uint32_t group, uint32_t type)
{
    att_message_t m = {.type = type, .group = {.hash = group, .ranks = 2}};
    if (type == ATT_MESSAGE_RETURN)
        for (uint32_t a = 0; a < AGENTS; a++)
            if (k->held[a] == group)
                k->held[a] = 0;
    att_turn_message(k->turns, group % AGENTS, &m);
}

static void know(keeper_t *k, uint32_t group, const uint32_t *nodes, uint32_t count)
{
    att_message_t m = {.type = ATT_MESSAGE_NODES,
                       .group = {.hash = group, .ranks = 2},
                       .count = count,
                       .body.agents.total = count};
    memcpy(k->nodes[group], nodes, count * sizeof *nodes);
    memcpy(m.body.agents.agent, nodes, count * sizeof *nodes);
    k->counts[group] = count;
    att_turn_message(k->turns, 0, &m);
}

static keeper_t *begin(void)
{
    keeper_t *k = test_calloc(1, sizeof *k);
    assert_int_equal(att_turn_keeper_create(&ops, k, AGENTS, &k->turns), ATT_OK);
    return k;
}

static void end(keeper_t *k)
{
    att_turn_keeper_destroy(k->turns);
    test_free(k);
}

#define KNOW(k, group, ...)                                                                        \
    know(k, group, (const uint32_t[]){__VA_ARGS__},                                                \
         sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void groups_side_by_side_have_their_turns_together(void **state)
{
    (void)state;
    keeper_t *k = begin();
    KNOW(k, 1, 0, 2); /* pipelines */
    KNOW(k, 2, 1, 3);
    KNOW(k, 3, 0, 1); /* data */
    KNOW(k, 4, 2, 3);
    for (uint32_t group = 1; group <= 4; group++)
        tell(k, group, ATT_MESSAGE_ASK);
    assert_int_equal(k->granted[1] + k->granted[2], 2);
    assert_int_equal(k->granted[3] + k->granted[4], 0);
    tell(k, 1, ATT_MESSAGE_RETURN);
    tell(k, 2, ATT_MESSAGE_RETURN);
    assert_int_equal(k->granted[3] + k->granted[4], 2);
    end(k);
}

/* Group 2 overlaps both neighbours, which could hand the turn to each other for ever. */
static void one_that_waits_is_passed_once(void **state)
{
    (void)state;
    keeper_t *k = begin();
    KNOW(k, 1, 0, 1);
    KNOW(k, 2, 1, 2);
    KNOW(k, 3, 2, 3);
    tell(k, 1, ATT_MESSAGE_ASK);
    tell(k, 2, ATT_MESSAGE_ASK);
    tell(k, 3, ATT_MESSAGE_ASK); /* passes 2 */
    assert_int_equal(k->granted[3], 1);
    tell(k, 1, ATT_MESSAGE_RETURN);
    tell(k, 1, ATT_MESSAGE_ASK); /* nodes 0 and 1 are free, but 1 is kept for group 2 */
    assert_int_equal(k->granted[1], 1);
    tell(k, 3, ATT_MESSAGE_RETURN);
    assert_int_equal(k->granted[2], 1);
    tell(k, 2, ATT_MESSAGE_RETURN);
    assert_int_equal(k->granted[1], 2);
    uint32_t granted, waiting;
    att_turn_counts(k->turns, &granted, &waiting);
    assert_int_equal(granted, 1);
    assert_int_equal(waiting, 0);
    end(k);
}

/* Random sets of nodes: no node is ever granted twice (see grant), and everybody has its turn
 * within two turns of each of the others. */
static void nobody_starves_whatever_overlaps(void **state)
{
    (void)state;
    enum { GROUPS = 24, TURNS = 4000 };
    for (unsigned seed = 1; seed <= 20; seed++) {
        keeper_t *k = begin();
        uint32_t since[GROUPS + 1] = {0};
        srand(seed);
        for (uint32_t group = 1; group <= GROUPS; group++) {
            uint32_t nodes[AGENTS], count = 0;
            for (uint32_t a = 0; a < AGENTS; a++)
                if (rand() % 3 == 0 || group == 1 || (count < 2 && a >= AGENTS - 2))
                    nodes[count++] = a;
            know(k, group, nodes, count);
            tell(k, group, ATT_MESSAGE_ASK);
        }
        for (uint32_t turn = 0; turn < TURNS; turn++) {
            uint32_t group = k->held[(uint32_t)rand() % AGENTS];
            if (group == 0)
                continue;
            uint32_t before[GROUPS + 1];
            memcpy(before, k->granted, sizeof before);
            tell(k, group, ATT_MESSAGE_RETURN);
            tell(k, group, ATT_MESSAGE_ASK);
            for (uint32_t g = 1; g <= GROUPS; g++) {
                since[g] = k->granted[g] != before[g] || g == group ? 0 : since[g] + 1;
                assert_in_range(since[g], 0, 2 * GROUPS * AGENTS);
            }
        }
        for (uint32_t g = 1; g <= GROUPS; g++)
            assert_true(k->granted[g] > 1);
        end(k);
    }
}

/* A group that ends while it waits or holds keeps nothing from the others. */
static void an_ended_group_keeps_nothing(void **state)
{
    (void)state;
    keeper_t *k = begin();
    KNOW(k, 1, 0, 1);
    KNOW(k, 2, 1, 2);
    KNOW(k, 3, 2, 3);
    for (uint32_t group = 1; group <= 3; group++)
        tell(k, group, ATT_MESSAGE_ASK);
    tell(k, 2, ATT_MESSAGE_ENDED);
    tell(k, 1, ATT_MESSAGE_RETURN);
    tell(k, 1, ATT_MESSAGE_ASK);
    assert_int_equal(k->granted[1], 2);
    end(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_side_by_side_have_their_turns_together),
        cmocka_unit_test(one_that_waits_is_passed_once),
        cmocka_unit_test(nobody_starves_whatever_overlaps),
        cmocka_unit_test(an_ended_group_keeps_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
