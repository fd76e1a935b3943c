/*
 * plugin: the tuner, profiler and env plugins of this process, loaded and closed as NCCL does.
 *
 * NCCL_TUNER_PLUGIN and NCCL_PROFILER_PLUGIN: a path as given, else libnccl-<kind>-<word>.so;
 * unset: libnccl-<kind>.so; "STATIC_PLUGIN" (or a beginning of it): the program itself; "none".
 * Where there is no such file: the net plugin's (fabric/plugin_file.h). The newest symbol that this
 * version knows wins (tuner v6 to v2, profiler v6 to v4, env v2, v1). A library is closed with the
 * last communicator that used it; a failed load is not tried again. NCCL_ENV_PLUGIN is read once, at
 * the first call.
 */
#ifndef ATT_FABRIC_PLUGIN_H
#define ATT_FABRIC_PLUGIN_H

#include "fabric/plugin_abi.h"

/* NULL when there is none. Each non-NULL answer is given back with the matching release. */
const ncclTuner_v6_t *att_plugin_tuner(bool *has_chunks);
void att_plugin_release_tuner(void);
const ncclProfiler_v6_t *att_plugin_profiler(void);
void att_plugin_release_profiler(void);

/* The variable as the env plugin, or else the environment, gives it. */
const char *att_plugin_getenv(const char *name);
/* The same as a whole number: `fallback` when unset, not a number, or NCCL's "-1/-2 = unset". */
int att_plugin_getenv_int(const char *name, int fallback);
/* The same for what NCCL caches (NCCL_PARAM): the first value that is read holds for the process,
 * unless NCCL_NO_CACHE lists the variable or says ALL (src/param/param.cc). */
int att_plugin_param_int(const char *name, int fallback);

#endif
