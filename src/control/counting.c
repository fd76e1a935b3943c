#include "control/counting.h"

#include "base/clock.h"
#include "base/log.h"
#include "profile/counters.h"
#include "profile/counters_process.h"
#include "profile/papi.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define COMPONENTS 16
#define THIN_BYTES (16u << 20)    /* of the file: after each as much, half as many lines */
#define RATES      96             /* names in a trial's line */
#define MARKED_NS  10000000000ull /* marks that are older do not set the pace */

typedef struct reading {
    uint64_t at_ns;
    uint64_t source_ns[ATT_COUNTER_SOURCES]; /* when each was read; 0: never */
    int64_t values[ATT_COUNTER_SOURCES][ATT_COUNTER_EVENTS];
} reading_t;

struct att_counting {
    const att_config_t *config;
    struct att_node *node;
    struct att_papi *papi;
    struct att_counters *counters;
    char segment_file[PATH_MAX], path[PATH_MAX];
    FILE *file;
    uint64_t began_ns, written;
    uint8_t tried[ATT_PROCESSES];
    uint32_t warned; /* sources that do not fit */
    int told;        /* what cannot be counted of a process: the same of all */
    /* the job's steps */
    uint32_t marked_process; /* whose marks set the pace, ATT_NONE */
    uint64_t iteration, marked_ns, step_ns, thinned_ns;
    int due; /* a mark or the end of a trial: read now, if the interval allows it */
    int has_trial;
    uint32_t task, trial;
    reading_t now, before;
};

static uint64_t clock_now(void *context)
{
    (void)context;
    return att_clock_ns();
}

/* --- the file --------------------------------------------------------------------------------- */

static void write_line(struct att_counting *c, json_t *line)
{
    static att_log_site_t site;
    char *text = line != NULL ? json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(line);
    if (text == NULL)
        return;
    int length = fprintf(c->file, "%s\n", text);
    free(text);
    if (length < 0 || ferror(c->file)) {
        att_log_limited(&site, ATT_LOG_ERROR, "%s: %s", c->path, strerror(errno));
        clearerr(c->file);
    } else {
        c->written += (uint64_t)length;
    }
}

static int open_file(struct att_counting *c, uint32_t self, att_error_t *error)
{
    char folder[PATH_MAX], host[64] = "";
    snprintf(folder, sizeof folder, "%s/counters", c->config->run_dir);
    if ((mkdir(c->config->run_dir, 0755) != 0 && errno != EEXIST) ||
        (mkdir(folder, 0755) != 0 && errno != EEXIST))
        return att_fail_errno(error, "cannot make %s", folder);
    if (snprintf(c->path, sizeof c->path, "%s/counters/node-%04u.jsonl", c->config->run_dir,
                 self) >= (int)sizeof c->path)
        return att_fail(error, ATT_EUSAGE, "--run-dir: the path is too long");
    c->file = fopen(c->path, "ae");
    if (c->file == NULL)
        return att_fail_errno(error, "cannot write %s", c->path);
    setvbuf(c->file, NULL, _IOLBF, 0);
    gethostname(host, sizeof host - 1);
    write_line(c, json_pack("{s:i,s:s,s:s,s:I,s:s,s:f,s:I,s:s}", "version", 1, "attune",
                            ATTUNE_VERSION, "what", "counters", "node", (json_int_t)self, "host",
                            host, "budget", c->config->counter_budget, "origin_ns",
                            (json_int_t)c->began_ns, "units",
                            "time_ns of the node's clock, time_s since origin_ns; task-clock in "
                            "nanoseconds; values are totals since the source began, of levels "
                            "the level"));
    return ATT_OK;
}

static void note_missing(void *context, const char *name, const char *reason)
{
    struct att_counting *c = context;
    /* What was asked for by name is missed. */
    bool by_name = strcmp(c->config->counters, "on") != 0;
    att_log(by_name ? ATT_LOG_WARN : ATT_LOG_INFO, "counters: no %s: %s", name, reason);
    write_line(c, json_pack("{s:s,s:s}", "unavailable", name, "reason", reason));
}

static void note_missing_of_process(void *context, const char *name, const char *reason)
{
    struct att_counting *c = context;
    char text[ATT_COUNTER_NAME + 16];
    snprintf(text, sizeof text, "process %s", name);
    if (!c->told || strcmp(name, "threads") == 0)
        note_missing(c, text, reason);
}

static void note_source(struct att_counting *c, uint32_t index)
{
    const att_counter_source_t *s = att_counters_source(c->counters, index);
    const att_counter_status_t *status = att_counters_status(c->counters, index);
    json_t *events = json_array(), *levels = json_array();
    for (uint32_t e = 0; e < s->count; e++) {
        json_array_append_new(events, json_string(s->events[e].name));
        if (s->events[e].level)
            json_array_append_new(levels, json_string(s->events[e].name));
    }
    json_t *line = json_pack("{s:I,s:s,s:s,s:f,s:o,s:o}", "source", (json_int_t)index, "name",
                             s->name, "scope", att_counter_scope_name(s->scope), "read_us",
                             status->cost_ns * 1e-3, "events", events, "levels", levels);
    if (line != NULL && s->scope == ATT_COUNTER_PROCESS) {
        json_object_set_new(line, "process", json_integer((json_int_t)s->process));
        json_object_set_new(line, "pid", json_integer(s->pid));
    }
    write_line(c, line);
}

static void note_changes(struct att_counting *c)
{
    static const char *const words[] = {"on", "off", "gone"};
    int index;
    while ((index = att_counters_changed(c->counters)) >= 0) {
        const att_counter_status_t *status = att_counters_status(c->counters, (uint32_t)index);
        const char *name = att_counters_source(c->counters, (uint32_t)index)->name;
        att_log(status->state == ATT_COUNTER_OFF ? ATT_LOG_WARN : ATT_LOG_INFO,
                "counters of %s: %s", name, status->reason);
        write_line(c, json_pack("{s:i,s:s,s:s}", "source", index, "state", words[status->state],
                                "reason", status->reason));
    }
}

static void add_source(struct att_counting *c, const att_counter_source_t *source)
{
    int index = att_counters_add(c->counters, source);
    if (index >= 0) {
        note_source(c, (uint32_t)index);
        /* What the source read while its cost was measured is where its rates begin. */
        memcpy(c->now.values[index], att_counters_status(c->counters, (uint32_t)index)->values,
               sizeof c->now.values[index]);
        c->now.source_ns[index] = att_clock_ns();
        note_changes(c);
    } else if (c->warned++ == 0) {
        att_log(ATT_LOG_WARN, "counters: more sources than the %d that are kept",
                ATT_COUNTER_SOURCES);
    }
}

/* --- sources ---------------------------------------------------------------------------------- */

int att_counting_create(const att_config_t *config, struct att_node *node, const char *segment_file,
                        uint32_t self, struct att_counting **out, att_error_t *error)
{
    *out = NULL;
    if (strcmp(config->counters, "off") == 0 || config->counters[0] == '\0' ||
        config->run_dir[0] == '\0')
        return ATT_OK;
    struct att_counting *c = calloc(1, sizeof *c);
    if (c == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory");
    c->config = config;
    c->node = node;
    c->began_ns = att_clock_ns();
    c->marked_process = ATT_NONE;
    snprintf(c->segment_file, sizeof c->segment_file, "%s", segment_file);
    att_error_t inner = {""};
    int status = att_papi_open(config->counters, &c->papi, &inner);
    if (status != ATT_OK && status != -ATT_EUNSUPPORTED) {
        if (error != NULL)
            *error = inner;
        free(c);
        return status;
    }
    status = open_file(c, self, error);
    if (status == ATT_OK &&
        att_counters_create(config->counter_budget, clock_now, c, &c->counters) != ATT_OK)
        status = att_fail(error, ATT_ENOMEM, "no memory");
    if (status != ATT_OK) {
        att_counting_destroy(c);
        return status;
    }
    if (c->papi == NULL) {
        att_log(ATT_LOG_WARN, "counters: only those of processes: %s", inner.text);
        note_missing(c, "PAPI", inner.text);
    } else {
        static att_counter_source_t sources[COMPONENTS];
        uint32_t count = att_papi_sources(c->papi, sources, COMPONENTS, note_missing, c);
        for (uint32_t i = 0; i < count; i++)
            add_source(c, &sources[i]);
    }
    *out = c;
    return ATT_OK;
}

/* A hook's pid is one of its own pid namespace: here it may be somebody else. Ours is who has the
 * segment mapped. */
static int has_segment(const struct att_counting *c, int32_t pid)
{
    char path[48], line[PATH_MAX + 128];
    struct stat segment;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = stat(c->segment_file, &segment) == 0 ? fopen(path, "re") : NULL;
    int found = 0;
    while (maps != NULL && !found && fgets(line, sizeof line, maps) != NULL) {
        unsigned int major_number, minor_number;
        unsigned long inode;
        found = sscanf(line, "%*s %*s %*s %x:%x %lu", &major_number, &minor_number, &inode) == 3 &&
                inode == segment.st_ino && makedev(major_number, minor_number) == segment.st_dev;
    }
    if (maps != NULL)
        fclose(maps);
    return found;
}

/* At most one a round: opening takes a few system calls a thread. */
static void look_for_processes(struct att_counting *c)
{
    att_segment_memory_t *m = att_node_memory(c->node);
    uint32_t count = att_segment_count(&m->header.process_count, ATT_PROCESSES);
    for (uint32_t i = 0; i < count; i++) {
        att_segment_process_t *process = &m->processes[i];
        if (atomic_load(&process->state) != ATT_ENTRY_LIVE)
            continue;
        /* The end of a trace takes them back. */
        if (atomic_load_explicit(&process->marks, memory_order_relaxed) == 0)
            atomic_store_explicit(&process->marks, 1, memory_order_relaxed);
        if (c->tried[i])
            continue;
        c->tried[i] = 1;
        static att_counter_source_t source;
        att_error_t error;
        char name[32];
        int status =
            has_segment(c, process->pid)
                ? att_counters_process(process->pid, i, &source, note_missing_of_process, c, &error)
                : att_fail(&error, ATT_ENOENT,
                           "process %d is not seen from here (another pid namespace?)",
                           (int)process->pid);
        if (status == ATT_OK) {
            c->told = 1;
            add_source(c, &source);
        } else {
            snprintf(name, sizeof name, "process %u", i);
            note_missing(c, name, error.text);
        }
        return;
    }
}

/* --- reading ---------------------------------------------------------------------------------- */

void att_counting_mark(struct att_counting *c, const att_record_t *mark, uint64_t now_ns)
{
    if (c == NULL)
        return;
    if (c->marked_process == ATT_NONE || now_ns - c->marked_ns > MARKED_NS)
        c->marked_process = mark->process;
    else if (c->marked_process != mark->process)
        return;
    else if (mark->call > c->iteration) {
        /* By the agent's clock: marks of the modelled fabric are on a virtual one. */
        double step = (double)(now_ns - c->marked_ns) / (double)(mark->call - c->iteration);
        c->step_ns = c->step_ns == 0 ? (uint64_t)step
                                     : (uint64_t)((double)c->step_ns * 0.875 + step * 0.125);
        att_counters_step(c->counters, c->step_ns);
    }
    c->iteration = mark->call;
    c->marked_ns = now_ns;
    c->due = 1;
}

static void write_reading(struct att_counting *c)
{
    json_t *values = json_object();
    char key[16];
    for (uint32_t i = 0; i < att_counters_count(c->counters); i++) {
        if (att_counters_status(c->counters, i)->state != ATT_COUNTER_ON)
            continue;
        json_t *list = json_array();
        for (uint32_t e = 0; e < att_counters_source(c->counters, i)->count; e++)
            json_array_append_new(list, json_integer(c->now.values[i][e]));
        snprintf(key, sizeof key, "%u", i);
        json_object_set_new(values, key, list);
    }
    if (json_object_size(values) == 0) { /* nothing is on */
        json_decref(values);
        return;
    }
    json_t *line = json_pack("{s:f,s:I,s:o}", "time_s", (double)(c->now.at_ns - c->began_ns) * 1e-9,
                             "time_ns", (json_int_t)c->now.at_ns, "values", values);
    if (line != NULL && c->marked_process != ATT_NONE)
        json_object_set_new(line, "iteration", json_integer((json_int_t)c->iteration));
    if (line != NULL && c->has_trial)
        json_object_update_new(line, json_pack("{s:I,s:I}", "task", (json_int_t)c->task, "trial",
                                               (json_int_t)c->trial));
    c->has_trial = 0;
    write_line(c, line);
}

static void read_all(struct att_counting *c, uint64_t now_ns)
{
    if (!att_counters_read(c->counters, now_ns))
        return;
    c->due = 0;
    c->before = c->now;
    c->now.at_ns = att_clock_ns();
    for (uint32_t i = 0; i < att_counters_count(c->counters); i++) {
        memcpy(c->now.values[i], att_counters_status(c->counters, i)->values,
               sizeof c->now.values[i]);
        c->now.source_ns[i] = c->now.at_ns;
    }
    note_changes(c);
    /* The file grows more and more slowly, the reads stay. */
    uint64_t pause_ns = c->written < THIN_BYTES
                            ? 0
                            : att_counters_interval_ns(c->counters)
                                  << (c->written / THIN_BYTES < 20 ? c->written / THIN_BYTES : 20);
    if (now_ns - c->thinned_ns < pause_ns)
        return;
    c->thinned_ns = now_ns;
    write_reading(c);
}

void att_counting_step(struct att_counting *c, uint64_t now_ns)
{
    if (c == NULL)
        return;
    look_for_processes(c);
    /* Where iterations are marked, reads fall on the marks. */
    if (c->due || c->marked_process == ATT_NONE || now_ns - c->marked_ns > 2 * c->step_ns)
        read_all(c, now_ns);
}

/* --- trials ----------------------------------------------------------------------------------- */

typedef struct rate {
    char name[ATT_COUNTER_NAME + 16];
    double value;
} rate_t;

static uint32_t add_rate(rate_t *rates, uint32_t count, const att_counter_source_t *source,
                         uint32_t event, double value)
{
    rate_t one = {.value = value};
    snprintf(one.name, sizeof one.name, "%s %s", att_counter_scope_name(source->scope),
             source->events[event].name);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(rates[i].name, one.name) == 0) {
            rates[i].value += value;
            return count;
        }
    static att_log_site_t site;
    if (count < RATES)
        rates[count++] = one;
    else
        att_log_limited(&site, ATT_LOG_WARN, "counters: a trial's line has no more than %d", RATES);
    return count;
}

json_t *att_counting_trial(struct att_counting *c, uint32_t task, uint32_t number)
{
    if (c == NULL)
        return NULL;
    c->has_trial = 1;
    c->task = task;
    c->trial = number;
    c->due = 1;
    read_all(c, att_clock_ns());
    if (c->before.at_ns == 0)
        return NULL;
    static rate_t rates[RATES];
    uint32_t count = 0;
    double over_s = (double)(c->now.at_ns - c->before.at_ns) * 1e-9;
    for (uint32_t i = 0; i < att_counters_count(c->counters); i++) {
        const att_counter_source_t *source = att_counters_source(c->counters, i);
        if (att_counters_status(c->counters, i)->state != ATT_COUNTER_ON)
            continue;
        /* A source that is not older than the last read has none yet. */
        double source_s = (double)(c->now.source_ns[i] - c->before.source_ns[i]) * 1e-9;
        if (c->before.source_ns[i] == 0 || source_s <= 0)
            continue;
        for (uint32_t e = 0; e < source->count; e++)
            count =
                add_rate(rates, count, source, e,
                         source->events[e].level
                             ? (double)c->now.values[i][e]
                             : (double)(c->now.values[i][e] - c->before.values[i][e]) / source_s);
    }
    json_t *object = json_pack("{s:f}", "over_s", over_s);
    for (uint32_t i = 0; i < count; i++)
        json_object_set_new(object, rates[i].name, json_real(round(rates[i].value)));
    return object;
}

void att_counting_destroy(struct att_counting *c)
{
    if (c == NULL)
        return;
    if (c->counters != NULL) {
        double run_ns = (double)(att_clock_ns() - c->began_ns);
        double spent_ns = att_counters_spent_ns(c->counters);
        write_line(c, json_pack("{s:b,s:f,s:f,s:f}", "end", 1, "run_s", run_ns * 1e-9, "spent_us",
                                spent_ns * 1e-3, "share", run_ns > 0 ? spent_ns / run_ns : 0));
    }
    att_counters_destroy(c->counters);
    att_papi_close(c->papi);
    if (c->file != NULL)
        fclose(c->file);
    free(c);
}
