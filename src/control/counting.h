/*
 * counting: the counters of this agent's node (--counters): its own and its devices' through PAPI,
 * those of each process with the hook from outside, all within --counter-budget. Written to
 * RUN/counters/node-<agent>.jsonl (docs/counters.md), and told with each trial.
 *
 * The processes are counted by the agent, not by the hook: a counter library inside of a training
 * process may load another CUDA than the application's, and would read on its time.
 */
#ifndef ATT_CONTROL_COUNTING_H
#define ATT_CONTROL_COUNTING_H

#include "base/config.h"
#include "control/node.h"

#include <jansson.h>

struct att_counting;

/* NULL in *counting when counters are off or there is no run folder. `segment_file`: what the
 * hooks of this node have mapped. config and node must outlive it. -ATT_EUSAGE: --counters cannot
 * be read; -ATT_ESYSTEM: the file cannot be written. Functions below take NULL. */
int att_counting_create(const att_config_t *config, struct att_node *node, const char *segment_file,
                        uint32_t self, struct att_counting **counting, att_error_t *error);
void att_counting_destroy(struct att_counting *counting);

/* An iteration mark that was drained. */
void att_counting_mark(struct att_counting *counting, const att_record_t *mark, uint64_t now_ns);
/* Trial `number` of task `task` has its samples. Returns what was counted a second over the last
 * reads, {"over_s": ..., "process task-clock": ...}, summed over processes; NULL: nothing yet. */
json_t *att_counting_trial(struct att_counting *counting, uint32_t task, uint32_t number);
/* Once a round: new processes, and a read when it is time. */
void att_counting_step(struct att_counting *counting, uint64_t now_ns);

#endif
