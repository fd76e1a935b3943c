/*
 * child: a process tree for code that is not trusted. A supervisor is forked early (before MPI,
 * threads and mapped job memory) and forks one worker whenever it is asked to, so that a worker's
 * death costs that worker only and the caller never forks again.
 *
 *     caller --control socket--> supervisor --fork--> worker 1, worker 2, ...
 *       \________ one stream socket per worker ______/
 *
 * Supervisor and workers die with the caller (PR_SET_PDEATHSIG, and end of file on their sockets),
 * keep none of its files except standard error, and have default signal handling.
 */
#ifndef ATT_SEARCH_CHILD_H
#define ATT_SEARCH_CHILD_H

#include "base/status.h"

#define ATT_CHILD_WORKERS 64 /* at one time */

struct att_child;

/* What a worker does: serve its socket until end of file. Its return ends the worker. */
typedef void (*att_child_fn)(int fd);

/* Call from the main thread: the tree dies with the thread that started it. */
int att_child_start(att_child_fn serve, struct att_child **child, att_error_t *error);
/* Kills all workers and the supervisor, waits for the supervisor. NULL is fine. */
void att_child_stop(struct att_child *child);

/* A new worker: its number and our nonblocking end of its socket. -ATT_EBUSY when there are
 * ATT_CHILD_WORKERS already, -ATT_EPLUGIN when the supervisor is gone. */
int att_child_worker(struct att_child *child, int *number, int *fd, att_error_t *error);
/* Kill a worker (SIGKILL). */
void att_child_kill(struct att_child *child, int number);
/* 1 and the wait status when the worker has ended, 0 while it lives; -1: the supervisor is gone. */
int att_child_ended(struct att_child *child, int number, int *status);
/* The caller is done with this number; it is used again once the worker has ended. */
void att_child_release(struct att_child *child, int number);

#endif
