/*
 * job environment: what the command gets, beside its own environment, so that NCCL in it loads the
 * hook and the hook finds the sidecar.
 */
#ifndef ATT_CLI_JOB_ENVIRONMENT_H
#define ATT_CLI_JOB_ENVIRONMENT_H

#include "base/config.h"
#include "cli/places.h"
#include "cli/job_folder.h"

/* The plugin of another that the user has named in NCCL_TUNER_PLUGIN or NCCL_PROFILER_PLUGIN; NULL
 * when none, or attune's. */
const char *att_job_environment_other(const char *variable);

/* True when the hook is to be preloaded. */
bool att_job_environment_preloads(const att_config_t *config);

/* Set the variables in this process. Called once, after the sidecar's start; `folder` is the run's.
 * -ATT_ENOENT when a part is not there. */
int att_job_environment_set(const att_places_t *places, const att_config_t *config,
                            const att_job_folder_t *folder, att_error_t *error);

#endif
