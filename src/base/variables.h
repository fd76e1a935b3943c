/*
 * variables: the ATTUNE_ variables of an environment that nothing of attune reads: misspelt ones.
 *
 * Known are those of the options table, those that parts of attune read besides, and those that its
 * tests, benchmarks and job scripts, and the module files of a site, set for themselves.
 */
#ifndef ATT_BASE_VARIABLES_H
#define ATT_BASE_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* hint: " (did you mean 'ATTUNE_X'?)", or "". */
typedef void (*att_unknown_variable_fn)(void *context, const char *name, const char *hint);

/* Each one of `environment` ("NAME=VALUE", ends with NULL) that begins with ATTUNE_, is not empty
 * and not known; names are cut at 80 characters. Returns how many. */
size_t att_variables_unknown(const char *const *environment, att_unknown_variable_fn each,
                             void *context);
/* One warning in the log for each of this process. */
void att_variables_warn(void);

/* Set, and neither empty nor 0. */
static inline bool att_variable_is_on(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' && strcmp(value, "0") != 0;
}

#endif
