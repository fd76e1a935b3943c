/*
 * applied: the settings of a finished run, read from its tasks.json for `--apply`.
 */
#ifndef ATT_CONTROL_APPLIED_H
#define ATT_CONTROL_APPLIED_H

#include "attune/setting.h"
#include "base/status.h"
#include "control/identity.h"

#include <stdint.h>

typedef struct att_applied_row {
    uint32_t collective, ranks, nodes;
    uint64_t bytes;
    att_setting_t setting; /* keep when the run kept NCCL's choice */
} att_applied_row_t;

struct att_applied {
    uint32_t nccl_version;
    char device[96];
    att_applied_row_t *rows;
    uint32_t count;
};

/* `run` is a run folder. Errors name the file and what is wrong. */
int att_applied_read(const char *run, struct att_applied **applied, att_error_t *error);
void att_applied_free(struct att_applied *applied); /* NULL is fine */
/* 0 and the setting, or the reason in `error`: -ATT_EMISMATCH (NCCL version, device), -ATT_ENOENT
 * (no such collective, bytes, ranks and nodes in the run). */
int att_applied_find(const struct att_applied *applied, const att_identity_t *task,
                     att_setting_t *setting, att_error_t *error);

#endif
