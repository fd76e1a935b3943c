#include "base/log.h"

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/one_line.h"
#include "base/status.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic int threshold = -1;
static char program[32] = "attune";
static int file = -1;

static int level_of(const char *name)
{
    static const char *const words[] = {"error", "warn", "info", "debug"};
    for (int i = 0; i < 4; i++)
        if (strcasecmp(name, words[i]) == 0)
            return i;
    return -1;
}

att_log_level_t att_log_level(void)
{
    int level = atomic_load_explicit(&threshold, memory_order_relaxed);
    if (level >= 0)
        return (att_log_level_t)level;
    const char *text = getenv("ATTUNE_LOG");
    level = text != NULL ? level_of(text) : -1;
    if (level < 0)
        level = ATT_LOG_WARN;
    atomic_store_explicit(&threshold, level, memory_order_relaxed);
    return (att_log_level_t)level;
}

void att_log_set_level_name(const char *name)
{
    int level = level_of(name);
    if (level >= 0)
        att_log_set_level((att_log_level_t)level);
}

void att_log_set_level(att_log_level_t level)
{
    atomic_store_explicit(&threshold, (int)level, memory_order_relaxed);
}

void att_log_set_name(const char *name)
{
    snprintf(program, sizeof program, "%s", name);
}

int att_log_set_file(const char *path)
{
    if (file >= 0)
        close(file);
    file = -1;
    if (path == NULL)
        return ATT_OK;
    file = att_descriptor_keep(open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    return file >= 0 ? ATT_OK : -ATT_ESYSTEM;
}

static _Atomic(att_log_site_t *) sites;

/* One write a line, so that lines of several processes do not mix. */
static void emit(att_log_level_t level, uint64_t left_out, const char *format, va_list args)
{
    static const char *const labels[] = {"error: ", "warning: ", "", "debug: "};
    char line[1024], text[sizeof line];
    int n = snprintf(line, sizeof line, "%s: %s", program, labels[level]);
    vsnprintf(text, sizeof text, format, args);
    att_one_line(text, line + n, sizeof line - 47 - (size_t)n);
    size_t length = strlen(line);
    if (left_out > 0)
        length += (size_t)snprintf(line + length, 40, " (%llu like it left out)",
                                   (unsigned long long)left_out);
    line[length++] = '\n';
    if (level <= att_log_level() && write(STDERR_FILENO, line, length) < 0)
        return; /* nowhere left to say so */
    if (file >= 0) {
        char stamp[32];
        int s = snprintf(stamp, sizeof stamp, "%.6f ", (double)att_clock_ns() * 1e-9);
        if (write(file, stamp, (size_t)s) < 0 || write(file, line, length) < 0)
            return;
    }
}

void att_log(att_log_level_t level, const char *format, ...)
{
    if (level > att_log_level() && file < 0)
        return;
    va_list args;
    va_start(args, format);
    emit(level, 0, format, args);
    va_end(args);
}

void att_log_limited(att_log_site_t *site, att_log_level_t level, const char *format, ...)
{
    uint64_t now = att_clock_ns();
    uint64_t last = atomic_load(&site->last_ns);
    if ((last != 0 && now - last < 1000000000u) ||
        !atomic_compare_exchange_strong(&site->last_ns, &last, now)) {
        atomic_fetch_add(&site->suppressed, 1);
        return;
    }
    uint64_t left_out = atomic_exchange(&site->suppressed, 0);
    va_list args;
    va_start(args, format);
    vsnprintf(site->text, sizeof site->text, format, args);
    va_end(args);
    site->level = level;
    if (last == 0) { /* once: nobody else comes here with 0 */
        site->next = atomic_load(&sites);
        while (!atomic_compare_exchange_weak(&sites, &site->next, site))
            continue;
    }
    va_start(args, format);
    emit(level, left_out, format, args);
    va_end(args);
}

static void emit_text(att_log_level_t level, uint64_t left_out, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void emit_text(att_log_level_t level, uint64_t left_out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    emit(level, left_out, format, args);
    va_end(args);
}

void att_log_finish(void)
{
    for (att_log_site_t *site = atomic_load(&sites); site != NULL; site = site->next) {
        uint64_t left_out = atomic_exchange(&site->suppressed, 0);
        if (left_out > 0)
            emit_text(site->level, left_out, "%s", site->text);
    }
}
