/*
 * bench_table: runs all rows, once or for a time, and reports them.
 */
#ifndef ATT_CLI_BENCH_TABLE_H
#define ATT_CLI_BENCH_TABLE_H

#include "cli/bench_driver.h"

/* All drivers call it. *passed is false when results were wrong (on driver 0; true elsewhere). */
int att_bench_table_run(att_bench_driver_t *driver, bool *passed, att_error_t *error);

#endif
