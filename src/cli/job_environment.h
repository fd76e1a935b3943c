/*
 * job environment: what the command gets, beside its own environment, so that NCCL in it loads the
 * hook and the hook finds the sidecar.
 */
#ifndef ATT_CLI_JOB_ENVIRONMENT_H
#define ATT_CLI_JOB_ENVIRONMENT_H

#include "base/config.h"
#include "cli/places.h"
#include "cli/job_folder.h"

/* -ATT_EUSAGE when the user's own environment already names another tuner or profiler plugin:
 * attune does not chain to it. */
int att_job_environment_check(att_error_t *error);

/* True when the hook is to be preloaded. */
bool att_job_environment_preloads(const att_config_t *config);

/* Set the variables in this process. Called once, after the sidecar's start; `folder` is the run's.
 * -ATT_ENOENT when a part is not there. */
int att_job_environment_set(const att_places_t *places, const att_config_t *config,
                            const att_job_folder_t *folder, att_error_t *error);

#endif
