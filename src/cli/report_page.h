/* report page: a report as one HTML file, from the templates in report/. */
#ifndef ATT_CLI_REPORT_PAGE_H
#define ATT_CLI_REPORT_PAGE_H

#include "cli/report_run.h"

/* "-" is standard output. Changes run->value (report_view.h). */
int att_report_page(att_report_run_t *run, const char *path, att_error_t *error);

#endif
