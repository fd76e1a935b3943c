#include "profile/papi.h"

#ifndef ATTUNE_HAVE_PAPI

#include <stddef.h>

const char *att_papi_built_for(void)
{
    return NULL;
}

int att_papi_open(const char *events, struct att_papi **papi, att_error_t *error)
{
    (void)papi;
    if (att_counters_check(events, error) != ATT_OK)
        return -ATT_EUSAGE;
    return att_fail(error, ATT_EUNSUPPORTED,
                    "attune was built without PAPI (install libpapi-dev and build again)");
}

void att_papi_close(struct att_papi *papi)
{
    (void)papi;
}

uint32_t att_papi_sources(struct att_papi *papi, att_counter_source_t *sources, uint32_t capacity,
                          att_counter_missing_fn missing, void *context)
{
    (void)papi, (void)sources, (void)capacity, (void)missing, (void)context;
    return 0;
}

#else

#include "base/nearest.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <papi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMPONENTS  64
#define WANTED      256
#define ENUMERATION 20000 /* events of one component that are looked through */

/* Taken from the library by name: X(return type, name without PAPI_, arguments). */
#define FUNCTIONS                                                                                  \
    X(int, library_init, (int))                                                                    \
    X(void, shutdown, (void))                                                                      \
    X(char *, strerror, (int))                                                                     \
    X(int, num_components, (void))                                                                 \
    X(const PAPI_component_info_t *, get_component_info, (int))                                    \
    X(int, disable_component_by_name, (const char *))                                              \
    X(int, set_domain, (int))                                                                      \
    X(int, create_eventset, (int *))                                                               \
    X(int, assign_eventset_component, (int, int))                                                  \
    X(int, cleanup_eventset, (int))                                                                \
    X(int, destroy_eventset, (int *))                                                              \
    X(int, add_event, (int, int))                                                                  \
    X(int, event_name_to_code, (const char *, int *))                                              \
    X(int, event_code_to_name, (int, char *))                                                      \
    X(int, get_event_component, (int))                                                             \
    X(int, enum_cmp_event, (int *, int, int))                                                      \
    X(int, get_event_info, (int, PAPI_event_info_t *))                                             \
    X(int, start, (int))                                                                           \
    X(int, stop, (int, long long *))                                                               \
    X(int, read, (int, long long *))

typedef struct wanted {
    char name[ATT_COUNTER_NAME];
    int component; /* once known */
    int code;
    bool level;
    bool usual; /* of "on": a machine that does not have it is no surprise */
} wanted_t;

typedef struct counted {
    struct att_papi *papi;
    int set;
    uint32_t count;
} counted_t;

struct att_papi {
    void *library;
#define X(type, name, arguments) type(*name) arguments;
    FUNCTIONS
#undef X
    bool usual;
    wanted_t wanted[WANTED];
    uint32_t wanted_count;
    counted_t counted[COMPONENTS];
    uint32_t counted_count;
};

static const char *const usual_events[] = {
    "perf::TASK-CLOCK", "perf::CONTEXT-SWITCHES", "perf::CPU-MIGRATIONS", "perf::PAGE-FAULTS",
    "PAPI_TOT_CYC",     "PAPI_TOT_INS",           "PAPI_L3_TCM"};

/* Components whose events are named by device: those whose names end so are taken. */
static const struct {
    const char *component, *ending;
} usual_endings[] = {{"infiniband", "port_rcv_data"},
                     {"infiniband", "port_xmit_data"},
                     {"nvml", ":power"},
                     {"nvml", ":gpu_utilization"}};

/* What "on" does not look through, and why. */
static const struct {
    const char *component, *reason;
} by_name_only[] = {
    {"perf_event_uncore",
     "memory traffic is counted by events that differ from machine to machine: name them "
     "(papi_native_avail lists them)"},
    {"cuda", "listing its events takes seconds and may start the GPU's runtime: name them"}};

const char *att_papi_built_for(void)
{
    static char text[24];
    snprintf(text, sizeof text, "%d.%d.%d", PAPI_VERSION_MAJOR(PAPI_VERSION),
             PAPI_VERSION_MINOR(PAPI_VERSION), PAPI_VERSION_REVISION(PAPI_VERSION));
    return text;
}

/* --- loading ---------------------------------------------------------------------------------- */

static int load(struct att_papi *p, att_error_t *error)
{
    char name[32];
    snprintf(name, sizeof name, "libpapi.so.%d.%d", PAPI_VERSION_MAJOR(PAPI_VERSION),
             PAPI_VERSION_MINOR(PAPI_VERSION));
    p->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (p->library == NULL)
        p->library = dlopen("libpapi.so", RTLD_NOW | RTLD_LOCAL);
    if (p->library == NULL)
        return att_fail(error, ATT_EUNSUPPORTED, "PAPI cannot be loaded: %.300s", dlerror());
#define X(type, name, arguments)                                                                   \
    *(void **)&p->name = dlsym(p->library, "PAPI_" #name);                                         \
    if (p->name == NULL)                                                                           \
        return att_fail(error, ATT_EUNSUPPORTED, "this libpapi has no PAPI_" #name);
    FUNCTIONS
#undef X
    return ATT_OK;
}

static bool has_prefix(const char *text, const char *prefix, size_t length)
{
    return strncmp(text, prefix, length) == 0 && prefix[length] == '\0';
}

/* "nvml:::..." names its component, everything else is of perf_event or perf_event_uncore. */
static bool is_wanted(const struct att_papi *p, const char *component)
{
    if (strcmp(component, "perf_event") == 0)
        return true;
    for (uint32_t i = 0; i < p->wanted_count; i++) {
        const char *name = p->wanted[i].name, *end = strstr(name, ":::");
        if (end != NULL ? has_prefix(name, component, (size_t)(end - name))
                        : !p->wanted[i].usual && strcmp(component, "perf_event_uncore") == 0)
            return true;
    }
    for (size_t i = 0; p->usual && i < sizeof usual_endings / sizeof usual_endings[0]; i++)
        if (strcmp(component, usual_endings[i].component) == 0)
            return true;
    return false;
}

/* Components write on standard error what they did not find; the reason is asked for later. */
static int init_quietly(struct att_papi *p)
{
    int out = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0)
        dup2(null, STDERR_FILENO);
    int version = p->library_init(PAPI_VER_CURRENT);
    if (out >= 0) {
        dup2(out, STDERR_FILENO);
        close(out);
    }
    if (null >= 0)
        close(null);
    return version;
}

static int want(struct att_papi *p, const char *name, size_t length, bool usual, att_error_t *error)
{
    for (uint32_t i = 0; i < p->wanted_count; i++) /* "on" and by name: it can be added once */
        if (has_prefix(name, p->wanted[i].name, length)) {
            p->wanted[i].usual &= usual;
            return ATT_OK;
        }
    if (p->wanted_count == WANTED)
        return att_fail(error, ATT_EUSAGE, "--counters: more than %d events", WANTED);
    wanted_t *w = &p->wanted[p->wanted_count++];
    *w = (wanted_t){.component = -1, .usual = usual};
    memcpy(w->name, name, length);
    return ATT_OK;
}

static int parse(struct att_papi *p, const char *events, att_error_t *error)
{
    int status = att_counters_check(events, error);
    while (status == ATT_OK && *events != '\0') {
        size_t length = strcspn(events, ",");
        if (length == 2 && memcmp(events, "on", 2) == 0) {
            p->usual = true;
            for (size_t i = 0; i < sizeof usual_events / sizeof usual_events[0]; i++)
                if (status == ATT_OK)
                    status = want(p, usual_events[i], strlen(usual_events[i]), true, error);
        } else {
            status = want(p, events, length, false, error);
        }
        events += length + (events[length] == ',');
    }
    return status;
}

int att_papi_open(const char *events, struct att_papi **out, att_error_t *error)
{
    struct att_papi *p = calloc(1, sizeof *p);
    if (p == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory");
    int status = parse(p, events, error);
    if (status == ATT_OK)
        status = load(p, error);
    if (status != ATT_OK) {
        att_papi_close(p);
        return status;
    }
    for (int i = 0; i < p->num_components(); i++) {
        const PAPI_component_info_t *c = p->get_component_info(i);
        if (c != NULL && !is_wanted(p, c->name))
            p->disable_component_by_name(c->name);
    }
    int version = init_quietly(p);
    if (version != PAPI_VER_CURRENT) {
        status = att_fail(error, ATT_EUNSUPPORTED, "PAPI does not start: %.200s",
                          version > 0 ? "another version than attune was built for"
                                      : p->strerror(version));
        att_papi_close(p);
        return status;
    }
    *out = p;
    return ATT_OK;
}

void att_papi_close(struct att_papi *p)
{
    if (p == NULL)
        return;
    /* The library stays: components may have threads of their own. */
    if (p->library != NULL && p->shutdown != NULL)
        p->shutdown();
    free(p);
}

/* --- events ----------------------------------------------------------------------------------- */

static const char *why(const struct att_papi *p, int status)
{
    switch (status) {
    case PAPI_ENOEVNT:
        return "this machine does not have it";
    case PAPI_EPERM:
        return "not permitted (kernel.perf_event_paranoid)";
    default:
        return p->strerror(status);
    }
}

static int component_index(const struct att_papi *p, const char *name)
{
    for (int i = 0; i < p->num_components(); i++) {
        const PAPI_component_info_t *c = p->get_component_info(i);
        if (c != NULL && strcmp(c->name, name) == 0)
            return i;
    }
    return -1;
}

/* Events of usual_endings. Components that begin late (nvml) do so at the first enumeration. */
static void look_through(struct att_papi *p, int index, const char *component)
{
    int code = PAPI_NATIVE_MASK;
    int more = p->enum_cmp_event(&code, PAPI_ENUM_FIRST, index);
    for (int i = 0; more == PAPI_OK && i < ENUMERATION; i++) {
        char name[PAPI_MAX_STR_LEN * 2] = "";
        p->event_code_to_name(code, name);
        size_t length = strlen(name);
        for (size_t k = 0; k < sizeof usual_endings / sizeof usual_endings[0]; k++) {
            size_t end = strlen(usual_endings[k].ending);
            if (strcmp(usual_endings[k].component, component) == 0 && length >= end &&
                strcmp(name + length - end, usual_endings[k].ending) == 0)
                want(p, name, length, true, NULL);
        }
        more = p->enum_cmp_event(&code, PAPI_ENUM_EVENTS, index);
    }
}

static void look_for_devices(struct att_papi *p, att_counter_missing_fn missing, void *context)
{
    static const char *const components[] = {"infiniband", "nvml"};
    for (size_t i = 0; p->usual && i < sizeof components / sizeof components[0]; i++) {
        int index = component_index(p, components[i]);
        if (index < 0) {
            missing(context, components[i], "this libpapi was built without the component");
            continue;
        }
        uint32_t before = p->wanted_count;
        look_through(p, index, components[i]);
        const PAPI_component_info_t *c = p->get_component_info(index);
        if (p->wanted_count == before)
            missing(context, components[i],
                    c->disabled != 0 && c->disabled_reason[0] != '\0' ? c->disabled_reason
                                                                      : "it has no such event");
    }
    for (size_t i = 0; p->usual && i < sizeof by_name_only / sizeof by_name_only[0]; i++) {
        int index = component_index(p, by_name_only[i].component);
        missing(context, by_name_only[i].component,
                index >= 0 ? by_name_only[i].reason
                           : "this libpapi was built without the component");
    }
}

/* The event that was meant, of the usual ones and of PAPI's presets. The native ones are not listed
 * for this: libpapi 7.0 finds no event of a component by name any more once they were. */
static const char *event_meant(const struct att_papi *p, const char *event, att_nearest_t *nearest)
{
    char name[PAPI_MAX_STR_LEN * 2];
    att_nearest_init(nearest, event);
    for (size_t i = 0; i < sizeof usual_events / sizeof usual_events[0]; i++)
        att_nearest_offer(nearest, usual_events[i]);
    for (int i = 0; i < PAPI_MAX_PRESET_EVENTS; i++)
        if (p->event_code_to_name(PAPI_PRESET_MASK | i, name) == PAPI_OK)
            att_nearest_offer(nearest, name);
    return att_nearest_hint(nearest);
}

/* Of a component that is switched off PAPI only says that it has no such event. */
static const char *why_unknown(const struct att_papi *p, const wanted_t *w, int status,
                               char text[ATT_COUNTER_REASON])
{
    const char *end = strstr(w->name, ":::");
    att_nearest_t nearest;
    if (end != NULL) {
        char component[ATT_COUNTER_NAME];
        snprintf(component, sizeof component, "%.*s", (int)(end - w->name), w->name);
        int index = component_index(p, component);
        if (index < 0)
            return "this libpapi was built without the component";
        const PAPI_component_info_t *c = p->get_component_info(index);
        if (c->disabled != 0 && c->disabled_reason[0] != '\0')
            return c->disabled_reason;
    }
    snprintf(text, ATT_COUNTER_REASON, "%s%s", why(p, status),
             status == PAPI_ENOEVNT ? event_meant(p, w->name, &nearest) : "");
    return text;
}

static int read_counted(void *context, int64_t *values)
{
    counted_t *c = context;
    long long now[ATT_COUNTER_EVENTS];
    if (c->papi->read(c->set, now) != PAPI_OK)
        return -ATT_ESYSTEM;
    for (uint32_t i = 0; i < c->count; i++)
        values[i] = now[i];
    return ATT_OK;
}

static void close_counted(void *context)
{
    counted_t *c = context;
    long long last[ATT_COUNTER_EVENTS];
    c->papi->stop(c->set, last);
    c->papi->cleanup_eventset(c->set);
    c->papi->destroy_eventset(&c->set);
}

/* All events of one component that can be added, started in `domain`. PAPI_OK, or why not. */
static int start_component(struct att_papi *p, int component, int domain, counted_t *c,
                           att_counter_source_t *source, att_counter_missing_fn missing,
                           void *context)
{
    p->set_domain(domain);
    c->papi = p;
    c->set = PAPI_NULL;
    c->count = source->count = 0;
    int status = p->create_eventset(&c->set);
    if (status == PAPI_OK)
        status = p->assign_eventset_component(c->set, component);
    for (uint32_t i = 0; status == PAPI_OK && i < p->wanted_count; i++) {
        wanted_t *w = &p->wanted[i];
        if (w->component != component)
            continue;
        /* Presets are listed also where they cannot be counted: adding tells. */
        int added = c->count == ATT_COUNTER_EVENTS ? PAPI_ECOUNT : p->add_event(c->set, w->code);
        if (added != PAPI_OK) {
            if (missing != NULL)
                missing(context, w->name, why(p, added));
            continue;
        }
        snprintf(source->events[c->count].name, ATT_COUNTER_NAME, "%s", w->name);
        source->events[c->count++].level = w->level;
    }
    source->count = c->count;
    if (status == PAPI_OK && c->count > 0)
        status = p->start(c->set);
    if (status != PAPI_OK || c->count == 0) {
        p->cleanup_eventset(c->set);
        p->destroy_eventset(&c->set);
    }
    return status;
}

uint32_t att_papi_sources(struct att_papi *p, att_counter_source_t *sources, uint32_t capacity,
                          att_counter_missing_fn missing, void *context)
{
    uint32_t count = 0;
    look_for_devices(p, missing, context);
    for (uint32_t i = 0; i < p->wanted_count; i++) {
        wanted_t *w = &p->wanted[i];
        PAPI_event_info_t info;
        char reason[ATT_COUNTER_REASON];
        int status = p->event_name_to_code(w->name, &w->code);
        if (status != PAPI_OK) {
            missing(context, w->name, why_unknown(p, w, status, reason));
            continue;
        }
        w->component = p->get_event_component(w->code);
        const PAPI_component_info_t *c = p->get_component_info(w->component);
        w->level = c != NULL && strcmp(c->name, "nvml") == 0;
        if (p->get_event_info(w->code, &info) == PAPI_OK && (w->code & PAPI_NATIVE_MASK) != 0)
            w->level |= info.timescope == PAPI_TIMESCOPE_POINT;
    }
    for (int index = 0; index < p->num_components() && count < capacity; index++) {
        const PAPI_component_info_t *c = p->get_component_info(index);
        bool named = false;
        for (uint32_t i = 0; i < p->wanted_count; i++)
            named |= p->wanted[i].component == index;
        if (!named || p->counted_count == COMPONENTS)
            continue;
        counted_t *counted = &p->counted[p->counted_count++];
        att_counter_source_t *source = &sources[count];
        *source = (att_counter_source_t){
            .scope = strcmp(c->name, "perf_event") == 0 ? ATT_COUNTER_AGENT : ATT_COUNTER_NODE,
            .context = counted,
            .read = read_counted,
            .close = close_counted};
        snprintf(source->name, sizeof source->name, "%.63s", c->name);
        int status = start_component(p, index, PAPI_DOM_ALL, counted, source, missing, context);
        if (status != PAPI_OK) /* switches happen in the kernel; the rest can do without it */
            status = start_component(p, index, PAPI_DOM_USER, counted, source, NULL, NULL);
        if (status != PAPI_OK)
            missing(context, c->name, why(p, status));
        else
            count += source->count > 0;
    }
    return count;
}

#endif
