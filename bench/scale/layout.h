/*
 * layout: which agents form which groups in the simulation: a world, lines along three axes
 * (tensor, data and pipeline parallel) and blocks of neighbours (expert parallel).
 */
#ifndef ATT_BENCH_LAYOUT_H
#define ATT_BENCH_LAYOUT_H

#include <stdint.h>

typedef struct sim_group {
    uint64_t hash;
    uint32_t count;   /* agents */
    uint32_t *agents; /* ascending; rank 0 is on agents[root] */
    uint32_t root;
} sim_group_t;

typedef struct sim_layout {
    uint32_t agents, count;
    sim_group_t *groups; /* [0] is the world */
} sim_layout_t;

/* `blocks` groups of up to 8 neighbours on top of world and lines (`lines` 0: without those). */
int sim_layout_make(uint32_t agents, int lines, uint32_t blocks, sim_layout_t *layout);
void sim_layout_free(sim_layout_t *layout);

#endif
