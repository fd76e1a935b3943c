/*
 * home: what the home of a group answers to a rank (or agent) of another node.
 *
 * Requests and replies have a fixed size and travel over TCP between machines of one byte order and
 * layout, as the segment does. No sockets here: base/resolver.h is the asking side, hook/helper.h
 * the serving thread. Everything in a request is hostile until its key fits.
 */
#ifndef ATT_BASE_HOME_H
#define ATT_BASE_HOME_H

#include "base/fence.h"

#define ATT_HOME_MAGIC 0x31656d6f68747461ull /* "attHome1" */

typedef enum att_home_verb {
    ATT_HOME_TEST = 1,   /* is this the home of (hash, ranks)? Changes nothing */
    ATT_HOME_RESOLVE = 2 /* OPEN -> ABORTED unless it is decided; tells what the word then holds */
} att_home_verb_t;

typedef struct att_home_request {
    uint64_t magic;
    uint8_t key[16]; /* of the helper; random, one a process */
    uint64_t hash;   /* of the group */
    uint64_t bytes;  /* of the task */
    uint32_t ranks;
    uint32_t verb; /* att_home_verb_t */
    uint32_t collective, legal_pairs;
    uint32_t home_task; /* the task's index in the home's segment */
    uint32_t txn;
} att_home_request_t;
_Static_assert(sizeof(att_home_request_t) == 64, "wire format");

typedef struct att_home_reply {
    uint64_t magic;
    uint32_t txn;
    uint32_t state; /* att_home_state_t; NONE: the word is beyond txn, whose outcome every node has
                       recorded: look at the copy again */
} att_home_reply_t;
_Static_assert(sizeof(att_home_reply_t) == 16, "wire format");

/* Fill a request for the undecided transaction of a task, from this node's segment. */
void att_home_ask(const att_segment_memory_t *memory, const att_segment_task_t *task, uint32_t txn,
                  att_home_request_t *request);
/* Answer it in the process that hosts rank 0. -ATT_EPERMISSION: wrong magic or key, -ATT_EINPUT: no
 * such group or task: the connection is to be closed without a word. */
int att_home_answer(att_segment_memory_t *memory, const uint8_t key[16],
                    const att_home_request_t *request, att_home_reply_t *reply);
/* What a reply means for the waiter: NONE when it is not an answer to this request. */
att_home_state_t att_home_read(const att_home_request_t *request, const att_home_reply_t *reply);

#endif
