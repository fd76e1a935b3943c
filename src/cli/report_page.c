#include "cli/report_page.h"

#include "cli/report_format.h"
#include "cli/report_templates.h"
#include "cli/report_view.h"

#include <stdlib.h>

int att_report_page(att_report_run_t *run, const char *path, att_error_t *error)
{
    att_out_t *out = malloc(sizeof *out);
    if (out == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory");
    att_report_view(run);
    att_template_set_t set = {.files = att_report_templates,
                              .file_count = att_report_templates_count,
                              .formats = att_report_formats,
                              .format_count = ATT_REPORT_FORMATS};
    int status = att_out_open(out, path, error);
    if (status == ATT_OK) {
        status = att_template_render(&set, "page.html", run->value, out, error);
        if (status == ATT_OK)
            status = att_out_close(out, error);
        else
            att_out_discard(out);
    }
    free(out);
    return status;
}
