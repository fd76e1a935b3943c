/*
 * job folder: the run folder as `attune run` makes it, and its manifest.json (what was run, when,
 * where, with which options and environment, and how it ended).
 */
#ifndef ATT_CLI_JOB_FOLDER_H
#define ATT_CLI_JOB_FOLDER_H

#include "base/config.h"
#include "base/status.h"

#include <limits.h>
#include <time.h>

#define ATT_MANIFEST_VERSION 1

typedef struct att_job_folder {
    char path[PATH_MAX]; /* absolute */
    char name[NAME_MAX + 1]; /* last part of path */
    char run_id[64];
    struct timespec started; /* CLOCK_REALTIME */
} att_job_folder_t;

/* Make the folder (and those above it), or take it when it is empty. `run_id` "" makes one up;
 * `path` "" means attune-<run id>. -ATT_EUSAGE: bad id, folder not empty; -ATT_ESYSTEM. */
int att_job_folder_create(const char *path, const char *run_id, att_job_folder_t *folder,
                          att_error_t *error);
/* "<folder>/<file>"; returns text (PATH_MAX bytes). */
const char *att_job_folder_file(const att_job_folder_t *folder, const char *file, char *text);
/* Start of the run, "2025-11-29T16:47:00Z"; returns text (32 bytes are enough). */
const char *att_job_folder_when(const att_job_folder_t *folder, char *text, size_t size);

typedef struct att_manifest {
    char **argv;          /* attune's own, NULL-terminated */
    char **command;       /* NULL-terminated */
    char **environment;   /* of the command; NCCL_* and ATTUNE_* are kept; NULL = attune's own */
    const att_config_t *config;
    const char *sidecar;  /* file; "" unknown */
    const char *sidecar_end; /* how it ended, NULL while it runs */
    int exit_status;      /* of attune run; -1 while the command runs */
} att_manifest_t;

/* Write or replace manifest.json. */
int att_job_folder_manifest(const att_job_folder_t *folder, const att_manifest_t *manifest,
                            att_error_t *error);

#endif
