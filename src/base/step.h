/*
 * step: every step of the fence protocol by name, each logged and each a place where a test can
 * kill or stop the process that takes it.
 *
 * ATTUNE_FAULT=<step>:<n>:<kill|stop|exit>[:<node>] raises SIGKILL, SIGSTOP or SIGTERM in this
 * process at the n-th time (from 1) that it takes the step; with <node> only in processes whose
 * ATTUNE_NODE is <node>. The sidecar and the hook read it. For tests of the fence.
 *
 * With ATTUNE_FAULT_TARGET=<file> the signal goes to the process whose id is in the file ("0": to
 * the one that takes the step), from the n-th time on as soon as the file is there, and once: the
 * file is renamed to <file>.done then.
 */
#ifndef ATT_BASE_STEP_H
#define ATT_BASE_STEP_H

#include "base/status.h"

#include <stdint.h>

/* Whose step it is: what a test kills there. */
typedef enum att_step_role {
    ATT_ROLE_LEADER = 0,   /* the agent that owns the group */
    ATT_ROLE_AGENT = 1,    /* an agent that votes */
    ATT_ROLE_REGISTRY = 2, /* the agent that owns the group's registration, or the turns */
    ATT_ROLE_RANK = 3,     /* a rank's thread inside its call */
    ATT_ROLE_HOME = 4,     /* the helper thread of the process of rank 0 */
    ATT_ROLE_COUNT = 5
} att_step_role_t;

typedef enum att_step {
    ATT_STEP_PLANNED = 0,     /* leader: the optimizer gave a list; nothing is written yet */
    ATT_STEP_OPENED = 1,      /* leader: home word is OPEN */
    ATT_STEP_PREPARED = 2,    /* agent: schedule written, hold set on this node's lanes */
    ATT_STEP_VOTED = 3,       /* leader: every agent said yes or one said no */
    ATT_STEP_COMMITTED = 4,   /* leader: home word is COMMITTED; nobody is told yet */
    ATT_STEP_ABORTED = 5,     /* leader: home word is ABORTED; nobody is told yet */
    ATT_STEP_PLAYED = 6,      /* leader: the list was played out: the incumbent holds */
    ATT_STEP_SETTLED = 7,     /* leader: the task is settled */
    ATT_STEP_TOLD = 8,        /* leader: the outcome is on its way to every node */
    ATT_STEP_CLEARED = 9,     /* leader: every node has recorded the outcome */
    ATT_STEP_ASKED = 10,      /* leader: the turn is asked for */
    ATT_STEP_TAKEN = 11,      /* leader: the turn is held on every node of the group */
    ATT_STEP_GIVEN = 12,      /* leader: the turn is given back */
    ATT_STEP_REGISTERED = 13, /* agent: its ranks are told to the registry's owner */
    ATT_STEP_JOINED = 14,     /* agent: it knows the group's leader and its place in the tree */
    ATT_STEP_REACHED = 15,    /* agent: a test resolve reached the home's helper */
    ATT_STEP_RECEIVED = 16,   /* agent: PREPARE is here; nothing is written yet */
    ATT_STEP_ANSWERED = 17,   /* agent: its node's vote (with those below it) is on its way */
    ATT_STEP_RECORDED = 18,   /* agent: the outcome is in its segment */
    ATT_STEP_YIELDED = 19,    /* agent: its node's turn is given to a group over several nodes */
    ATT_STEP_ENTERED = 20,    /* registry: a registration is taken */
    ATT_STEP_ANNOUNCED = 21,  /* registry: the group's members are told */
    ATT_STEP_GRANTED = 22,    /* registry: a turn is granted */
    ATT_STEP_DROPPED = 23,    /* registry: a group that is gone is forgotten */
    ATT_STEP_HELD = 24,       /* rank: its call found the hold bit */
    ATT_STEP_WAITING = 25,    /* rank: it stands at an undecided fence */
    ATT_STEP_RESOLVING = 26,  /* rank: its time W is over; it asks the home, or swaps the word */
    ATT_STEP_ABSORBED = 27,   /* rank: the outcome is taken over, the hold bit is gone */
    ATT_STEP_LISTENING = 28,  /* home: the helper's address is published */
    ATT_STEP_QUERIED = 29,    /* home: a request is here; the word is as it was */
    ATT_STEP_RESOLVED = 30,   /* home: the word is decided; the reply is not sent yet */
    ATT_STEP_COUNT = 31
} att_step_t;

const char *att_step_name(att_step_t step); /* "planned", ...; "unknown" */
att_step_role_t att_step_role(att_step_t step);
const char *att_step_role_name(att_step_role_t role);

/* Read ATTUNE_FAULT; `path` (may be NULL or "") is the file that gets one line a step. */
int att_step_init(const char *path, att_error_t *error);
void att_step_reached(att_step_t step, uint32_t task, uint32_t txn, uint64_t call);
void att_step_close(void);

#endif
