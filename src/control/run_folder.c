#include "control/run_folder.h"

#include "base/clock.h"
#include "base/names.h"
#include "control/message.h"
#include "control/setting_json.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHARE 10u /* of the time that making tasks.json took is left before it is made again */

struct att_run_folder {
    char path[PATH_MAX - 64];
    FILE *trials, *lists;
    struct att_writer *writer;
    uint64_t opened_ns;
    uint64_t next_ns;         /* of tasks.json */
    _Atomic uint64_t took_ns; /* to make it, by the writer */
};

/* What tasks.json is made of. */
typedef struct snapshot {
    struct att_run_folder *folder;
    att_run_totals_t totals; /* its texts are these: */
    char state[16], device[ATT_DEVICE_TEXT];
    uint32_t count;
    struct {
        att_task_report_t report; /* its reason is this: */
        char reason[ATT_REASON_BYTES];
    } rows[];
} snapshot_t;

static FILE *open_log(const struct att_run_folder *folder, const char *name, const char *what,
                      att_error_t *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    FILE *file = fopen(path, "ae");
    if (file == NULL) {
        att_fail_errno(error, "cannot write %s: choose another folder with --run-dir", path);
        return NULL;
    }
    setvbuf(file, NULL, _IOLBF, 0);
    fprintf(file,
            "{\"version\":1,\"attune\":\"%s\",\"what\":\"%s\",\"durations\":\"microseconds\"}\n",
            ATTUNE_VERSION, what);
    return file;
}

int att_run_folder_open(const char *path, struct att_writer *writer, struct att_run_folder **out,
                        att_error_t *error)
{
    if (mkdir(path, 0755) != 0 && errno != EEXIST)
        return att_fail_errno(error, "cannot make the run folder %s: choose another with --run-dir",
                              path);
    struct att_run_folder *folder = calloc(1, sizeof *folder);
    if (folder == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory");
    snprintf(folder->path, sizeof folder->path, "%s", path);
    folder->writer = writer;
    folder->opened_ns = att_clock_ns();
    folder->trials = open_log(folder, "trials.jsonl", "trials", error);
    if (folder->trials != NULL)
        folder->lists = open_log(folder, "lists.jsonl", "proposed lists", error);
    if (folder->lists == NULL) {
        att_run_folder_close(folder);
        return -ATT_ESYSTEM;
    }
    *out = folder;
    return ATT_OK;
}

void att_run_folder_close(struct att_run_folder *folder)
{
    if (folder == NULL)
        return;
    if (folder->trials != NULL)
        fclose(folder->trials);
    if (folder->lists != NULL)
        fclose(folder->lists);
    free(folder);
}

static void group_text(uint64_t hash, char text[24])
{
    snprintf(text, 24, "0x%" PRIx64, hash);
}

static const char *outcome_name(uint32_t outcome)
{
    static const char *const names[] = {"ok", "timeout", "illegal", "lossy", "slow"};
    return outcome <= ATT_OUTCOME_SLOW ? names[outcome] : "unknown";
}

static double rounded(double us)
{
    return (double)(int64_t)(us * 1000 + 0.5) / 1000; /* nanoseconds are enough */
}

void att_run_folder_trial(struct att_run_folder *folder, const att_task_report_t *task,
                          const att_trial_t *trial, json_t *counted)
{
    char group[24];
    group_text(task->hash, group);
    json_t *samples = json_array();
    for (uint32_t i = 0; i < trial->result.sample_count; i++)
        json_array_append_new(samples, json_real(rounded(trial->result.samples_us[i])));
    json_t *line = json_pack(
        "{s:f,s:s,s:s,s:I,s:I,s:s,s:o,s:I,s:I,s:s,s:f,s:f,s:o}", "time_s",
        (double)(att_clock_ns() - folder->opened_ns) * 1e-9, "group", group, "collective",
        att_collective_name((int)task->collective), "bytes", (json_int_t)task->bytes, "trial",
        (json_int_t)trial->number, "phase", att_phase_name(trial->phase), "setting",
        att_setting_to_json(trial->setting), "first_call", (json_int_t)trial->first_call, "calls",
        (json_int_t)trial->calls, "outcome", outcome_name(trial->result.outcome), "median_us",
        rounded(trial->result.median_us), "baseline_us", rounded(trial->result.baseline_median_us),
        "samples_us", samples);
    if (line == NULL)
        return;
    if (counted != NULL)
        json_object_set(line, "counters", counted);
    json_dumpf(line, folder->trials, JSON_COMPACT | JSON_REAL_PRECISION(9));
    fputc('\n', folder->trials);
    json_decref(line);
}

static void write_line(FILE *file, json_t *line)
{
    if (line == NULL)
        return;
    json_dumpf(line, file, JSON_COMPACT);
    fputc('\n', file);
    json_decref(line);
}

void att_run_folder_list(struct att_run_folder *folder, uint32_t index, const att_identity_t *task,
                         const att_schedule_t *schedule)
{
    json_t *entries = json_array();
    for (uint32_t i = 0; i < schedule->count; i++)
        json_array_append_new(entries,
                              json_pack("{s:I,s:o}", "first_call",
                                        (json_int_t)schedule->entries[i].first_call, "setting",
                                        att_setting_to_json(schedule->entries[i].setting)));
    write_line(folder->lists,
               json_pack("{s:I,s:I,s:s,s:I,s:I,s:I,s:I,s:s,s:o}", "task", (json_int_t)index, "txn",
                         (json_int_t)schedule->txn, "collective",
                         att_collective_name((int)task->collective), "bytes",
                         (json_int_t)task->bytes, "ranks", (json_int_t)task->ranks, "nodes",
                         (json_int_t)task->nodes, "nccl_version", (json_int_t)task->nccl_version,
                         "device", task->device, "entries", entries));
}

void att_run_folder_list_over(struct att_run_folder *folder, uint32_t index, uint32_t txn)
{
    write_line(folder->lists, json_pack("{s:I,s:I,s:b}", "task", (json_int_t)index, "txn",
                                        (json_int_t)txn, "over", 1));
}

static json_t *task_json(const att_task_report_t *t)
{
    char group[24];
    group_text(t->hash, group);
    bool searched = t->state == ATT_TASK_TUNING || t->status.phase >= ATT_PHASE_SETTLED;
    const char *phase = searched ? att_phase_name(t->status.phase) : att_task_state_name(t->state);
    double tuned_us = att_task_tuned_us(t);
    json_t *object = json_pack(
        "{s:s,s:I,s:I,s:s,s:I,s:I,s:s,s:b,s:s,s:b}", "group", group, "ranks", (json_int_t)t->ranks,
        "nodes", (json_int_t)t->nodes, "collective", att_collective_name((int)t->collective),
        "bytes", (json_int_t)t->bytes, "legal_pairs", (json_int_t)t->legal_pairs, "phase", phase,
        "kept_default", t->status.kept_default, "reason", t->reason, "pinned", (int)t->pinned);
    json_t *more = json_pack(
        "{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:s,s:f,s:f}", "trials", (json_int_t)t->status.trials,
        "calls", (json_int_t)t->status.calls, "switches", (json_int_t)t->switches, "aborts",
        (json_int_t)t->aborts, "calls_seen", (json_int_t)t->calls_seen, "lost", (json_int_t)t->lost,
        "disturbed", (json_int_t)t->disturbed, "reduction", att_reduction_name(t->reduction),
        "lost_us", rounded(t->lost_us), "gain_lower", t->status.gain_lower);
    json_t *sides = json_pack(
        "{s:{s:o,s:f,s:I},s:{s:o,s:f,s:I}}", "default", "setting", att_setting_to_json(t->native),
        "median_us", rounded(t->status.baseline_us), "samples",
        (json_int_t)t->status.baseline_samples, "tuned", "setting", att_setting_to_json(t->tuned),
        "median_us", rounded(tuned_us), "samples", (json_int_t)t->status.tuned_samples);
    json_t *now = json_pack("{s:{s:f,s:f}}", "now", "median_us", rounded(t->now_us), "age_s",
                            rounded(t->now_age_s));
    if (t->late_rank != ATT_NONE)
        json_object_set_new(object, "late",
                            json_pack("{s:I,s:f,s:f}", "rank", (json_int_t)t->late_rank, "late_us",
                                      rounded(t->late_us), "share", t->late_share));
    if (t->disagrees)
        json_object_set_new(object, "disagreement",
                            json_pack("{s:s,s:f,s:f}", "objective",
                                      t->step_objective ? "step" : "collective", "collective_gain",
                                      t->status.collective_gain, "step_gain", t->status.step_gain));
    json_object_update(object, now);
    json_decref(now);
    json_object_update(object, more);
    json_object_update(object, sides);
    json_decref(more);
    json_decref(sides);
    return object;
}

static json_t *coverage_json(const att_coverage_t *c)
{
    static const char *const reasons[ATT_UNTIMED_COUNT] = {NULL,   "off",  "grouped", "mismatch",
                                                           "lost", "full", "captured"};
    json_t *untimed = json_object();
    for (int i = 1; i < ATT_UNTIMED_COUNT; i++)
        json_object_set_new(untimed, reasons[i], json_integer((json_int_t)c->untimed[i]));
    return json_pack("{s:I,s:I,s:I,s:o,s:I,s:I,s:I,s:I,s:I,s:I,s:f,s:I,s:I,s:I,s:I,s:I,s:I,"
                     "s:I,s:I,s:I,s:I}",
                     "processes", (json_int_t)c->processes, "decisions", (json_int_t)c->decisions,
                     "timed", (json_int_t)c->timed, "untimed", untimed, "frozen",
                     (json_int_t)c->frozen, "simulated", (json_int_t)c->simulated, "unseen",
                     (json_int_t)c->unseen, "dropped", (json_int_t)c->dropped, "anomalies",
                     (json_int_t)c->anomalies, "waited", (json_int_t)c->waited, "longest_wait_us",
                     rounded((double)c->longest_wait_ns * 1e-3), "in_doubt",
                     (json_int_t)c->in_doubt, "refused", (json_int_t)c->refused, "called",
                     (json_int_t)c->called, "answered", (json_int_t)c->answered, "bypassed",
                     (json_int_t)c->bypassed, "streams", (json_int_t)c->streams, "unused",
                     (json_int_t)c->unused, "incomplete", (json_int_t)c->incomplete, "unsent",
                     (json_int_t)c->unsent, "waiting", (json_int_t)c->waiting);
}

/* Everything but the tasks. */
static json_t *totals_json(const att_run_totals_t *totals)
{
    json_t *root =
        json_pack("{s:i,s:s,s:s,s:I,s:s,s:{s:f,s:I,s:I},s:o,s:{s:f,s:f,s:f}}", "version", 1,
                  "attune", ATTUNE_VERSION, "units", "durations in microseconds, sizes in bytes",
                  "nccl_version", (json_int_t)totals->nccl_version, "state", totals->state, "agent",
                  "cpu_share", totals->cpu_share, "records", (json_int_t)totals->records, "polls",
                  (json_int_t)totals->polls, "coverage", coverage_json(&totals->coverage), "cost",
                  "lost_us", rounded(totals->lost_us), "timing_us", rounded(totals->timing_us),
                  "run_us", rounded(totals->run_us));
    if (root != NULL)
        json_object_set_new(root, "device", json_string(totals->device));
    return root;
}

/* One task after the other: all of them as JSON values take ten times the text. */
static bool print_tasks(const snapshot_t *s, FILE *out)
{
    static const size_t flags = JSON_INDENT(1) | JSON_REAL_PRECISION(9);
    json_t *root = totals_json(&s->totals);
    char *head = root != NULL ? json_dumps(root, flags) : NULL;
    json_decref(root);
    if (head == NULL)
        return false;
    /* It goes on where its last brace is. */
    fprintf(out, "%.*s,\n \"tasks\": [", (int)strlen(head) - 2, head);
    free(head);
    const char *between = "\n";
    for (uint32_t i = 0; i < s->count; i++) {
        json_t *task = task_json(&s->rows[i].report);
        if (task == NULL)
            continue;
        fputs(between, out);
        between = ",\n";
        json_dumpf(task, out, flags);
        json_decref(task);
    }
    fputs("\n ]\n}", out);
    return ferror(out) == 0;
}

static char *make_tasks(const void *data, size_t *length)
{
    const snapshot_t *s = data;
    uint64_t began_ns = att_clock_ns();
    char *text = NULL;
    FILE *out = open_memstream(&text, length);
    if (out == NULL)
        return NULL;
    bool whole = print_tasks(s, out);
    if (fclose(out) != 0 || !whole) {
        free(text);
        return NULL;
    }
    atomic_store(&s->folder->took_ns, att_clock_ns() - began_ns);
    return text;
}

/* A strategy's text may be no UTF-8, or be cut within a letter: JSON takes neither. */
static void make_plain(char *text)
{
    json_t *good = json_string(text);
    for (unsigned char *c = (unsigned char *)text; good == NULL && *c != '\0'; c++)
        if (*c >= 0x80)
            *c = '?';
    json_decref(good);
}

int att_run_folder_tasks(struct att_run_folder *folder, const att_run_totals_t *totals,
                         const att_task_report_t *tasks, uint32_t count, int last)
{
    uint64_t now_ns = att_clock_ns();
    if (now_ns < folder->next_ns && !last)
        return ATT_OK;
    snapshot_t *s = malloc(sizeof *s + count * sizeof s->rows[0]);
    if (s == NULL)
        return -ATT_ENOMEM;
    s->folder = folder;
    s->totals = *totals;
    snprintf(s->state, sizeof s->state, "%s", totals->state);
    snprintf(s->device, sizeof s->device, "%s", totals->device);
    s->totals.state = s->state;
    s->totals.device = s->device;
    s->count = count;
    for (uint32_t i = 0; i < count; i++) {
        s->rows[i].report = tasks[i];
        snprintf(s->rows[i].reason, sizeof s->rows[i].reason, "%s", tasks[i].reason);
        make_plain(s->rows[i].reason);
        s->rows[i].report.reason = s->rows[i].reason;
    }
    folder->next_ns = now_ns + SHARE * atomic_load(&folder->took_ns);
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/tasks.json", folder->path);
    return att_writer_make(folder->writer, path, make_tasks, s);
}
