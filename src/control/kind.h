/*
 * kind: tasks of one agent that differ in nothing but their ranks, as the data groups of a job do,
 * or a little in size, as the buckets of a training step do: equal collective, legal pairs, ranks,
 * nodes, ranks here, device, NCCL and NCCL's own choice, bytes up to a sixteenth. Groups of one
 * leader share its node, so they would search one after the other anyway: instead the first one
 * searches and the others await its end (search/kin.h).
 *
 * Where the step is to be short, only a winner is taken over; when the first one finds none, the
 * next one searches. And all tasks of a group come one after the other, alike or not, as each one's
 * trials are in the steps of all: first whoever is called most often, as it has seen enough calls
 * first.
 */
#ifndef ATT_CONTROL_KIND_H
#define ATT_CONTROL_KIND_H

#include "control/task.h"

/* At a task's creation and destruction. */
void att_kind_join(struct att_task *task);
void att_kind_leave(struct att_task *task);
/* Its search may begin: it awaits another of its kind when there is one. */
void att_kind_begin(struct att_task *task, uint64_t now_ns);
/* True while it awaits the other one, which is given up when it comes to no end: its communicator
 * is gone, its strategy failed, or the job does not call it any more. */
bool att_kind_waits(struct att_task *task, uint64_t now_ns);

#endif
