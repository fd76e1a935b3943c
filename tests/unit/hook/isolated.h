/*
 * isolated: runs a test body in a forked child with a segment directory of its own, because the
 * hook attaches once a process. The parent never touches the hook. In the body use CHECK.
 */
#ifndef ISOLATED_H
#define ISOLATED_H

#include "base/fence.h"

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define CHECK_EQUAL(a, b)                                                                          \
    do {                                                                                           \
        long long a_ = (long long)(a), b_ = (long long)(b);                                        \
        if (a_ != b_) {                                                                            \
            fprintf(stderr, "%s:%d: %s = %lld, but %s = %lld\n", __FILE__, __LINE__, #a, a_, #b,   \
                    b_);                                                                           \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Environment: ATTUNE_SHM_DIR a fresh folder, ATTUNE_RUN_ID "test"; NCCL_* as given to the test.
 * The folder must be empty afterwards unless `leaves` says that the body leaves a file there. */
void isolated(void (*body)(void), bool leaves);
#define ISOLATED(name)                                                                             \
    static void name##_body(void);                                                                 \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        isolated(name##_body, false);                                                              \
    }                                                                                              \
    static void name##_body(void)

/* In the body, after the hook has attached: the segment as the agent has it. */
att_segment_memory_t *agent_memory(void);
/* The task of (collective, bytes), which must be the only one, and its lanes (up to 64). */
uint32_t agent_task(int collective, uint64_t bytes);
uint32_t agent_lanes(uint32_t task, uint32_t *lanes);
/* Commit a list for the task from call `fence` on: each setting for `calls` calls, the last for
 * good. */
void agent_commit(uint32_t task, uint64_t fence, const att_setting_t *settings, uint32_t count,
                  uint64_t calls);
/* Take one record out of the process's ring. */
bool agent_record(att_record_t *record);

#endif
