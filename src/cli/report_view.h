/* report view: a report's value with what the page needs besides: order, names, shares of the
 * largest, curves as paths. Nothing is measured or judged here. */
#ifndef ATT_CLI_REPORT_VIEW_H
#define ATT_CLI_REPORT_VIEW_H

#include "cli/report_run.h"

/* Adds to run->value, which is then no longer what --json prints. */
void att_report_view(att_report_run_t *run);

#endif
