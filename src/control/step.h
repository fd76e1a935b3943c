/*
 * step: the steps of a switch, each logged and each a place where a test can kill or stop the
 * agent.
 *
 * ATTUNE_FAULT=<step>:<n>:<kill|stop|exit> raises SIGKILL or SIGSTOP, or leaves, in this process at
 * the n-th time (from 1) that the step is reached. For tests of the fence.
 */
#ifndef ATT_CONTROL_STEP_H
#define ATT_CONTROL_STEP_H

#include "base/status.h"

#include <stdint.h>

typedef enum att_step {
    ATT_STEP_PLANNED = 0,  /* the optimizer gave a list; nothing is written yet */
    ATT_STEP_OPENED = 1,   /* home word is OPEN */
    ATT_STEP_PREPARED = 2, /* schedule written, hold set on this node's lanes */
    ATT_STEP_VOTED = 3,    /* every participant said yes or one said no */
    ATT_STEP_COMMITTED =
        4, /* home word is COMMITTED; ranks may or may not have reached the fence */
    ATT_STEP_ABORTED = 5,
    ATT_STEP_PLAYED = 6,  /* the list was played out: the incumbent holds */
    ATT_STEP_SETTLED = 7, /* the task is settled */
    ATT_STEP_COUNT = 8
} att_step_t;

const char *att_step_name(att_step_t step);

/* Read ATTUNE_FAULT; `path` (may be NULL or "") is the file that gets one line a step. */
int att_step_init(const char *path, att_error_t *error);
/* True from OPENED on until COMMITTED or ABORTED: a switch is pending. */
void att_step_reached(att_step_t step, uint32_t task, uint32_t txn, uint64_t call);
void att_step_close(void);

#endif
