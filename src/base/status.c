#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[ATT_STATUS_COUNT] = {"ok",
                                                    "failed",
                                                    "usage",
                                                    "malformed input",
                                                    "system error",
                                                    "no memory",
                                                    "not found",
                                                    "version mismatch",
                                                    "busy",
                                                    "full",
                                                    "timeout",
                                                    "illegal setting",
                                                    "plugin failure",
                                                    "mismatch",
                                                    "permission denied",
                                                    "unsupported",
                                                    "stale"};

const char *att_status_name(int status)
{
    int code = abs(status);
    return code < ATT_STATUS_COUNT ? names[code] : "unknown status";
}

int att_fail(att_error_t *error, att_status_t code, const char *format, ...)
{
    if (error != NULL) {
        va_list args;
        va_start(args, format);
        vsnprintf(error->text, sizeof error->text, format, args);
        va_end(args);
    }
    return -(int)code;
}

int att_fail_errno(att_error_t *error, const char *format, ...)
{
    int saved = errno;
    if (error != NULL) {
        va_list args;
        va_start(args, format);
        int n = vsnprintf(error->text, sizeof error->text, format, args);
        va_end(args);
        if (n >= 0 && (size_t)n < sizeof error->text)
            snprintf(error->text + n, sizeof error->text - (size_t)n, ": %s", strerror(saved));
    }
    errno = saved;
    return -(int)ATT_ESYSTEM;
}
