/*
 * probe: does something with code that is not trusted in a process that is thrown away, before the
 * same is done here. Loading a library runs its constructors; what they do to a process, a crash,
 * an exit or an endless loop, they do to this one.
 *
 * For tools without threads, MPI or job memory; the sidecar has its workers (search/child.h).
 */
#ifndef ATT_SEARCH_PROBE_H
#define ATT_SEARCH_PROBE_H

#include "base/status.h"

#define ATT_PROBE_DEADLINE_S 10.0

typedef void (*att_probe_fn)(void *context);

/* ATT_OK when `attempt` returned. -ATT_EPLUGIN when it crashed, ended its process or took longer
 * than the deadline; the text is `what` and then that, as in
 * "FILE: when loaded it crashed (signal 11, Segmentation fault)". -ATT_ESYSTEM when there is no
 * process. What the attempt prints is dropped. */
int att_probe(att_probe_fn attempt, void *context, double deadline_s, const char *what,
              att_error_t *error);

#endif
