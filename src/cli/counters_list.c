#include "cli/counters_list.h"

#include "base/clock.h"
#include "base/log.h"
#include "profile/counters.h"
#include "profile/counters_process.h"
#include "profile/papi.h"

#include <string.h>
#include <unistd.h>

#define COMPONENTS 16

const char *att_counters_papi_text(char *text, size_t size)
{
    struct att_papi *papi;
    att_error_t error;
    /* One event of one component: "on" would also wake a GPU's. */
    if (att_papi_open("perf::TASK-CLOCK", &papi, &error) == ATT_OK) {
        snprintf(text, size, "PAPI %s", att_papi_built_for());
        att_papi_close(papi);
    } else {
        snprintf(text, size, "none: %.200s", error.text);
    }
    return text;
}

static uint64_t clock_now(void *context)
{
    (void)context;
    return att_clock_ns();
}

static void print_missing(void *context, const char *name, const char *reason)
{
    fprintf(context, "  no %-28s %s\n", name, reason);
}

static void print_source(struct att_counters *counters, const att_counter_source_t *source,
                         FILE *out)
{
    int index = att_counters_add(counters, source);
    if (index < 0)
        return;
    const att_counter_status_t *status = att_counters_status(counters, (uint32_t)index);
    fprintf(out, "%s (%s): a read takes %.1f us%s%s\n", source->name,
            att_counter_scope_name(source->scope), status->cost_ns * 1e-3,
            status->state != ATT_COUNTER_ON ? "; " : "", status->reason);
    for (uint32_t i = 0; i < source->count; i++)
        fprintf(out, "  %s%s\n", source->events[i].name, source->events[i].level ? " (level)" : "");
}

int att_counters_list(const char *events, FILE *out)
{
    static att_counter_source_t sources[COMPONENTS], self;
    struct att_papi *papi = NULL;
    struct att_counters *counters;
    att_error_t error;
    int status = att_papi_open(strcmp(events, "off") == 0 ? "on" : events, &papi, &error);
    if (status != ATT_OK && status != -ATT_EUNSUPPORTED) {
        att_log(ATT_LOG_ERROR, "%s", error.text);
        return -status;
    }
    if (att_counters_create(0, clock_now, NULL, &counters) != ATT_OK)
        return ATT_ENOMEM;
    if (papi == NULL) {
        print_missing(out, "PAPI", error.text);
    } else {
        uint32_t count = att_papi_sources(papi, sources, COMPONENTS, print_missing, out);
        for (uint32_t i = 0; i < count; i++)
            print_source(counters, &sources[i], out);
    }
    /* Of a process with the hook: this one stands for it. */
    if (att_counters_process((int32_t)getpid(), 0, &self, print_missing, out, &error) == ATT_OK) {
        snprintf(self.name, sizeof self.name, "a process with one thread");
        print_source(counters, &self, out);
    } else {
        print_missing(out, "processes", error.text);
    }
    att_counters_destroy(counters);
    att_papi_close(papi);
    return 0;
}
