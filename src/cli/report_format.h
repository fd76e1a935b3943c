/* report format: how numbers of a report are written for people, each with its unit. */
#ifndef ATT_CLI_REPORT_FORMAT_H
#define ATT_CLI_REPORT_FORMAT_H

#include "cli/template.h"

#define ATT_REPORT_FORMATS 11u
extern const att_template_format_t att_report_formats[ATT_REPORT_FORMATS];

/* "30.4 us", "2.78 ms", "1.5 s"; *value in microseconds. */
void att_report_duration_text(double us, char *text, size_t size);

#endif
