/*
 * notes: what the leaders of an agent leave in the run folder while they search: every list before
 * it is voted on, that it has played out, and every trial. Agent 0 writes the folder; the others
 * send theirs to it.
 */
#ifndef ATT_CONTROL_NOTES_H
#define ATT_CONTROL_NOTES_H

#include "control/message.h"

#include <jansson.h>

struct att_run_folder;

typedef struct att_notes {
    struct att_run_folder *folder; /* agent 0's; NULL: sent */
    /* To agent 0; NULL: no folder was asked for. */
    void (*send)(void *context, const att_message_t *message);
    bool (*is_full)(void *context); /* the queue to agent 0 is; may be NULL */
    void *context;
} att_notes_t;

/* A list of trials must wait: agent 0, slow or stopped, would not know of it. What is noted of
 * lists that have begun is always sent: at most one list a task. */
bool att_notes_full(const att_notes_t *notes);

/* `index` is the task's on this agent. All do nothing when notes is NULL. */
void att_notes_list(const att_notes_t *notes, uint32_t index, const att_identity_t *task,
                    const att_schedule_t *schedule);
void att_notes_over(const att_notes_t *notes, uint32_t index, uint32_t txn);
/* counted: what counters say of it, NULL = nothing; those of other agents do not travel. */
void att_notes_trial(const att_notes_t *notes, const att_task_report_t *task,
                     const att_trial_t *trial, json_t *counted);
/* Agent 0: LIST, OVER, TRIAL of another one. In the files its tasks are numbered
 * from * ATT_TASKS + index. */
void att_notes_take(const att_notes_t *notes, uint32_t from, const att_message_t *message);

#endif
