#include "fabric/error.h"

#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { LEVEL_NONE = 0, LEVEL_WARN = 2, LEVEL_INFO = 3, LEVEL_TRACE = 5 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char last[512];

ncclResult_t att_fabric_error(ncclResult_t result, const char *format, ...)
{
    char text[sizeof last];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    pthread_mutex_lock(&mutex);
    memcpy(last, text, sizeof last);
    pthread_mutex_unlock(&mutex);
    att_log(ATT_LOG_ERROR, "%s", text);
    return result;
}

const char *att_fabric_last_error(void)
{
    static _Thread_local char copy[sizeof last];
    pthread_mutex_lock(&mutex);
    memcpy(copy, last, sizeof copy);
    pthread_mutex_unlock(&mutex);
    return copy;
}

static int debug_level(void)
{
    static _Atomic int level = -1;
    if (level < 0) {
        const char *word = getenv("NCCL_DEBUG");
        level = !word                        ? LEVEL_NONE
                : !strcasecmp(word, "INFO")  ? LEVEL_INFO
                : !strcasecmp(word, "TRACE") ? LEVEL_TRACE
                : !strcasecmp(word, "WARN")  ? LEVEL_WARN
                                             : LEVEL_NONE;
    }
    return level;
}

static void print(int level, const char *format, va_list list)
{
    char text[1024];
    vsnprintf(text, sizeof text, format, list);
    fprintf(stderr, "fabric[%d] NCCL %s %s\n", (int)getpid(), level <= LEVEL_WARN ? "WARN" : "INFO",
            text);
}

void att_fabric_logger(int level, unsigned long flags, const char *file, int line,
                       const char *format, ...)
{
    if (level > debug_level())
        return;
    va_list list;
    va_start(list, format);
    print(level, format, list);
    va_end(list);
}

void att_fabric_info(const char *format, ...)
{
    if (debug_level() < LEVEL_INFO)
        return;
    va_list list;
    va_start(list, format);
    print(LEVEL_INFO, format, list);
    va_end(list);
}
