/*
 * sim_paper: `attune sim --paper`: what AutoCCL reported (data/paper.json), row by row, beside what
 * the modelled surfaces give.
 *
 * Simulated "NCCL" is the surface's default; "tuned" is the fastest of all six knobs, which is what
 * the published tuned settings stand for, "stock" the fastest of those that a stock NCCL can be
 * given per call; "search" is where AutoCCL's own search (as coded) ends
 * with the surface's noise, and "AFNFA" where that strategy ends, medians over a few seeds.
 */
#ifndef ATT_CLI_SIM_PAPER_H
#define ATT_CLI_SIM_PAPER_H

#include "cli/sim_options.h"

int att_sim_paper(const att_sim_options_t *options, struct att_strategy_host *host,
                  att_error_t *error);

#endif
