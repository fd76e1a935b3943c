/*
 * papi: the PAPI library, loaded when counters are asked for and not before: attune runs without
 * it, and the hook never loads it. Only the components that are wanted are initialised: others may
 * start a GPU's runtime or take seconds.
 *
 * Events count the calling thread (perf_event) or the machine. One instance a process; the thread
 * that opened it is the one that reads.
 */
#ifndef ATT_PROFILE_PAPI_H
#define ATT_PROFILE_PAPI_H

#include "profile/counters.h"

struct att_papi;

/* The version that attune was built for, "7.0.0"; NULL: built without PAPI. */
const char *att_papi_built_for(void);

/* `events`: comma-separated; "on" stands for the usual ones of every component that can be asked
 * without harm (see docs/counters.md), anything else is an event's name. -ATT_EUNSUPPORTED: no
 * PAPI here, with the reason; -ATT_EUSAGE. */
int att_papi_open(const char *events, struct att_papi **papi, att_error_t *error);
void att_papi_close(struct att_papi *papi); /* after its sources. NULL is fine */

/* What cannot be counted: an event, or a component as a whole ("infiniband"), and why. */
typedef void (*att_counter_missing_fn)(void *context, const char *name, const char *reason);

/* Start counting: a source for each component of which at least one event could be added. Returns
 * how many, at most `capacity`. */
uint32_t att_papi_sources(struct att_papi *papi, att_counter_source_t *sources, uint32_t capacity,
                          att_counter_missing_fn missing, void *context);

#endif
