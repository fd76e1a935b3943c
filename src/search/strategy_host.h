/*
 * strategy host: finds strategy plugins, refuses those that do not fit (with the reason), and runs
 * searches, in this process (simulation, tests) or in a child process (the sidecar), where a
 * strategy that crashes, hangs or returns nonsense costs the search and never the job.
 */
#ifndef ATT_SEARCH_STRATEGY_HOST_H
#define ATT_SEARCH_STRATEGY_HOST_H

#include "attune/strategy.h"
#include "base/status.h"

struct att_strategy_host;
struct att_search; /* one search (strategy instance) in a host */

typedef enum att_host_mode { ATT_HOST_INPROCESS = 0, ATT_HOST_CHILD = 1 } att_host_mode_t;

/* path: colon-separated folders, may be NULL or ""; ATTUNE_PLUGIN_PATH and the library folder
 * (build tree or installed, found relative to the running program) come after it. CHILD forks at
 * once: call before MPI_Init, before threads, and without the segment mapped. */
int att_strategy_host_create(const char *path, att_host_mode_t mode, double deadline_s,
                             struct att_strategy_host **host, att_error_t *error);
void att_strategy_host_destroy(struct att_strategy_host *host); /* NULL is fine */

/* Check "NAME[:key=value,...]": the file, the parameters, and what the strategy's own check says of
 * them, before there is a search. */
int att_strategy_host_check(struct att_strategy_host *host, const char *spec, att_error_t *error);

/* One found file: strategy, or the reason why it is refused. For `attune plugins`. */
typedef struct att_plugin_entry {
    const char *path;
    const att_strategy_t *strategy; /* NULL when refused */
    const char *refusal;            /* NULL when accepted */
} att_plugin_entry_t;
typedef void (*att_plugin_fn)(void *context, const att_plugin_entry_t *entry);
int att_strategy_host_list(const char *path, att_plugin_fn each, void *context, att_error_t *error);

/* A search. Requests are answered at once in process, later in a child: *_poll returns 1 when the
 * answer is there, 0 when not yet, negative when the search failed (-ATT_EPLUGIN: text says crash,
 * deadline, nonsense). */
int att_search_begin(struct att_strategy_host *host, const char *spec, const att_space_t *space,
                     uint64_t seed, struct att_search **search, att_error_t *error);
int att_search_ask(struct att_search *search, uint32_t max, att_error_t *error); /* send */
int att_search_poll(struct att_search *search, att_setting_t *settings, uint32_t *count,
                    att_error_t *error); /* count = 0: finished, or waiting for open questions */
/* Usable samples that the strategy wants for a setting of the latest answer; 0: no wish. */
uint32_t att_search_samples(const struct att_search *search, uint32_t index);
int att_search_tell(struct att_search *search, const att_setting_t *setting,
                    const att_result_t *result, att_error_t *error);
int att_search_best(struct att_search *search, att_setting_t *best, att_error_t *error);
void att_search_end(struct att_search *search); /* NULL is fine */

/* What searches in process have used since the host was made; zeros for a child, whose time is its
 * own. */
typedef struct att_host_usage {
    uint64_t asks;
    uint64_t ask_ns;          /* wall time in them */
    uint64_t offline_samples; /* of the strategies (include/attune/strategy.h) */
} att_host_usage_t;
void att_strategy_host_usage(const struct att_strategy_host *host, att_host_usage_t *usage);

#endif
