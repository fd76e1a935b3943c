/*
 * messenger: messages between the agents of one sidecar, over one duplicated MPI communicator,
 * point to point and nonblocking. The only file of the sidecar besides main that knows MPI.
 */
#ifndef ATT_CONTROL_MESSENGER_H
#define ATT_CONTROL_MESSENGER_H

#include "base/status.h"

#include <stdint.h>

#define ATT_MESSAGE_BYTES 4096

struct att_messenger;

typedef void (*att_message_fn)(void *context, uint32_t from, const void *bytes, uint32_t size);

/* After MPI_Init. */
int att_messenger_create(struct att_messenger **messenger, att_error_t *error);
/* Before MPI_Finalize; NULL is fine. Waits a moment for what was sent; what MPI has not finished
 * then, as another agent takes nothing, stays in memory until the process ends. */
void att_messenger_destroy(struct att_messenger *messenger);
/* Own number and number of agents; 0 and 1 for NULL. */
uint32_t att_messenger_self(const struct att_messenger *messenger);
uint32_t att_messenger_count(const struct att_messenger *messenger);
/* Copies the bytes. A message to oneself is delivered at the next poll. */
int att_messenger_send(struct att_messenger *messenger, uint32_t to, const void *bytes,
                       uint32_t size);
/* Deliver what has arrived; returns the number of messages. */
uint32_t att_messenger_poll(struct att_messenger *messenger, att_message_fn each, void *context);
/* Messages to that agent that MPI has not finished to send: it does not look, or was stopped. */
uint32_t att_messenger_unsent(const struct att_messenger *messenger, uint32_t to);

#endif
