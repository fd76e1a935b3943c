/*
 * rows: the task rows that the other agents have sent to agent 0, for tasks.json and the metrics.
 * A row that comes again takes the place of the one before; one is found in logarithmic time.
 */
#ifndef ATT_CONTROL_ROWS_H
#define ATT_CONTROL_ROWS_H

#include "control/task.h"

#define ATT_ROWS_MOST                                                                              \
    262144u /* of all agents together; attune reads twice as many (tasks_file.h) */

struct att_rows;

int att_rows_create(uint32_t agents, struct att_rows **rows);
void att_rows_destroy(struct att_rows *rows); /* NULL is fine */
/* Copies both, of the reason at most ATT_REASON_BYTES - 1. -ATT_ENOMEM; -ATT_EFULL for a new row of
 * an agent that has ATT_TASKS of them, as no segment holds more, or beyond ATT_ROWS_MOST;
 * -ATT_EINPUT when there is no such agent. */
int att_rows_put(struct att_rows *rows, uint32_t from, const att_task_report_t *report,
                 const char *reason, uint64_t now_ns);
uint32_t att_rows_count(const struct att_rows *rows);
/* In order of appearance; valid until the next put of the same row. */
const att_task_report_t *att_rows_get(const struct att_rows *rows, uint32_t index);
/* Since it was put: rows that do not change do not come again. */
double att_rows_age_s(const struct att_rows *rows, uint32_t index, uint64_t now_ns);

#endif
