/*
 * crew: does many independent jobs on several processes and gathers their results by number, so
 * that the outcome does not depend on how many processes there are.
 *
 * Processes, not threads: a strategy is a library of somebody else's that may keep state of its own
 * or crash; here it takes one process down and is named.
 */
#ifndef ATT_SIM_CREW_H
#define ATT_SIM_CREW_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* Do job `number` and write the result (zeroed before). In a process of its own; what it changes
 * elsewhere is lost. -ATT_E... ends the whole crew with that error. */
typedef int (*att_crew_fn)(void *context, uint32_t number, void *result, att_error_t *error);

typedef struct att_crew {
    uint32_t workers; /* processes, >= 1 */
    double limit_s;   /* for one job; a job that takes longer ends the crew; <= 0: none */
    att_crew_fn work;
    void *context;
    const char *what; /* a job in messages: "a run" */
    /* What job `number` is in messages, instead of "<what> (number N)"; may be NULL. */
    void (*name)(void *context, uint32_t number, char *text, size_t size);
    void (*progress)(void *context, uint32_t done, uint32_t jobs); /* may be NULL */
} att_crew_t;

/* results: `jobs` results of `size` bytes, set only when every job was done. -ATT_EFAIL when a
 * process crashed or ended in a job, with whatever status, or a job took too long (the text names
 * the job), -ATT_ESYSTEM when there are no processes or memory. Standard output is flushed before.
 */
int att_crew_run(const att_crew_t *crew, uint32_t jobs, size_t size, void *results,
                 att_error_t *error);

#endif
