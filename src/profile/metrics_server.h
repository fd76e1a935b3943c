/*
 * metrics server: answers GET /metrics on 127.0.0.1 with the bytes that were published last.
 *
 * Runs inside somebody else's loop: a step never blocks and does a bounded amount of work whatever
 * clients do. At most 8 connections are held, each for at most 2 s; others wait in the kernel's
 * queue. No thread. Every local user may connect: publish nothing secret.
 */
#ifndef ATT_PROFILE_METRICS_SERVER_H
#define ATT_PROFILE_METRICS_SERVER_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define ATT_METRICS_CLIENTS   8
#define ATT_METRICS_CLIENT_NS 2000000000ull
#define ATT_METRICS_PAGES     2

struct att_metrics_server;

/* Listen on 127.0.0.1:port; 0: any free one. `paths`: what is served, "/metrics" first.
 * -ATT_ESYSTEM with the port. */
int att_metrics_server_create(uint32_t port, const char *const paths[ATT_METRICS_PAGES],
                              struct att_metrics_server **server, att_error_t *error);
void att_metrics_server_destroy(struct att_metrics_server *server); /* NULL is fine */
uint32_t att_metrics_server_port(const struct att_metrics_server *server);
/* The page's text from now on; copied. Answers under way keep what they began with.
 * -ATT_ENOMEM: the page stays as it was. */
int att_metrics_server_publish(struct att_metrics_server *server, uint32_t page, const char *bytes,
                               size_t length);
/* Accept, read, write as far as it goes at once. NULL is fine. */
void att_metrics_server_step(struct att_metrics_server *server, uint64_t now_ns);

#endif
