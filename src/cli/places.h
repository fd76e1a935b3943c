/*
 * places: where the parts of attune lie, found from the running program's own file, so that a build
 * tree and an installed tree work alike wherever they are moved.
 */
#ifndef ATT_CLI_PLACES_H
#define ATT_CLI_PLACES_H

#include "base/status.h"

#include <limits.h>

/* "" for a part that is not there; the *_searched texts name the files that were looked for. */
typedef struct att_places {
    char program[PATH_MAX]; /* attune itself */
    char sidecar[PATH_MAX]; /* attuned */
    char hook[PATH_MAX];    /* libattune-nccl.so */
    char fabric[PATH_MAX];  /* folder with the host fabric's libnccl.so.2 */
    char jobs[PATH_MAX];    /* folder with the launch scripts */
    char sidecar_searched[1024];
    char hook_searched[1024];
    char fabric_searched[1024];
    char jobs_searched[1024];
} att_places_t;

/* -ATT_ESYSTEM when the program's own file is not known (no /proc). */
int att_places_find(att_places_t *places, att_error_t *error);

#endif
