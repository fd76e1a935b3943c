/*
 * sim_trace: one run of a strategy call by call: as CSV lines, and as the path of settings that a
 * plot shows.
 */
#ifndef ATT_CLI_SIM_TRACE_H
#define ATT_CLI_SIM_TRACE_H

#include "sim/contest.h"

#include <stdio.h>

#define ATT_SIM_PATH_MOST 512

/* Settings in the order in which they were first tried. */
typedef struct att_sim_path {
    uint32_t count;
    att_setting_t settings[ATT_SIM_PATH_MOST];
    att_setting_t last; /* believed best at the end */
} att_sim_path_t;

extern const char att_sim_trace_header[];

/* Repeat the contest's run of `strategy` under its first seed. `csv` and `path` may be NULL. */
int att_sim_trace_run(const att_sim_contest_config_t *config, const att_sim_contest_t *contest,
                      uint32_t strategy, const char *surface, FILE *csv, att_sim_path_t *path,
                      att_error_t *error);

#endif
