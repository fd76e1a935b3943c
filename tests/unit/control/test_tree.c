/* Trees of agents: everybody is reached once, over few agents, whoever is the root. */
#include "control/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

enum { MOST = 16384 };
static uint32_t agents[MOST], visits[MOST], sums[MOST], ones[MOST];

/* Agents are 3, 5, 7, ... so that an index taken for an agent is noticed. */
static uint32_t index_of(uint32_t agent)
{
    assert_int_equal(agent % 2, 1);
    return (agent - 3) / 2;
}

static uint32_t visit(uint32_t count, uint32_t root, uint32_t self, uint32_t parent, uint32_t depth,
                      uint32_t *deepest)
{
    visits[self]++;
    if (depth > *deepest)
        *deepest = depth;
    att_tree_place_t place = att_tree_place(agents, count, root, self);
    assert_int_equal(place.parent, parent == ATT_TREE_NOBODY ? parent : agents[parent]);
    assert_true(place.child_count <= ATT_TREE_FAN_OUT);
    uint32_t sum = 1;
    for (uint32_t c = 0; c < place.child_count; c++)
        sum += visit(count, root, index_of(place.children[c]), self, depth + 1, deepest);
    assert_int_equal(place.below, sum);
    assert_int_equal(sums[self], sum);
    return sum;
}

static void check(uint32_t count, uint32_t root)
{
    for (uint32_t i = 0; i < count; i++) {
        agents[i] = 2 * i + 3;
        visits[i] = 0;
        ones[i] = 1;
    }
    uint32_t deepest = 0;
    att_tree_sums(ones, count, root, sums);
    assert_int_equal(visit(count, root, root, ATT_TREE_NOBODY, 1, &deepest), count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(visits[i], 1);
    assert_int_equal(deepest, att_tree_depth(count));
}

static void reaches_everybody_once(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= 100; count++)
        for (uint32_t root = 0; root < count; root += 1 + count / 7)
            check(count, root);
    check(1024, 1023);
    check(MOST, 0);
    check(MOST, 4711);
}

static void is_shallow(void **state)
{
    (void)state;
    assert_int_equal(att_tree_depth(1), 1);
    assert_int_equal(att_tree_depth(2), 2);
    assert_int_equal(att_tree_depth(9), 2);
    assert_int_equal(att_tree_depth(10), 3);
    assert_int_equal(att_tree_depth(MOST), 6);
}

static void sums_what_is_below(void **state)
{
    (void)state;
    uint32_t values[] = {1, 10, 100, 1000, 10000, 100000, 1, 1, 1, 5};
    att_tree_sums(values, 10, 1, sums); /* root is 1; 2..9 are its children; 0 is below 2 */
    assert_int_equal(sums[0], 1);
    assert_int_equal(sums[2], 101);
    assert_int_equal(sums[9], 5);
    assert_int_equal(sums[1], 111119);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reaches_everybody_once),
        cmocka_unit_test(is_shallow),
        cmocka_unit_test(sums_what_is_below),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
