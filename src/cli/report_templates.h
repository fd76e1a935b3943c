/* report templates: the files of report/, which the build puts into the program. */
#ifndef ATT_CLI_REPORT_TEMPLATES_H
#define ATT_CLI_REPORT_TEMPLATES_H

#include "cli/template.h"

extern const att_template_file_t att_report_templates[];
extern const size_t att_report_templates_count;

#endif
