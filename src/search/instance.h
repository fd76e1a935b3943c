/*
 * instance: one strategy at work on one space, called directly. The strategy host uses it in
 * process, the worker uses it in its own process. Checks what the strategy returns.
 */
#ifndef ATT_SEARCH_INSTANCE_H
#define ATT_SEARCH_INSTANCE_H

#include "attune/strategy.h"
#include "base/status.h"

struct att_instance;

/* Find, load and create. `path` as att_plugin_path gives it; `space` is copied. */
int att_instance_create(const char *path, const char *spec, const att_space_t *space, uint64_t seed,
                        struct att_instance **instance, att_error_t *error);
/* The first half of create: everything that needs no space, the strategy's check included. */
int att_instance_check(const char *path, const char *spec, att_error_t *error);
void att_instance_destroy(struct att_instance *instance); /* NULL is fine */

/* A strategy without ATT_STRATEGY_BATCH is asked for one setting at a time. samples[i]: usable
 * samples that it wants for settings[i], 0 = as many as the user wants. */
int att_instance_ask(struct att_instance *instance, att_setting_t *settings, uint32_t *samples,
                     uint32_t most, uint32_t *count, att_error_t *error);
int att_instance_tell(struct att_instance *instance, const att_setting_t *setting,
                      const att_result_t *result, att_error_t *error);
int att_instance_best(struct att_instance *instance, att_setting_t *best, att_error_t *error);
/* Samples from outside of the search that the strategy used so far. */
uint64_t att_instance_offline_samples(const struct att_instance *instance);

/* Copy of a space with its subspaces behind it, one allocation for free(). NULL without memory. */
att_space_t *att_space_copy(const att_space_t *space);
/* Is this answer of a strategy sane? -ATT_EPLUGIN with what is wrong with it. */
int att_instance_sane(const att_space_t *space, const att_setting_t *settings, uint32_t most,
                      uint32_t count, att_error_t *error);

#endif
