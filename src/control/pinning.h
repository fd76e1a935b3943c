/*
 * pinning: tasks that the user holds where they are (`attune pin`): the file "pinned" in the run
 * folder, one task a line, "GROUP COLLECTIVE BYTES" ("0x1f2e allreduce 4194304"), read again when
 * it changes. Only a file of this user that nobody else can write counts.
 */
#ifndef ATT_CONTROL_PINNING_H
#define ATT_CONTROL_PINNING_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define ATT_PINNED_FILE "pinned"
#define ATT_PINNED_MOST 524288u /* tasks */

typedef struct att_pinned_task {
    uint64_t group; /* hash */
    uint64_t bytes;
    int collective;
} att_pinned_task_t;

/* Zero: nothing is pinned. */
typedef struct att_pinning {
    att_pinned_task_t *tasks; /* in order, as bsearch needs them */
    uint32_t count;
    uint32_t version;        /* grows when they change */
    struct timespec changed; /* of the file that was read last */
    uint64_t looked_ns;
} att_pinning_t;

/* Into tasks[0..most): -ATT_EINPUT with the line's number. */
int att_pinning_parse(const char *bytes, size_t length, att_pinned_task_t *tasks, uint32_t most,
                      uint32_t *count, att_error_t *error);
/* Look at run_dir ("" = there is none) now and then. What cannot be read is said once and changes
 * nothing. */
void att_pinning_step(att_pinning_t *pinning, const char *run_dir, uint64_t now_ns);
/* From now on these, in any order; takes `tasks` over, from malloc. */
void att_pinning_set(att_pinning_t *pinning, att_pinned_task_t *tasks, uint32_t count);
void att_pinning_clear(att_pinning_t *pinning);
bool att_pinning_has(const att_pinning_t *pinning, uint64_t group, int collective, uint64_t bytes);

#endif
