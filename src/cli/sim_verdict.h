/*
 * sim_verdict: over many surfaces, how the first strategy stands against what is promised of the
 * default, held-out surfaces apart.
 */
#ifndef ATT_CLI_SIM_VERDICT_H
#define ATT_CLI_SIM_VERDICT_H

#include "sim/row.h"

#include <jansson.h>

/* The promises, counted over surfaces. */
typedef enum att_sim_promise {
    ATT_SIM_AT_STOP = 0, /* gap at the descent's stop <= max(a third of the descent's, 0.5 %) */
    ATT_SIM_FINAL = 1,   /* final gap <= 2 %, geometric mean */
    ATT_SIM_P99 = 2,     /* final gap <= 5 %, 99th percentile */
    ATT_SIM_LEAST_REGRET = 3, /* less time lost than every other strategy */
    ATT_SIM_PROMISES = 4
} att_sim_promise_t;

typedef struct att_sim_verdict {
    uint32_t surfaces[2];               /* [held out] */
    uint32_t kept[ATT_SIM_PROMISES][2]; /* [held out] */
    json_t *misses;                     /* what, where, how much */
} att_sim_verdict_t;

int att_sim_verdict_open(att_sim_verdict_t *verdict);
/* The rows of one surface: the strategy judged is rows[0]; `descent` is the reference's row. */
void att_sim_verdict_add(att_sim_verdict_t *verdict, const att_sim_row_t *rows, uint32_t count,
                         const att_sim_row_t *descent);
void att_sim_verdict_print(const att_sim_verdict_t *verdict, const char *strategy);
/* New reference, for the JSON report; closes the verdict. */
json_t *att_sim_verdict_close(att_sim_verdict_t *verdict, const char *strategy);

#endif
