/*
 * run check: everything that `attune run` can refuse before it starts or writes anything.
 */
#ifndef ATT_CLI_RUN_CHECK_H
#define ATT_CLI_RUN_CHECK_H

#include "base/config.h"
#include "cli/places.h"

/* Fills `places`; makes config->apply absolute. The text of an error is one line that names what
 * was refused and what is accepted. */
int att_run_check(att_config_t *config, att_places_t *places, att_error_t *error);

#endif
