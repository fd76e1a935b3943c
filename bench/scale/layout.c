#include "layout.h"

#include <stdlib.h>

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

static int add(sim_layout_t *l, uint32_t first, uint32_t stride, uint32_t count)
{
    sim_group_t *g = &l->groups[l->count];
    g->agents = malloc(count * sizeof *g->agents);
    if (g->agents == NULL)
        return -1;
    for (uint32_t i = 0; i < count; i++)
        g->agents[i] = first + i * stride;
    g->count = count;
    g->hash = mix(l->count + 1);
    g->root = l->count == 0 ? count / 2 : (uint32_t)(g->hash >> 40) % count;
    l->count++;
    return 0;
}

int sim_layout_make(uint32_t agents, int lines, uint32_t blocks, sim_layout_t *l)
{
    uint32_t bits = 0, failed;
    while (1u << (bits + 1) <= agents)
        bits++;
    uint32_t z = 1u << (lines ? bits / 3 : 0), y = z, x = agents / (y * z);
    uint32_t most = 1 + blocks + (lines ? y * z + x * z + x * y : 0);
    *l = (sim_layout_t){.agents = agents};
    l->groups = calloc(most, sizeof *l->groups);
    if (l->groups == NULL)
        return -1;
    failed = (uint32_t)add(l, 0, 1, agents);
    for (uint32_t i = 0; lines && i < x * y * z; i++) {
        uint32_t at_x = i % x, at_y = i / x % y, at_z = i / (x * y);
        if (at_x == 0 && x > 1 && x < agents)
            failed |= (uint32_t)add(l, i, 1, x);
        if (at_y == 0 && y > 1)
            failed |= (uint32_t)add(l, i, x, y);
        if (at_z == 0 && z > 1)
            failed |= (uint32_t)add(l, i, x * y, z);
    }
    for (uint32_t b = 0; b < blocks; b++) {
        uint32_t size = agents < 8 ? agents : 8;
        failed |= (uint32_t)add(l, (uint32_t)((uint64_t)b * size % (agents - size + 1)), 1, size);
    }
    return failed != 0 ? -1 : 0;
}

void sim_layout_free(sim_layout_t *l)
{
    for (uint32_t g = 0; g < l->count; g++)
        free(l->groups[g].agents);
    free(l->groups);
}
