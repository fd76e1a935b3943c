/*
 * early: what other agents have sent about a group before this agent knows its place in the group's
 * tree. Kept in order, at most ATT_TASKS messages of a group.
 */
#ifndef ATT_CONTROL_EARLY_H
#define ATT_CONTROL_EARLY_H

#include "control/message.h"

typedef struct att_early_message {
    struct att_early_message *next;
    uint32_t from;
    att_message_t message;
} att_early_message_t;

/* Zero: empty. */
typedef struct att_early {
    att_early_message_t *first, *last;
    uint32_t count;   /* since the group is known */
    uint64_t records; /* in those that are kept */
} att_early_t;

/* False when there is no room for it: said in one line a second. */
bool att_early_keep(att_early_t *early, uint32_t from, const att_message_t *message);
/* The first one, which is the caller's to free; NULL: there is none. */
att_early_message_t *att_early_take(att_early_t *early);
void att_early_clear(att_early_t *early);

#endif
