/*
 * chain_library: the file that NCCL would have taken a tuner or profiler from without attune, as
 * src/plugin/{plugin_open,net,tuner,profiler}.cc of each version look for it (before 2.26
 * src/misc/tuner.cc). What is found is never closed.
 */
#ifndef ATT_HOOK_CHAIN_LIBRARY_H
#define ATT_HOOK_CHAIN_LIBRARY_H

#include <stdint.h>

/* `value` as given, then lib<stem>-<value>.so when that is a bare word; NULL when there is none.
 * stem as "nccl-tuner". */
void *att_chain_open(const char *value, const char *stem);

/* The net plugin's library, where NCCL `version` (0: unknown, as a new one) takes what it did not
 * find otherwise: before 2.26 opened anew by its name, since then only what NCCL keeps open as net
 * plugin, of several the last. NULL when there is none. */
void *att_chain_net_library(uint32_t version);

#endif
