#include "profile/metrics.h"

#include "base/bandwidth.h"
#include "base/names.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef enum kind { COUNT, REAL, FLAG } kind_t;

typedef struct row {
    const char *name, *type, *help;
    kind_t kind;
    size_t offset;
} row_t;

#define JOB(field)  offsetof(att_metrics_t, field)
#define TASK(field) offsetof(att_metrics_task_t, field)

static const row_t job_rows[] = {
    {"running", "gauge", "1 while the sidecar runs, 0 once it has ended.", FLAG, JOB(running)},
    {"updated_timestamp_seconds", "gauge", "When these numbers were gathered, Unix time.", REAL,
     JOB(unix_s)},
    {"run_seconds_total", "counter", "Time since the sidecar began.", REAL, JOB(run_s)},
    {"agent_cpu_seconds_total", "counter", "Processor time of the first agent.", REAL, JOB(cpu_s)},
    {"agent_polls_total", "counter", "Rounds of the first agent's loop.", COUNT, JOB(polls)},
    {"processes", "gauge", "Processes that carry the hook.", COUNT, JOB(processes)},
    {"records_total", "counter", "Records of calls that the agents took from the hooks.", COUNT,
     JOB(records)},
    {"records_dropped_total", "counter", "Records that found a hook's ring full.", COUNT,
     JOB(dropped)},
    {"lost_seconds_total", "counter",
     "Time that trials took beyond what the setting in force would have taken.", REAL, JOB(lost_s)},
    {"decisions_total", "counter", "Questions of NCCL that got a call number.", COUNT,
     JOB(decisions)},
    {"calls_timed_total", "counter", "Calls of ranks with a time.", COUNT, JOB(timed)},
    {"calls_frozen_total", "counter", "Calls recorded into CUDA graphs, which are not tuned.",
     COUNT, JOB(frozen)},
    {"calls_simulated_total", "counter", "Questions that were no calls.", COUNT, JOB(simulated)},
    {"calls_unseen_total", "counter", "Collectives that never asked the tuner.", COUNT,
     JOB(unseen)},
    {"calls_waited_total", "counter", "Calls that waited for the decision on a switch.", COUNT,
     JOB(waited)},
    {"longest_wait_seconds", "gauge", "Longest of these waits.", REAL, JOB(longest_wait_s)},
    {"calls_in_doubt_total", "counter", "Calls failed because a decision could not be reached.",
     COUNT, JOB(in_doubt)},
    {"calls_refused_total", "counter", "Calls failed because a committed setting did not apply.",
     COUNT, JOB(refused)},
    {"anomalies_total", "counter", "Late, repeated or impossible events from NCCL.", COUNT,
     JOB(anomalies)},
};

static const row_t task_rows[] = {
    {"task_trials_total", "counter", "Settings tried.", COUNT, TASK(trials)},
    {"task_switches_total", "counter", "Lists of settings that were committed.", COUNT,
     TASK(switches)},
    {"task_aborts_total", "counter", "Lists of settings that were voted down.", COUNT,
     TASK(aborts)},
    {"task_calls_total", "counter", "Calls whose records are complete.", COUNT, TASK(calls)},
    {"task_calls_lost_total", "counter", "Calls of which records of some ranks are missing.", COUNT,
     TASK(calls_lost)},
    {"task_samples_disturbed_total", "counter",
     "Samples not used because another group's list was in force on a node.", COUNT,
     TASK(disturbed)},
    {"task_lost_seconds_total", "counter",
     "Time that trials took beyond what the setting in force would have taken.", REAL,
     TASK(lost_s)},
    {"task_settled", "gauge", "1 once the search is over.", FLAG, TASK(settled)},
    {"task_kept_default", "gauge", "1 while NCCL's own choice is in force.", FLAG,
     TASK(kept_default)},
};

#define ROWS(rows) (sizeof rows / sizeof rows[0])

static void print_head(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP attune_%s %s\n# TYPE attune_%s %s\n", name, help, name, type);
}

static void print_value(FILE *out, const row_t *row, const void *from)
{
    const char *field = (const char *)from + row->offset;
    switch (row->kind) {
    case COUNT:
        fprintf(out, " %" PRIu64 "\n", *(const uint64_t *)(const void *)field);
        break;
    case REAL:
        fprintf(out, " %.15g\n", *(const double *)(const void *)field);
        break;
    case FLAG:
        fprintf(out, " %d\n", *(const int *)(const void *)field);
        break;
    }
}

/* A label's value between quotes. */
static void print_label(FILE *out, const char *text)
{
    fputc('"', out);
    for (const char *c = text != NULL ? text : ""; *c != '\0'; c++)
        if (*c == '\\' || *c == '"')
            fprintf(out, "\\%c", *c);
        else if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
            fputc('?', out); /* must be UTF-8 */
        else
            fputc(*c, out);
    fputc('"', out);
}

/* Left open: more labels or '}' follow. */
static void print_task(FILE *out, const char *name, const att_metrics_task_t *t)
{
    fprintf(out,
            "attune_%s{group=\"0x%" PRIx64 "\",collective=\"%s\",bytes=\"%" PRIu64
            "\",ranks=\"%u\",nodes=\"%u\",pairs=\"0x%x\"",
            name, t->hash, att_collective_name((int)t->collective), t->bytes, t->ranks, t->nodes,
            t->legal_pairs);
}

static double bus_bytes_per_second(const att_metrics_task_t *t, double duration_s)
{
    return att_algorithm_gbs(t->bytes, duration_s * 1e6) * 1e9 *
           att_bus_factor((int)t->collective, (int)t->ranks);
}

static const struct {
    const char *word;
    size_t offset;
} moments[] = {{"default", TASK(default_s)}, {"best", TASK(tuned_s)}, {"now", TASK(now_s)}};

static void print_moments(FILE *out, const char *name, const char *help, int bandwidth,
                          const att_metrics_t *m)
{
    print_head(out, name, "gauge", help);
    for (uint32_t i = 0; i < m->task_count; i++)
        for (size_t k = 0; k < ROWS(moments); k++) {
            const att_metrics_task_t *t = &m->tasks[i];
            double s = *(const double *)(const void *)((const char *)t + moments[k].offset);
            if (s <= 0)
                continue;
            print_task(out, name, t);
            fprintf(out, ",setting=\"%s\"} %.9g\n", moments[k].word,
                    bandwidth ? bus_bytes_per_second(t, s) : s);
        }
}

static void print_late(FILE *out, const att_metrics_t *m)
{
    print_head(out, "task_late_rank_seconds", "gauge",
               "What the others wait for the rank that keeps arriving last; absent: nobody does.");
    for (uint32_t i = 0; i < m->task_count; i++) {
        if (!m->tasks[i].late)
            continue;
        print_task(out, "task_late_rank_seconds", &m->tasks[i]);
        fprintf(out, ",rank=\"%u\"} %.9g\n", m->tasks[i].late_rank, m->tasks[i].late_s);
    }
}

#define PHASES 16 /* words that att_metrics_task_t.phase takes; there are fewer */

static void print_phases(FILE *out, const att_metrics_t *m)
{
    const char *words[PHASES];
    uint32_t counts[PHASES] = {0}, known = 0;
    for (uint32_t i = 0; i < m->task_count; i++) {
        uint32_t k = 0;
        while (k < known && strcmp(words[k], m->tasks[i].phase) != 0)
            k++;
        if (k == PHASES)
            continue;
        if (k == known)
            words[known++] = m->tasks[i].phase;
        counts[k]++;
    }
    print_head(out, "tasks", "gauge", "Tasks by where they are in their life.");
    for (uint32_t k = 0; k < known; k++) {
        fprintf(out, "attune_tasks{phase=");
        print_label(out, words[k]);
        fprintf(out, "} %u\n", counts[k]);
    }
}

static void print_totals(FILE *out, const att_metrics_t *m)
{
    uint64_t trials = 0, switches = 0, aborts = 0;
    for (uint32_t i = 0; i < m->task_count; i++) {
        trials += m->tasks[i].trials;
        switches += m->tasks[i].switches;
        aborts += m->tasks[i].aborts;
    }
    print_head(out, "trials_total", "counter", "Settings tried, all tasks together.");
    fprintf(out, "attune_trials_total %" PRIu64 "\n", trials);
    print_head(out, "switches_total", "counter", "Lists that were committed, all tasks together.");
    fprintf(out, "attune_switches_total %" PRIu64 "\n", switches);
    print_head(out, "aborts_total", "counter", "Lists that were voted down, all tasks together.");
    fprintf(out, "attune_aborts_total %" PRIu64 "\n", aborts);
}

static void print_untimed(FILE *out, const att_metrics_t *m)
{
    static const char *const reasons[ATT_UNTIMED_COUNT] = {NULL,   "off",  "grouped", "mismatch",
                                                           "lost", "full", "captured"};
    print_head(out, "calls_untimed_total", "counter", "Calls of ranks without a time, by reason.");
    for (int i = 1; i < ATT_UNTIMED_COUNT; i++)
        fprintf(out, "attune_calls_untimed_total{reason=\"%s\"} %" PRIu64 "\n", reasons[i],
                m->untimed[i]);
}

void att_metrics_print(const att_metrics_t *m, FILE *out)
{
    print_head(out, "info", "gauge", "Always 1; the labels tell what runs.");
    fprintf(out, "attune_info{version=\"" ATTUNE_VERSION "\",run_id=");
    print_label(out, m->run_id);
    fprintf(out, ",node=");
    print_label(out, m->host);
    fprintf(out, ",device=");
    print_label(out, m->device);
    fprintf(out, ",nccl=\"%u\"} 1\n", m->nccl_version);
    for (size_t i = 0; i < ROWS(job_rows); i++) {
        print_head(out, job_rows[i].name, job_rows[i].type, job_rows[i].help);
        fprintf(out, "attune_%s", job_rows[i].name);
        print_value(out, &job_rows[i], m);
    }
    print_untimed(out, m);
    print_totals(out, m);
    print_phases(out, m);
    for (size_t i = 0; i < ROWS(task_rows); i++) {
        print_head(out, task_rows[i].name, task_rows[i].type, task_rows[i].help);
        for (uint32_t k = 0; k < m->task_count; k++) {
            print_task(out, task_rows[i].name, &m->tasks[k]);
            fputc('}', out);
            print_value(out, &task_rows[i], &m->tasks[k]);
        }
    }
    print_moments(out, "task_duration_seconds",
                  "Median duration of a call: NCCL's own choice, the best setting, the last calls.",
                  0, m);
    print_moments(out, "task_bus_bandwidth_bytes_per_second",
                  "Bus bandwidth (as nccl-tests counts it) of the same.", 1, m);
    print_late(out, m);
}

/* --- under the names of NCCL Inspector's exporter --------------------------------------------- */

static const char *inspector_collective(uint32_t collective)
{
    static const char *const names[ATT_COLLECTIVE_COUNT] = {
        [ATT_COLLECTIVE_BROADCAST] = "Broadcast",
        [ATT_COLLECTIVE_REDUCE] = "Reduce",
        [ATT_COLLECTIVE_ALL_GATHER] = "AllGather",
        [ATT_COLLECTIVE_REDUCE_SCATTER] = "ReduceScatter",
        [ATT_COLLECTIVE_ALL_REDUCE] = "AllReduce",
    };
    return collective < ATT_COLLECTIVE_COUNT && names[collective] != NULL
               ? names[collective]
               : att_collective_name((int)collective);
}

/* "Ring_ll", "" while it is NCCL's choice and not known. */
static void algo_proto(att_setting_t s, char *text, size_t size)
{
    text[0] = '\0';
    if (s.algorithm == ATT_ALGORITHM_KEEP)
        return;
    snprintf(text, size, "%s_%s", att_algorithm_name(s.algorithm), att_protocol_name(s.protocol));
    if (text[0] >= 'a' && text[0] <= 'z')
        text[0] = (char)(text[0] - 'a' + 'A');
}

static void print_inspector(FILE *out, const char *name, const char *help, int bandwidth,
                            const att_metrics_t *m)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
    for (uint32_t i = 0; i < m->task_count; i++) {
        const att_metrics_task_t *t = &m->tasks[i];
        if (t->now_s <= 0 || t->twin) /* these labels cannot tell twins apart */
            continue;
        char bytes[24], pair[48];
        algo_proto(t->setting, pair, sizeof pair);
        fprintf(out, "%s{version=\"v5.1\",slurm_job_id=", name);
        print_label(out, m->job_id);
        fprintf(out, ",node=");
        print_label(out, m->host);
        fprintf(out,
                ",gpu=\"all\",comm_name=\"0x%" PRIx64 "\",n_nodes=\"%u\",nranks=\"%u\","
                "collective=\"%s\",message_size=\"%s\",algo_proto=\"%s\"} %.9g\n",
                t->hash, t->nodes, t->ranks, inspector_collective(t->collective),
                att_bytes_text(t->bytes, bytes, sizeof bytes), pair,
                bandwidth ? bus_bytes_per_second(t, t->now_s) * 1e-9 : t->now_s * 1e6);
    }
}

void att_metrics_print_inspector(const att_metrics_t *m, FILE *out)
{
    print_inspector(out, "nccl_bus_bandwidth_gbs", "Bus bandwidth, 10^9 bytes a second.", 1, m);
    print_inspector(out, "nccl_collective_exec_time_microseconds",
                    "Duration of a collective, microseconds.", 0, m);
}

int att_metrics_replace(const char *path, const char *bytes, size_t length, att_error_t *error)
{
    char temporary[PATH_MAX];
    struct stat found;
    const char *slash = strrchr(path, '/');
    int folder = slash != NULL ? (int)(slash - path) + 1 : 0;
    /* A hidden name: collectors of text files take every *.prom. */
    if (snprintf(temporary, sizeof temporary, "%.*s.%s.new", folder, path, path + folder) >=
        (int)sizeof temporary)
        return att_fail(error, ATT_ESYSTEM, "%s: the path is too long", path);
    bool device = lstat(path, &found) == 0 && S_ISCHR(found.st_mode); /* /dev/null stays one */
    int fd = device ? open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC)
                    : open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (file == NULL) {
        int status = att_fail_errno(error, "cannot write %s", path);
        if (fd >= 0)
            close(fd);
        return status;
    }
    size_t written = fwrite(bytes, 1, length, file);
    if (fclose(file) != 0 || written != length || (!device && rename(temporary, path) != 0)) {
        int status = att_fail_errno(error, "cannot write %s", path);
        if (!device)
            unlink(temporary);
        return status;
    }
    return ATT_OK;
}
