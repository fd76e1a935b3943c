/*
 * counters: hardware and software counters of an agent, of the processes that it watches and of
 * their node, read together now and then within a budget.
 *
 * A source is what is read at once: the events of one PAPI component, or those of one process. What
 * a read costs is measured before a source is used and again at every read. All sources together
 * are read at most once a step, at most every 100 ms, and so seldom that reading takes no more than
 * the budget (a share of the time); when not even once in the longer of a second and a step fits,
 * the dearest source is switched off, with the reason.
 *
 * One thread. Time is handed in, so that tests have their own.
 */
#ifndef ATT_PROFILE_COUNTERS_H
#define ATT_PROFILE_COUNTERS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define ATT_COUNTER_NAME    128
#define ATT_COUNTER_EVENTS  32 /* of one source */
#define ATT_COUNTER_SOURCES 128
#define ATT_COUNTER_REASON  160

/* Whom a source counts. */
typedef enum att_counter_scope {
    ATT_COUNTER_AGENT = 0,   /* the agent */
    ATT_COUNTER_PROCESS = 1, /* a process with the hook */
    ATT_COUNTER_NODE = 2     /* the machine, or a device of it */
} att_counter_scope_t;
const char *att_counter_scope_name(att_counter_scope_t scope);

typedef struct att_counter_event {
    char name[ATT_COUNTER_NAME];
    bool level; /* a state such as watts: not a count that grows */
} att_counter_event_t;

typedef struct att_counter_source {
    char name[64]; /* "perf_event", "process 3" */
    att_counter_scope_t scope;
    uint32_t process; /* index, of PROCESS */
    int32_t pid;
    uint32_t count;
    att_counter_event_t events[ATT_COUNTER_EVENTS];
    void *context;
    /* Values since the source began, levels as they are. 0, or -ATT_ENOENT: it is gone. */
    int (*read)(void *context, int64_t *values);
    void (*close)(void *context); /* NULL is fine */
} att_counter_source_t;

typedef enum att_counter_state {
    ATT_COUNTER_ON = 0,
    ATT_COUNTER_OFF = 1, /* by the budget */
    ATT_COUNTER_GONE = 2 /* its process has ended, or it failed */
} att_counter_state_t;

/* What is known of a source. */
typedef struct att_counter_status {
    att_counter_state_t state;
    char reason[ATT_COUNTER_REASON]; /* of OFF and GONE */
    double cost_ns;                  /* of one read, median of the last ones */
    int64_t values[ATT_COUNTER_EVENTS];
} att_counter_status_t;

/* The list of --counters: "off", or names that are separated by commas and not empty. -ATT_EUSAGE.
 * Whether this machine has them is for PAPI to say. */
int att_counters_check(const char *events, att_error_t *error);

struct att_counters;
typedef uint64_t (*att_counters_clock_fn)(void *context); /* nanoseconds, for costs */

/* budget: share of the time that reading may take, 0.001 = 0.1 %; 0: no limit. */
int att_counters_create(double budget, att_counters_clock_fn clock, void *context,
                        struct att_counters **counters);
void att_counters_destroy(struct att_counters *counters); /* NULL is fine */

/* Take it over, contents and all, and measure a read. Returns its index; -ATT_EFULL (it is closed).
 * It may be off at once: see its status. */
int att_counters_add(struct att_counters *counters, const att_counter_source_t *source);
uint32_t att_counters_count(const struct att_counters *counters);
const att_counter_source_t *att_counters_source(const struct att_counters *counters,
                                                uint32_t index);
const att_counter_status_t *att_counters_status(const struct att_counters *counters,
                                                uint32_t index);

/* How long a step (iteration) of the job takes; 0: not known. */
void att_counters_step(struct att_counters *counters, uint64_t step_ns);
/* Time between reads, nanoseconds, as budget and step have it now. */
uint64_t att_counters_interval_ns(const struct att_counters *counters);
/* Read all that are on when it is time. Returns 1 when it was. */
int att_counters_read(struct att_counters *counters, uint64_t now_ns);
/* Sources whose state is another one than told before are told once: index, or -1. */
int att_counters_changed(struct att_counters *counters);
/* What reading has taken in all, nanoseconds. */
double att_counters_spent_ns(const struct att_counters *counters);

#endif
