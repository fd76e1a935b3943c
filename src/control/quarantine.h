/*
 * quarantine: the settings that were on trial when an earlier run ended badly, read from its
 * folder's lists.jsonl for `--quarantine`. A list is written there before it is committed and again
 * when it has played out, or its communicator was ended in order (att_task_note_end): what stands
 * there only once was in force when the run or the communicator ended badly. In doubt it stands
 * there once: a communicator that a process left behind when it exited, or whose last call was not
 * timed, or of several nodes whose last calls were not heard of, was not seen to end in order.
 */
#ifndef ATT_CONTROL_QUARANTINE_H
#define ATT_CONTROL_QUARANTINE_H

#include "attune/setting.h"
#include "base/status.h"
#include "control/identity.h"

#include <stdint.h>

typedef struct att_quarantine_row {
    att_identity_t task;
    att_setting_t setting;
} att_quarantine_row_t;

struct att_quarantine {
    att_quarantine_row_t *rows;
    uint32_t count, room;
};

/* `run` is a run folder. Errors name the file and what is wrong. A last line that was cut off by
 * the end of the run is no error. */
int att_quarantine_read(const char *run, struct att_quarantine **quarantine, att_error_t *error);
void att_quarantine_free(struct att_quarantine *quarantine); /* NULL is fine */

/* The settings of this task, at most `most`; returns their number. Another NCCL version, device or
 * shape of the group has none. */
uint32_t att_quarantine_find(const struct att_quarantine *quarantine, const att_identity_t *task,
                             att_setting_t *settings, uint32_t most);

#endif
