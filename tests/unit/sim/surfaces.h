/* surfaces: recorded surfaces of a few lines that the tests of the simulation search. */
#ifndef ATT_TEST_SIM_SURFACES_H
#define ATT_TEST_SIM_SURFACES_H

#include "search/strategy_host.h"
#include "sim/contest.h"
#include "sim/run.h"
#include "sim/task.h"

/* AllReduce of 1 MiB on 4 ranks, ring/simple with channels 1..most and NCCL's choice (`native`
 * channels), durations given by `us`. */
struct att_surface *surface_of_channels(double (*us)(int channels), int most, int native);

/* Strategies of the build and of the tests. */
struct att_strategy_host *plugin_host(void);

/* A run as `attune sim` makes it, without noise. */
att_sim_run_config_t quiet_run(const char *strategy, uint64_t budget);

#endif
