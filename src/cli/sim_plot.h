/*
 * sim_plot: SVG plots of a contest, drawn by gnuplot: how fast each strategy closes in on the
 * optimum (median and the middle 80 % of the runs), and the surface as a heat map with the settings
 * that one run tried. The numbers are left beside the pictures as text.
 */
#ifndef ATT_CLI_SIM_PLOT_H
#define ATT_CLI_SIM_PLOT_H

#include "cli/sim_trace.h"

/* Make the folder and look for gnuplot: -ATT_ENOENT with what to do when it is missing. */
int att_sim_plot_prepare(const char *folder, att_error_t *error);

/* <folder>/<label>-convergence.svg and .dat */
int att_sim_plot_convergence(const char *folder, const char *label,
                             const att_sim_contest_config_t *config,
                             const att_sim_contest_t *contest, att_error_t *error);
/* <folder>/<label>-path-<strategy>.svg and .dat: channels and chunk in the subspace of the optimum.
 * Nothing when that subspace has no chunk to choose. */
int att_sim_plot_path(const char *folder, const char *label, struct att_sim_task *task, int load,
                      const char *strategy, const att_sim_path_t *path, att_error_t *error);

#endif
