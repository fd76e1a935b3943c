#include "cli/trace_open.h"

#include "base/log.h"
#include "cli/run_end.h"

#include <stdio.h>

const char *att_trace_damage_text(const struct att_trace *trace, const char *run, char *text,
                                  size_t size)
{
    uint32_t count, told = 0;
    const att_trace_damage_t *first = NULL, *damage = att_trace_damage(trace, &count);
    bool growing = count > 0 && att_run_under_way(run);
    for (uint32_t i = 0; i < count; i++) {
        if (growing && damage[i].torn_end)
            continue;
        if (told++ == 0)
            first = &damage[i];
    }
    char more[48] = "";
    if (told > 1)
        snprintf(more, sizeof more, " (and %u more file%s)", told - 1, told == 2 ? "" : "s");
    snprintf(text, size, "%s%s", first != NULL ? first->text : "", more);
    return text;
}

int att_trace_open_told(const char *run, struct att_trace **trace, att_error_t *error)
{
    char text[480];
    int status = att_trace_open(run, trace, error);
    if (status == ATT_OK && att_trace_damage_text(*trace, run, text, sizeof text)[0] != '\0')
        att_log(ATT_LOG_WARN, "%s", text);
    return status;
}
