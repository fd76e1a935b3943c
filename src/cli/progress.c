#include "cli/progress.h"

#include "base/clock.h"
#include "base/names.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PERIOD_NS 1000000000u

void att_progress_init(att_progress_t *progress, const char *tasks_file, bool quiet)
{
    uint64_t now = att_clock_ns();
    *progress = (att_progress_t){.on = !quiet && isatty(STDERR_FILENO) == 1,
                                 .tasks_file = tasks_file,
                                 .started_ns = now,
                                 .next_ns = now + PERIOD_NS};
}

const char *att_progress_text(const att_tasks_t *tasks, double seconds, char *text, size_t size)
{
    const att_task_row_t *busy = NULL;
    size_t settled = 0;
    for (size_t i = 0; i < tasks->count; i++) {
        const att_task_row_t *row = &tasks->rows[i];
        if (strcmp(row->phase, "settled") == 0)
            settled++;
        else if (busy == NULL || row->trials > busy->trials)
            busy = row;
    }
    size_t n = (size_t)snprintf(text, size, "%.0f s: %zu task%s, %zu settled", seconds,
                                tasks->count, tasks->count == 1 ? "" : "s", settled);
    if (busy != NULL && n < size) {
        char bytes[24];
        n += (size_t)snprintf(text + n, size - n, "; %s %s %s, %llu trials",
                              att_collective_name(busy->collective),
                              att_bytes_text(busy->bytes, bytes, sizeof bytes), busy->phase,
                              (unsigned long long)busy->trials);
        if (n < size && busy->native.median_us > 0 && busy->tuned.median_us > 0)
            n += (size_t)snprintf(text + n, size - n, ", %.2fx",
                                  busy->native.median_us / busy->tuned.median_us);
    }
    if (n < size && tasks->cost.run_us > 0)
        snprintf(text + n, size - n, "; lost %.2f %%",
                 100 * tasks->cost.lost_us / tasks->cost.run_us);
    return text;
}

void att_progress_update(att_progress_t *progress)
{
    uint64_t now = att_clock_ns();
    if (!progress->on || now < progress->next_ns)
        return;
    progress->next_ns = now + PERIOD_NS;
    att_tasks_t tasks;
    if (att_tasks_read(progress->tasks_file, &tasks, NULL) != ATT_OK)
        return;
    char text[200];
    att_progress_text(&tasks, (double)(now - progress->started_ns) * 1e-9, text, sizeof text);
    att_tasks_free(&tasks);
    struct winsize window;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 20 &&
        strlen(text) > (size_t)window.ws_col - 10)
        text[window.ws_col - 10] = '\0';
    int width = (int)strlen(text);
    fprintf(stderr, "\rattune: %s%*s", text, progress->width > width ? progress->width - width : 0,
            "");
    fflush(stderr);
    progress->width = width;
}

void att_progress_clear(att_progress_t *progress)
{
    if (progress->width > 0)
        fprintf(stderr, "\r%*s\r", progress->width + 8, "");
    progress->width = 0;
}
