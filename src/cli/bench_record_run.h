/*
 * bench_record_run: the measuring part of `attune record`: one recording a row, driver 0 says what
 * is measured next and all drivers measure it.
 */
#ifndef ATT_CLI_BENCH_RECORD_RUN_H
#define ATT_CLI_BENCH_RECORD_RUN_H

#include "cli/bench_driver.h"

/* Before anything is opened: -ATT_EUNSUPPORTED when this NCCL cannot do what record was asked for.
 * Nothing to check in attune bench. */
int att_bench_record_check(const att_bench_job_t *job, att_error_t *error);
/* All drivers call it. *passed is false when results were wrong (on driver 0; true elsewhere).
 * -ATT_ETIMEOUT when the budget ended before everything was measured. */
int att_bench_record_run(att_bench_driver_t *driver, bool *passed, att_error_t *error);

#endif
