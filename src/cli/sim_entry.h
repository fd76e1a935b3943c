/*
 * sim_entry: one surface of `attune sim`: from its name to printed and written rows.
 */
#ifndef ATT_CLI_SIM_ENTRY_H
#define ATT_CLI_SIM_ENTRY_H

#include "cli/sim_options.h"
#include "cli/sim_report.h"

#include <stdbool.h>

typedef struct att_sim_entry {
    const char *surface; /* name or path */
    const char *label;   /* in rows; NULL: the surface's own name, with @LOAD unless it is "none" */
    int collective;      /* -1, 0, NULL: as att_sim_options_t */
    uint64_t bytes;
    const char *load;
    bool held_out;
} att_sim_entry_t;

int att_sim_entry_run(const att_sim_options_t *options, const att_sim_entry_t *entry,
                      struct att_strategy_host *host, att_sim_report_t *report, att_error_t *error);

#endif
