/*
 * slurm_site: what the Slurm that is found here can do, and with which MPI attuned was built: all
 * that the launch lines depend on.
 */
#ifndef ATT_CLI_SLURM_SITE_H
#define ATT_CLI_SLURM_SITE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum att_slurm_mpi {
    ATT_SLURM_MPI_OTHER = 0,
    ATT_SLURM_MPI_OPEN = 1, /* Open MPI: pmix */
    ATT_SLURM_MPI_MPICH = 2 /* MPICH and its like: pmi2 */
} att_slurm_mpi_t;

typedef struct att_slurm_site {
    int major, minor; /* 22, 5 of "22.05.8" */
    char version[24];
    bool pmix, pmi2;     /* srun --mpi=... */
    bool has_config;     /* scontrol answered: the next ones are known */
    bool no_binding;     /* its task plugin binds no tasks, and warns when asked to */
    bool ring;           /* mpi.conf has PMIxCollFence=ring already */
    int kill_wait_s;     /* seconds between SIGTERM and SIGKILL; 0 unknown */
    int node_timeout_s;  /* seconds until a silent node counts as dead; 0 unknown */
    att_slurm_mpi_t mpi; /* of attuned */
    char mpi_text[64];   /* "Open MPI 4.1.4" */
} att_slurm_site_t;

/* --overlap came with 20.11; before, steps of a job shared processors by themselves. */
bool att_slurm_has_overlap(const att_slurm_site_t *site);
/* Before 22.05 it covered processors alone, and both steps had to ask. */
bool att_slurm_overlap_is_mutual(const att_slurm_site_t *site);

/* "slurm 22.05.8", "slurm-wlm 22.05.8", or the number alone. -ATT_EINPUT. */
int att_slurm_read_version(const char *text, size_t length, att_slurm_site_t *site,
                           att_error_t *error);
/* What `srun --mpi=list` prints: a list on lines of their own, in old versions after "srun: ". */
void att_slurm_read_mpi_list(const char *text, size_t length, att_slurm_site_t *site);
/* What `scontrol show config` prints. */
void att_slurm_read_config(const char *text, size_t length, att_slurm_site_t *site);
/* What `attuned --version` prints: "attuned 0.1 (Open MPI 4.1.4)". */
void att_slurm_read_mpi(const char *text, size_t length, att_slurm_site_t *site);

/* Ask srun, scontrol and attuned (its path, "" = not there). -ATT_ENOENT without srun; what srun
 * itself says when it does not work. */
int att_slurm_site_find(const char *attuned, att_slurm_site_t *site, att_error_t *error);
/* Ask attuned alone, for lines that do without Slurm. */
void att_slurm_site_ask(const char *attuned, att_slurm_site_t *site);
/* A Slurm of this version that is not here: pmix is assumed. -ATT_EUSAGE. */
int att_slurm_site_assume(const char *version, const char *attuned, att_slurm_site_t *site,
                          att_error_t *error);

#endif
