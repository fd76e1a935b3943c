/*
 * pinger: the small messages by which agents compare their clocks, on a communicator of their own:
 * a ping must not wait behind a vote. Nonblocking. Knows MPI, like messenger and main.
 */
#ifndef ATT_CONTROL_PINGER_H
#define ATT_CONTROL_PINGER_H

#include "base/status.h"

#include <stdint.h>

typedef enum att_ping_type {
    ATT_PING_INVITE = 1, /* child to parent: a burst, please */
    ATT_PING_ACCEPT = 2, /* parent answers pings at once from now on */
    ATT_PING_LATER = 3,  /* parent has no synchronised clock yet, or another child */
    ATT_PING_PING = 4,
    ATT_PING_PONG = 5,
    ATT_PING_END = 6
} att_ping_type_t;

typedef struct att_ping {
    uint32_t type;
    uint32_t burst; /* number of the child's burst */
    uint32_t sequence;
    uint32_t uncertainty_ns; /* PONG: of the parent's reference time */
    int64_t sent_ns;         /* PING, and back in PONG: child's clock */
    int64_t received_ns;     /* PONG: reference time at which the PING came */
    int64_t answered_ns;     /* PONG: reference time at which the PONG left */
} att_ping_t;

struct att_pinger;

/* After MPI_Init, by all agents together. */
int att_pinger_create(struct att_pinger **pinger, att_error_t *error);
/* As att_messenger_destroy. */
void att_pinger_destroy(struct att_pinger *pinger);
/* False: it was not sent, because too many earlier ones have not left yet. */
int att_pinger_send(struct att_pinger *pinger, uint32_t to, const att_ping_t *ping);
/* 1 and a message, or 0: there is none. */
int att_pinger_receive(struct att_pinger *pinger, uint32_t *from, att_ping_t *ping);

#endif
