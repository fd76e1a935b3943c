/*
 * arena_file: the file under an arena: made complete before it gets its name, held by record locks,
 * unlinked when all ranks are there, swept when its makers died before that.
 */
#ifndef ATT_FABRIC_ARENA_FILE_H
#define ATT_FABRIC_ARENA_FILE_H

#include "fabric/nccl_abi.h"

#include <stdbool.h>

typedef struct att_arena_file {
    int fd; /* kept open as long as the locks are needed */
    void *base;
    size_t bytes;
    char path[512];
} att_arena_file_t;

/* Map the file of this name, making it when it is not there: sparse, `total` bytes long, the first
 * `eager` really allocated, filled by initialise(base, argument). */
ncclResult_t att_arena_file_open(att_arena_file_t *file, const char *name, size_t total,
                                 size_t eager, void (*initialise)(void *base, void *argument),
                                 void *argument);
void att_arena_file_close(att_arena_file_t *file);
void att_arena_file_unlink(att_arena_file_t *file);

/* Hold `rank`'s byte until the process ends or the file is closed. */
ncclResult_t att_arena_file_hold(att_arena_file_t *file, int rank);
/* Does another process hold it? */
bool att_arena_file_held(const att_arena_file_t *file, int rank);

ncclResult_t att_arena_file_reserve(att_arena_file_t *file, const void *pointer, size_t bytes);

/* Remove the files of this user that nobody holds. Only while this process has none open: closing
 * any descriptor of a file drops the process's locks on it. */
void att_arena_file_sweep(void);

#endif
