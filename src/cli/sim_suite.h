/*
 * sim_suite: every shipped surface, and which of them are held out: not looked at while the default
 * strategy is designed, and reported apart.
 *
 * data/suite.json lists them, in batches: those that came to be known together. Of a batch of n the
 * round(n / 3) surfaces with the smallest 64-bit FNV-1a hash of their names are held out, so that
 * nobody chooses and no later batch changes it. Batch 0, known before the rule, has none.
 */
#ifndef ATT_CLI_SIM_SUITE_H
#define ATT_CLI_SIM_SUITE_H

#include "cli/sim_options.h"

#include <jansson.h>

#define ATT_SIM_SUITE_MOST 512
#define ATT_SIM_SUITE_NAME 128

/* One line of the contest: a surface, a task of it and a load. */
typedef struct att_sim_suite_entry {
    char surface[ATT_SIM_SUITE_NAME];
    char label[192];
    int collective;
    uint64_t bytes;
    char load[32];
    int held_out;
} att_sim_suite_entry_t;

typedef struct att_sim_suite {
    json_t *document; /* owns the names of the strategies */
    uint32_t strategy_count;
    const char *strategies[ATT_SIM_STRATEGIES];
    uint32_t count;
    att_sim_suite_entry_t *entries;
} att_sim_suite_t;

/* The bytes of a suite.json, checked as far as that needs no surface. -ATT_EINPUT, -ATT_EVERSION or
 * -ATT_EFULL name the place. The caller owns *document. */
int att_sim_suite_parse(const char *bytes, size_t length, json_t **document, att_error_t *error);

/* `path` NULL: suite.json of ATTUNE_DATA_DIR, the source tree or the installed data folder. Opens
 * every surface once to learn its tasks and loads. Surfaces that lie beside the listed ones and are
 * not listed are warned about and taken in. */
int att_sim_suite_read(const char *path, att_sim_suite_t *suite, att_error_t *error);
void att_sim_suite_free(att_sim_suite_t *suite); /* NULL is fine */

/* 64-bit FNV-1a. */
uint64_t att_sim_suite_hash(const char *surface);

#endif
