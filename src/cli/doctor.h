/*
 * doctor: why attune is active or not on this machine and for this command, and what in the
 * machine's setup makes NCCL slow. Each check passes, warns, fails or is skipped, with the remedy.
 */
#ifndef ATT_CLI_DOCTOR_H
#define ATT_CLI_DOCTOR_H

#include "base/config.h"
#include "base/status.h"
#include "cli/places.h"

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>

#define ATT_DOCTOR_COPIES 16

typedef enum att_check_status {
    ATT_CHECK_PASS = 0,
    ATT_CHECK_WARN = 1,
    ATT_CHECK_FAIL = 2,
    ATT_CHECK_SKIP = 3
} att_check_status_t;

/* One NCCL on this machine. */
typedef struct att_nccl_copy {
    char path[PATH_MAX];
    const char *found; /* "mapped", "loader", "pip", "static" */
    int version;       /* NCCL_VERSION_CODE, 0: it could not be asked */
    bool fabric;       /* attune's own, for CPU memory */
    bool pnccl;        /* it has the profiling names, so that a preload can stand before it */
} att_nccl_copy_t;

typedef struct att_doctor {
    const char *root; /* "" or a folder whose proc, sys, etc, usr are looked at instead */
    char **command;   /* NULL: none */
    double seconds;   /* longest time that the command is watched */
    att_places_t places;
    json_t *checks, *capabilities;
    json_t *conf; /* what NCCL's configuration files set */
    int fails;
    att_nccl_copy_t copies[ATT_DOCTOR_COPIES];
    int copy_count;
    bool mixed;          /* one process has mapped several */
    int version;         /* of the NCCL that is meant, 0 unknown */
    att_config_t config; /* --variants, --variants-memory */
    bool variants_given; /* by the command line */
    bool variant_threads, variant_transports,
        variant_buffers; /* asked for, and nothing is in the way */
} att_doctor_t;

int att_doctor_main(int argc, char **argv);

/* remedy NULL: there is nothing to do. The format is what was found. */
void att_doctor_add(att_doctor_t *d, const char *id, att_check_status_t status, const char *remedy,
                    const char *format, ...) __attribute__((format(printf, 5, 6)));
/* The environment that NCCL will see: the variable, or what its configuration files set; NULL. */
const char *att_doctor_variable(const att_doctor_t *d, const char *name);

/* doctor_nccl.c: find the copies, and check them, the plugin symbols and pinned variables;
 * capabilities per knob. */
void att_doctor_nccl(att_doctor_t *d);
/* doctor_variants.c: communicator variants; after the copies are known. */
void att_doctor_variants(att_doctor_t *d);
/* doctor_watch.c: run the command until it has mapped an NCCL or the time is over. */
void att_doctor_watch(att_doctor_t *d);
/* -1 when there is no more room; the copy is asked for its version in a child process. */
int att_doctor_copy(att_doctor_t *d, const char *path, const char *found);
/* doctor_parts.c: switches, segment, sidecar, clock. */
void att_doctor_parts(att_doctor_t *d);
/* doctor_machine.c: what NCCL's tuning guide asks of a machine. */
void att_doctor_machine(att_doctor_t *d);

/* First line of root/path, cut to size; false when it is not there. */
bool att_doctor_line(const att_doctor_t *d, const char *path, char *line, size_t size);

#endif
