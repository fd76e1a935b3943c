/*
 * sde: libattune-sde.so: attune's counters as software-defined events of PAPI, sde:::attune::NAME,
 * for a program that is measured with PAPI and wants to know what attune did meanwhile.
 *
 * A program gets them by LD_PRELOAD or by linking the library; papi_native_avail -sde lists them.
 * The numbers are those of metrics.prom (ATTUNE_METRICS_FILE, or in ATTUNE_RUN_DIR), which the
 * sidecar replaces about once a second: of the whole job, without a word to the sidecar. A read
 * looks at the file at most every 100 ms. Names: docs/metrics.md.
 */
#include "base/clock.h"
#include "profile/metrics_text.h"
#include "sde/sde.h"

#include <sde_lib.h>

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define EVENTS     4096
#define NAME_BYTES 112 /* with "sde:::attune::" within PAPI's 128 */
#define LOOK_NS    100000000ull
#define FILE_BYTES (64u << 20)

typedef struct event {
    char name[NAME_BYTES];
    int registered, gauge;
    long long value;
} event_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static event_t *events; /* never moves: PAPI holds pointers into it */
static uint32_t event_count;
static uint64_t looked_ns;
static struct timespec seen;

/* --- reading the file ------------------------------------------------------------------------- */

/* "seconds" is "nanoseconds" here: events are whole numbers. Returns the factor. */
static double spell(const att_metrics_sample_t *s, char *name, size_t size)
{
    static const char prefix[] = "attune_", unit[] = "seconds";
    char text[NAME_BYTES];
    size_t skip = sizeof prefix - 1;
    snprintf(text, sizeof text, "%.*s", (int)(s->name_length - skip), s->name + skip);
    char *found = strstr(text, unit);
    size_t length;
    if (found != NULL && (found == text || found[-1] == '_'))
        length = (size_t)snprintf(name, size, "%.*snano%s", (int)(found - text), text, found);
    else
        length = (size_t)snprintf(name, size, "%s", text);
    const char *at = s->labels, *end = s->labels + s->labels_length;
    char value[64];
    while (s->labels_length > 0 && length < size - 1 &&
           att_metrics_label_next(&at, end, value, sizeof value)) {
        for (char *c = value; *c != '\0'; c++)
            if (*c <= ' ' || *c == ':' || *c == '/' || *c >= 0x7f)
                *c = '_';
        length += (size_t)snprintf(name + length, size - length, "/%s", value);
    }
    return found != NULL && (found == text || found[-1] == '_') ? 1e9 : 1;
}

static event_t *find(const char *name)
{
    for (uint32_t i = 0; i < event_count; i++)
        if (strcmp(events[i].name, name) == 0)
            return &events[i];
    if (event_count == EVENTS)
        return NULL;
    event_t *event = &events[event_count++];
    snprintf(event->name, sizeof event->name, "%s", name);
    return event;
}

static void take(const char *bytes, size_t length)
{
    const char *at = bytes, *end = bytes + length;
    att_metrics_sample_t s;
    while (att_metrics_text_next(&at, end, &s)) {
        char name[NAME_BYTES];
        static const char total[] = "_total";
        if (s.name_length < 8 || strncmp(s.name, "attune_", 7) != 0 ||
            (s.name_length == 11 && memcmp(s.name, "attune_info", 11) == 0))
            continue;
        double value = s.value * spell(&s, name, sizeof name);
        event_t *event = find(name);
        if (event == NULL || !(fabs(value) < 9e18))
            continue;
        event->value = llround(value);
        event->gauge =
            s.name_length < sizeof total - 1 ||
            memcmp(s.name + s.name_length - (sizeof total - 1), total, sizeof total - 1) != 0;
    }
}

static void file_name(char *path, size_t size)
{
    const char *file = getenv("ATTUNE_METRICS_FILE"), *run = getenv("ATTUNE_RUN_DIR");
    path[0] = '\0';
    if (file != NULL && file[0] != '\0')
        snprintf(path, size, "%s", file);
    else if (run != NULL && run[0] != '\0')
        snprintf(path, size, "%s/metrics.prom", run);
}

/* Under the lock. */
static void look(void)
{
    char path[PATH_MAX];
    struct stat s;
    uint64_t now_ns = att_clock_ns();
    if (looked_ns != 0 && now_ns - looked_ns < LOOK_NS)
        return;
    looked_ns = now_ns;
    file_name(path, sizeof path);
    if (events == NULL || path[0] == '\0' || stat(path, &s) != 0 || s.st_size > FILE_BYTES ||
        (s.st_mtim.tv_sec == seen.tv_sec && s.st_mtim.tv_nsec == seen.tv_nsec))
        return;
    FILE *file = fopen(path, "re");
    char *bytes = file != NULL ? malloc((size_t)s.st_size + 1) : NULL;
    if (bytes != NULL) {
        take(bytes, fread(bytes, 1, (size_t)s.st_size, file));
        seen = s.st_mtim;
    }
    free(bytes);
    if (file != NULL)
        fclose(file);
}

/* --- PAPI ------------------------------------------------------------------------------------- */

static long long read_event(void *parameter)
{
    pthread_mutex_lock(&lock);
    look();
    long long value = ((event_t *)parameter)->value;
    pthread_mutex_unlock(&lock);
    return value;
}

/* Those that were seen since the last time; returns how many there are in all. */
static int announce(papi_sde_fptr_struct_t *sde, papi_handle_t *handle, int again)
{
    pthread_mutex_lock(&lock);
    if (events == NULL)
        events = calloc(EVENTS, sizeof *events);
    looked_ns = 0;
    look();
    uint32_t count = event_count;
    pthread_mutex_unlock(&lock);
    *handle = sde->init("attune");
    for (uint32_t i = 0; i < count; i++) {
        event_t *event = &events[i];
        if (event->registered && !again)
            continue;
        event->registered = 1;
        sde->register_counter_cb(*handle, event->name,
                                 PAPI_SDE_RO | (event->gauge ? PAPI_SDE_INSTANT : PAPI_SDE_DELTA),
                                 PAPI_SDE_long_long, read_event, event);
        sde->describe_counter(*handle, event->name,
                              "attune, see its docs/metrics.md; of the job, once a second");
    }
    return (int)count;
}

/* Called by papi_native_avail -sde. */
__attribute__((visibility("default"))) papi_handle_t
papi_sde_hook_list_events(papi_sde_fptr_struct_t *sde)
{
    papi_handle_t handle;
    announce(sde, &handle, 1);
    return handle;
}

__attribute__((visibility("default"))) int attune_sde_update(void)
{
    papi_sde_fptr_struct_t sde;
    papi_handle_t handle;
    POPULATE_SDE_FPTR_STRUCT(sde);
    return announce(&sde, &handle, 0);
}

__attribute__((constructor)) static void begin(void)
{
    attune_sde_update();
}
