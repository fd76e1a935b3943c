#include "profile/trace_mode.h"

#include "base/names.h"
#include "profile/stream_writer.h"

#include <stdio.h>
#include <string.h>

int att_trace_mode_parse(const char *text, const char *where, att_trace_mode_t *mode,
                         att_error_t *error)
{
    *mode = (att_trace_mode_t){.limit_bytes = ATT_TRACE_LIMIT};
    if (strcmp(text, "off") == 0)
        return ATT_OK;
    mode->on = true;
    if (strcmp(text, "on") == 0)
        return ATT_OK;
    mode->ring = strncmp(text, "ring:", 5) == 0;
    const char *size = mode->ring ? text + 5 : strncmp(text, "on:", 3) == 0 ? text + 3 : "";
    if (att_bytes_parse(size, &mode->limit_bytes) == ATT_OK &&
        mode->limit_bytes >= ATT_STREAM_RING && mode->limit_bytes <= INT64_MAX)
        return ATT_OK;
    return att_fail(error, ATT_EUSAGE,
                    "%s: '%.80s' is not accepted; expected off, on, on:SIZE or ring:SIZE with a "
                    "SIZE from %uM",
                    where, text, ATT_STREAM_RING >> 20);
}

const char *att_trace_mode_text(const att_trace_mode_t *mode, char *text, size_t size)
{
    char bytes[24];
    if (!mode->on)
        snprintf(text, size, "off");
    else
        snprintf(text, size, "%s:%s", mode->ring ? "ring" : "on",
                 att_bytes_text(mode->limit_bytes, bytes, sizeof bytes));
    return text;
}
