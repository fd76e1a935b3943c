/*
 * plugin: one strategy file: finding it, loading it, and refusing it with the reason.
 *
 * A file is loaded once and never unloaded; the pointers given out stay valid until exit.
 */
#ifndef ATT_SEARCH_PLUGIN_H
#define ATT_SEARCH_PLUGIN_H

#include "attune/strategy.h"
#include "base/status.h"
#include "search/strategy_host.h"

#define ATT_PLUGIN_PREFIX     "libattune-strategy-"
#define ATT_PLUGIN_SUFFIX     ".so"
#define ATT_PLUGIN_NAME       64 /* longest strategy name + 1 */
#define ATT_PLUGIN_PARAMETERS 64 /* most parameters of one strategy */

/* The search path: `path`, ATTUNE_PLUGIN_PATH, and the library folders next to the running program
 * (../lib/attune and the installed libdir), colon-separated, empty parts dropped. The caller frees
 * it. NULL only without memory. */
char *att_plugin_path(const char *path);

/* Load the file and check it: symbol, ABI number, size, name, ops, parameter table.
 * Errors: -ATT_ENOENT, -ATT_EVERSION (ABI), -ATT_EPLUGIN (anything else); the text begins with the
 * file. */
int att_plugin_load(const char *file, const att_strategy_t **strategy, att_error_t *error);

/* The same after a trial in another process (search/probe.h), so that a constructor that crashes,
 * hangs or exits is -ATT_EPLUGIN with the file. For tools without threads. */
int att_plugin_load_probed(const char *file, double deadline_s, const att_strategy_t **strategy,
                           att_error_t *error);

/* Load the first libattune-strategy-<name>.so on `path` (from att_plugin_path). When there is none
 * the text names the folders and the strategies that are there. */
int att_plugin_find(const char *path, const char *name, const att_strategy_t **strategy,
                    att_error_t *error);

/* Load, after a trial, and call `each` for every strategy file on `path`, folder by folder, in
 * alphabetical order; a file hidden by an earlier one of the same name is listed as refused. */
int att_plugin_each(const char *path, att_plugin_fn each, void *context, att_error_t *error);

#endif
