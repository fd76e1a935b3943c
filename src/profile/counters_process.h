/*
 * counters of a process: software and hardware counters of every thread of another process of this
 * user, from outside, with the kernel's perf events. The process itself does nothing for it: no
 * library is loaded there and no call of it is slower, but for what the kernel adds to a switch of
 * a counted thread.
 *
 * PAPI is not asked for these: its attach counts one thread only, and refuses where the machine has
 * no hardware counters, software events included.
 */
#ifndef ATT_PROFILE_COUNTERS_PROCESS_H
#define ATT_PROFILE_COUNTERS_PROCESS_H

#include "profile/counters.h"
#include "profile/papi.h"

/* Threads that one process is counted with; of others that it has at that moment it is said how
 * many. Threads that counted ones start later are counted with them. */
#define ATT_COUNTER_THREADS 64

/* Begin to count process `pid` (of this pid namespace), known as `index`. Events that cannot be
 * counted are told. -ATT_ENOENT: no such process; -ATT_EUNSUPPORTED: none of them can be. */
int att_counters_process(int32_t pid, uint32_t index, att_counter_source_t *source,
                         att_counter_missing_fn missing, void *context, att_error_t *error);

#endif
