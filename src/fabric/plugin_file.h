/*
 * plugin_file: where the files of plugins come from, as src/plugin/plugin_open.cc and net.cc look for
 * them. The net plugin is opened and kept as NCCL does, because the others may come from its file; the
 * fabric moves no data with it and calls nothing of it.
 */
#ifndef ATT_FABRIC_PLUGIN_FILE_H
#define ATT_FABRIC_PLUGIN_FILE_H

/* `name` as given, else libnccl-<kind>-<name>.so when it is a bare word; NULL or "":
 * libnccl-<kind>.so. NULL when there is none, said at INFO. */
void *att_plugin_find(const char *kind, const char *name);

/* Opens the net plugin named by `value` (NCCL_NET_PLUGIN, may be NULL), once a process: the first of
 * the list with an ncclNetPlugin_vN that this version knows. */
void att_plugin_net_load(const char *value);

/* The net plugin's file, to be closed by the caller; NULL when there is none. Before 2.26 whatever
 * `value` names, net plugin or not. */
void *att_plugin_net_library(const char *value);

#endif
