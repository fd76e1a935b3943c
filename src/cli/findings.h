/*
 * findings: what the host fabric and the workload driver left in the run folder: fabric-*.json
 * (which fabric, how many calls were compared over ranks, how many differed) and bench-*.json
 * (how many results were wrong).
 */
#ifndef ATT_CLI_FINDINGS_H
#define ATT_CLI_FINDINGS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct att_findings {
    bool has_fabric; /* false: no file, the fields up to `mismatches` are empty */
    char fabric[16]; /* "real", "model" */
    char surface[128];
    char load[16];
    int ranks; /* most of any file */
    uint64_t calls;
    uint64_t mismatches; /* calls that ranks ran with different settings */
    bool has_bench;
    uint64_t result_errors;
} att_findings_t;

/* Sums over the files. -ATT_EINPUT, -ATT_EVERSION name the file. */
int att_findings_read(const char *run_dir, att_findings_t *findings, att_error_t *error);

#endif
