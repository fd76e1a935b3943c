/* ranking: the fastest settings of a search, the candidates of its final. */
#ifndef ATT_SEARCH_RANKING_H
#define ATT_SEARCH_RANKING_H

#include "attune/setting.h"

#include <stdint.h>

#define ATT_RANKING_ROOM    12
#define ATT_RANKING_OF_PAIR 4 /* of one algorithm and protocol: neighbours crowd others out */

typedef struct att_ranked {
    att_setting_t setting;
    double score; /* duration over the incumbent's at the same time */
} att_ranked_t;

/* Distinct settings, fastest first; a few of each algorithm and protocol. */
typedef struct att_ranking {
    uint32_t count;
    att_ranked_t entries[ATT_RANKING_ROOM];
} att_ranking_t;

/* A setting that is there already keeps the mean of its scores. */
void att_ranking_add(att_ranking_t *ranking, att_setting_t setting, double score);

#endif
