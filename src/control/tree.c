#include "control/tree.h"

#include <string.h>

/* Places are numbered breadth first from the root: place p has the children FAN_OUT * p + 1 and
 * on. The agent at place p is agents[(root + p) mod count]. */
static uint32_t place_of(uint32_t index, uint32_t count, uint32_t root)
{
    return (uint32_t)(((uint64_t)index + count - root) % count);
}

static uint32_t index_at(uint32_t place, uint32_t count, uint32_t root)
{
    return (uint32_t)(((uint64_t)root + place) % count);
}

/* Agents at and below a place: level by level, its descendants are neighbours. */
static uint32_t below(uint64_t place, uint32_t count)
{
    uint64_t first = place, last = place, sum = 0;
    while (first < count) {
        sum += (last < count ? last : count - 1) - first + 1;
        first = first * ATT_TREE_FAN_OUT + 1;
        last = last * ATT_TREE_FAN_OUT + ATT_TREE_FAN_OUT;
    }
    return (uint32_t)sum;
}

att_tree_place_t att_tree_place(const uint32_t *agents, uint32_t count, uint32_t root,
                                uint32_t self)
{
    att_tree_place_t result = {.parent = ATT_TREE_NOBODY};
    uint32_t place = place_of(self, count, root);
    if (place > 0)
        result.parent = agents[index_at((place - 1) / ATT_TREE_FAN_OUT, count, root)];
    for (uint64_t i = 1; i <= ATT_TREE_FAN_OUT; i++) {
        uint64_t child = (uint64_t)place * ATT_TREE_FAN_OUT + i;
        if (child < count)
            result.children[result.child_count++] = agents[index_at((uint32_t)child, count, root)];
    }
    result.below = below(place, count);
    return result;
}

void att_tree_sums(const uint32_t *values, uint32_t count, uint32_t root, uint32_t *sums)
{
    memcpy(sums, values, count * sizeof *sums);
    for (uint32_t place = count; place-- > 1;)
        sums[index_at((place - 1) / ATT_TREE_FAN_OUT, count, root)] +=
            sums[index_at(place, count, root)];
}

uint32_t att_tree_depth(uint32_t count)
{
    uint32_t depth = 0;
    for (uint64_t first = 0; first < count; first = first * ATT_TREE_FAN_OUT + 1)
        depth++;
    return depth;
}
