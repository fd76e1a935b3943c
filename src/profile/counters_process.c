#include "profile/counters_process.h"

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *name;
    uint32_t type;
    uint64_t config;
    bool in_kernel; /* happens there: without the kernel's part it would read 0 */
} events[] = {
    {"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, false},
    {"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, true},
    {"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, true},
    {"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, false},
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, false},
    {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, false},
};
#define EVENTS (sizeof events / sizeof events[0])
_Static_assert(EVENTS <= ATT_COUNTER_EVENTS, "they fit a source");

typedef struct process {
    int32_t pid;
    uint32_t threads, count;
    int fd[ATT_COUNTER_THREADS][EVENTS]; /* -1: the thread was gone */
} process_t;

static int open_event(size_t event, int32_t thread, bool with_kernel)
{
    struct perf_event_attr attr = {.size = sizeof attr,
                                   .type = events[event].type,
                                   .config = events[event].config,
                                   .inherit = 1,
                                   .exclude_kernel = !with_kernel,
                                   .exclude_hv = !with_kernel,
                                   .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
                                                  PERF_FORMAT_TOTAL_TIME_RUNNING};
    return (int)syscall(SYS_perf_event_open, &attr, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static const char *why(int error, char *text, size_t size)
{
    int paranoid = -1;
    switch (error) {
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
        return "this machine has no counter for it";
    case EACCES:
    case EPERM: {
        FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
        if (file != NULL && fscanf(file, "%d", &paranoid) != 1)
            paranoid = -1;
        if (file != NULL)
            fclose(file);
        snprintf(text, size, "not permitted: kernel.perf_event_paranoid is %d", paranoid);
        return text;
    }
    case EMFILE:
        return "no more files can be opened (ulimit -n)";
    default:
        snprintf(text, size, "%s", strerror(error));
        return text;
    }
}

static uint32_t list_threads(int32_t pid, int32_t threads[ATT_COUNTER_THREADS], uint32_t *more)
{
    char path[48];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    uint32_t count = 0;
    *more = 0;
    struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        int thread = atoi(entry->d_name);
        if (thread <= 0)
            continue;
        if (count < ATT_COUNTER_THREADS)
            threads[count++] = thread;
        else
            ++*more;
    }
    if (folder != NULL)
        closedir(folder);
    return count;
}

static int read_process(void *context, int64_t *values)
{
    const process_t *p = context;
    for (uint32_t e = 0; e < p->count; e++) {
        double sum = 0;
        for (uint32_t t = 0; t < p->threads; t++) {
            struct {
                uint64_t value, enabled, running;
            } now;
            if (p->fd[t][e] < 0 || read(p->fd[t][e], &now, sizeof now) != sizeof now)
                continue;
            /* Hardware that is shared among more events than it has: scaled up. */
            sum += now.running > 0 && now.running < now.enabled
                       ? (double)now.value * ((double)now.enabled / (double)now.running)
                       : (double)now.value;
        }
        values[e] = (int64_t)sum;
    }
    return kill(p->pid, 0) != 0 && errno == ESRCH ? -ATT_ENOENT : ATT_OK;
}

static void close_process(void *context)
{
    process_t *p = context;
    for (uint32_t t = 0; t < p->threads; t++)
        for (uint32_t e = 0; e < p->count; e++)
            if (p->fd[t][e] >= 0)
                close(p->fd[t][e]);
    free(p);
}

/* One event on every thread; 1, or 0 with errno when the first one refuses. */
static int add_event(process_t *p, const int32_t *threads, size_t event)
{
    bool with_kernel = true;
    int first = open_event(event, threads[0], true);
    if (first < 0 && (errno == EACCES || errno == EPERM) && !events[event].in_kernel) {
        with_kernel = false;
        first = open_event(event, threads[0], false);
    }
    if (first < 0)
        return 0;
    p->fd[0][p->count] = first;
    for (uint32_t t = 1; t < p->threads; t++)
        p->fd[t][p->count] = open_event(event, threads[t], with_kernel);
    return 1;
}

int att_counters_process(int32_t pid, uint32_t index, att_counter_source_t *source,
                         att_counter_missing_fn missing, void *context, att_error_t *error)
{
    int32_t threads[ATT_COUNTER_THREADS];
    uint32_t more;
    char text[96], first[96] = "";
    process_t *p = calloc(1, sizeof *p);
    if (p == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory");
    p->pid = pid;
    p->threads = list_threads(pid, threads, &more);
    if (p->threads == 0) {
        free(p);
        return att_fail(error, ATT_ENOENT, "process %d is not there", (int)pid);
    }
    *source = (att_counter_source_t){.scope = ATT_COUNTER_PROCESS,
                                     .process = index,
                                     .pid = pid,
                                     .context = p,
                                     .read = read_process,
                                     .close = close_process};
    snprintf(source->name, sizeof source->name, "process %u", index);
    for (size_t e = 0; e < EVENTS; e++) {
        if (!add_event(p, threads, e)) {
            const char *reason = why(errno, text, sizeof text);
            if (first[0] == '\0')
                snprintf(first, sizeof first, "%.95s", reason);
            missing(context, events[e].name, reason);
            continue;
        }
        snprintf(source->events[p->count].name, ATT_COUNTER_NAME, "%s", events[e].name);
        source->count = ++p->count;
    }
    if (more > 0) {
        snprintf(text, sizeof text, "%u of its %u threads are not counted", more,
                 more + ATT_COUNTER_THREADS);
        missing(context, "threads", text);
    }
    if (p->count > 0)
        return ATT_OK;
    close_process(p);
    return att_fail(error, ATT_EUNSUPPORTED, "nothing of process %d can be counted: %s", (int)pid,
                    first);
}
