#include "cli/report_run.h"

#include "cli/findings.h"
#include "cli/json_file.h"
#include "cli/lateness_json.h"
#include "cli/report_counters.h"
#include "cli/report_file.h"
#include "cli/report_tasks.h"
#include "cli/tasks_file.h"
#include "cli/trace_open.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MANIFEST_MAX (4u << 20)
#define NOTES_MAX    65536u

typedef struct work {
    const char *folder;
    att_report_run_t *run;
    json_t *value, *missing, *files;
} work_t;

/* `what` is not shown because of `why`; `how` to get it, or NULL. */
static void miss(work_t *w, const char *what, const char *why, const char *how)
{
    json_array_append_new(w->missing, json_pack("{s:s,s:o,s:s?}", "what", what, "why",
                                                att_json_text(why), "how", how));
}

static void miss_file(work_t *w, const char *what, int status, const att_error_t *error,
                      const char *name, const char *how)
{
    char why[128];
    snprintf(why, sizeof why, "the folder has no %s", name);
    miss(w, what, status == -ATT_ENOENT ? why : error->text, how);
}

static void note_file(work_t *w, const char *name)
{
    json_array_append_new(w->files, att_json_text(name));
}

/* --- tasks.json ---------------------------------------------------------------------------------
 */

static void add_coverage(work_t *w, const att_tasks_t *t, const json_t *raw)
{
    /* Of younger sidecars, or with the preload. */
    static const char *const more[] = {"called", "answered",   "bypassed", "streams",
                                       "unused", "incomplete", "unsent",   "waiting"};
    uint64_t untimed = 0;
    json_t *reasons = json_array();
    double calls = t->coverage.decisions > 0 ? (double)t->coverage.decisions : 1;
    for (size_t i = 0; i < t->coverage.untimed_count; i++) {
        untimed += t->coverage.untimed[i].count;
        if (t->coverage.untimed[i].count > 0)
            json_array_append_new(reasons,
                                  json_pack("{s:o,s:I,s:f}", "reason",
                                            att_json_text(t->coverage.untimed[i].reason), "calls",
                                            (json_int_t)t->coverage.untimed[i].count, "share",
                                            (double)t->coverage.untimed[i].count / calls));
    }
    json_t *coverage = json_pack(
        "{s:I,s:I,s:f,s:I,s:f,s:o,s:I,s:I,s:I,s:I,s:I,s:f,s:I}", "calls",
        (json_int_t)t->coverage.decisions, "timed", (json_int_t)t->coverage.timed, "timed_share",
        (double)t->coverage.timed / calls, "untimed", (json_int_t)untimed, "untimed_share",
        (double)untimed / calls, "untimed_by_reason", reasons, "frozen",
        (json_int_t)t->coverage.frozen, "unseen", (json_int_t)t->coverage.unseen, "records_dropped",
        (json_int_t)t->coverage.dropped, "anomalies", (json_int_t)t->coverage.anomalies, "waited",
        (json_int_t)t->coverage.waited, "longest_wait_us", t->coverage.longest_wait_us, "in_doubt",
        (json_int_t)t->coverage.in_doubt);
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        json_t *count = json_object_get(raw, more[i]);
        if (json_is_integer(count))
            json_object_set(coverage, more[i], count);
    }
    json_object_set_new(w->value, "coverage", coverage);
}

static void add_cost(work_t *w, const att_tasks_t *t)
{
    json_object_set_new(w->value, "cost",
                        json_pack("{s:f,s:f,s:f,s:f,s:I}", "lost_s", t->cost.lost_us * 1e-6,
                                  "run_s", t->cost.run_us * 1e-6, "lost_share",
                                  t->cost.run_us > 0 ? t->cost.lost_us / t->cost.run_us : 0.0,
                                  "sidecar_cpu_share", t->agent.cpu_share, "records",
                                  (json_int_t)t->agent.records));
}

static void add_machine(work_t *w, const att_tasks_t *t)
{
    char nccl[32] = "";
    if (t->nccl_version > 0)
        snprintf(nccl, sizeof nccl, "%d.%d.%d", t->nccl_version / 10000,
                 t->nccl_version / 100 % 100, t->nccl_version % 100);
    json_t *machine = json_pack("{s:o,s:o,s:o}", "attune",
                                t->attune[0] != '\0' ? att_json_text(t->attune) : json_null(),
                                "nccl", nccl[0] != '\0' ? json_string(nccl) : json_null(), "device",
                                t->device[0] != '\0' ? att_json_text(t->device) : json_null());
    json_object_set_new(w->value, "machine", machine);
}

static int add_tasks(work_t *w, att_error_t *error)
{
    char *bytes;
    size_t length;
    att_tasks_t tasks;
    att_run_end_t end;
    json_t *root = NULL;
    att_run_end_look(w->folder, &end);
    int status =
        att_report_file_read(w->folder, "tasks.json", ATT_TASKS_FILE_MAX, &bytes, &length, error);
    if (status == -ATT_ENOENT) {
        miss(w, "tasks, cost, coverage",
             "the folder has no tasks.json: the sidecar never began, or this is another folder",
             "attune run -- COMMAND");
        return ATT_OK;
    }
    if (status != ATT_OK)
        return status;
    att_error_t inner = {""};
    status = att_tasks_parse(bytes, length, &tasks, &inner);
    if (status == ATT_OK)
        status = att_json_parse(bytes, length, &root, &inner);
    free(bytes);
    if (status != ATT_OK)
        return att_fail(error, (att_status_t)-status, "%s/tasks.json: %s", w->folder, inner.text);
    note_file(w, "tasks.json");
    const char *why = att_run_end_text(&end, &tasks, w->run->end);
    if (!tasks.finished)
        miss(w, "the end of the run",
             why[0] != '\0' ? why : "it is under way: numbers are those of the last report", NULL);
    json_object_set_new(w->value, "state", json_string(tasks.finished ? "finished" : "unfinished"));
    json_object_set_new(w->value, "tasks",
                        att_report_tasks(&tasks, json_object_get(root, "tasks")));
    json_object_set_new(w->value, "summary",
                        att_report_summary(json_object_get(w->value, "tasks")));
    add_coverage(w, &tasks, json_object_get(root, "coverage"));
    add_cost(w, &tasks);
    add_machine(w, &tasks);
    json_decref(root);
    att_tasks_free(&tasks);
    return ATT_OK;
}

/* --- trials.jsonl -------------------------------------------------------------------------------
 */

static json_t *tally_json(const att_report_tally_t *tally, const char *name)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < tally->count; i++)
        json_array_append_new(list, json_pack("{s:o,s:I,s:I}", name, att_json_text(tally->word[i]),
                                              "trials", (json_int_t)tally->trials[i], "calls",
                                              (json_int_t)tally->calls[i]));
    return list;
}

static void add_trials(work_t *w)
{
    att_error_t error = {""};
    att_report_trials_t *t = &w->run->trials;
    int status = att_report_trials_read(w->folder, json_object_get(w->value, "tasks"), t, &error);
    if (status != ATT_OK) {
        miss_file(w, "how the search went on", status, &error, "trials.jsonl", NULL);
        return;
    }
    note_file(w, "trials.jsonl");
    if (t->unreadable > 0) {
        char why[96];
        snprintf(why, sizeof why, "%llu lines of trials.jsonl cannot be read",
                 (unsigned long long)t->unreadable);
        miss(w, "some trials", why, NULL);
    }
    json_object_set_new(w->value, "search",
                        json_pack("{s:o,s:o}", "by_phase", tally_json(&t->phases, "phase"),
                                  "by_outcome", tally_json(&t->outcomes, "outcome")));
    att_report_curves(json_object_get(w->value, "tasks"), t);
}

/* --- the trace ----------------------------------------------------------------------------------
 */

static void add_trace_facts(work_t *w, const struct att_trace *trace)
{
    const att_trace_facts_t *f = att_trace_facts(trace);
    json_object_set_new(
        w->value, "trace",
        json_pack("{s:I,s:I,s:f,s:I,s:I,s:I,s:I}", "records", (json_int_t)f->records, "files",
                  (json_int_t)f->files, "span_s", (double)(f->last_ns - f->first_ns) * 1e-9,
                  "lost_in_rings", (json_int_t)f->ring_dropped, "lost_in_writing",
                  (json_int_t)f->writer_dropped, "frames_missing", (json_int_t)f->missing_frames,
                  "bytes_damaged", (json_int_t)f->skipped_bytes));
}

static void add_stragglers(work_t *w, const char *name)
{
    static const char *const how = "attune run --trace on -- COMMAND";
    struct att_trace *trace;
    att_trace_choice_t choice;
    att_lateness_t lateness;
    att_error_t error = {""};
    int status = att_trace_open(w->folder, &trace, &error);
    if (status != ATT_OK) {
        miss(w, "late ranks",
             status == -ATT_ENOENT ? "no calls were recorded one by one" : error.text, how);
        return;
    }
    note_file(w, "trace/");
    char damage[480];
    if (att_trace_damage_text(trace, w->folder, damage, sizeof damage)[0] != '\0')
        miss(w, "some calls of the trace", damage, NULL);
    add_trace_facts(w, trace);
    att_trace_wish_t all = {0};
    status = att_trace_choose(trace, &all, &choice, &error);
    if (status == ATT_OK) {
        status = att_lateness_make(trace, &choice, &lateness, &error);
        if (status == ATT_OK) {
            json_object_set_new(w->value, "stragglers",
                                att_lateness_json(trace, name, &lateness, choice.origin_ns));
            att_lateness_free(&lateness);
        }
        att_trace_choice_free(&choice);
    }
    if (status != ATT_OK)
        miss(w, "late ranks", error.text, NULL);
    att_trace_close(trace);
}

/* --- manifest, findings, counters, notes ------------------------------------------------------
 */

static int read_json(work_t *w, const char *name, json_t **root, att_error_t *error)
{
    char *bytes;
    size_t length;
    int status = att_report_file_read(w->folder, name, MANIFEST_MAX, &bytes, &length, error);
    if (status != ATT_OK)
        return status;
    att_error_t inner = {""};
    status = att_json_parse(bytes, length, root, &inner);
    free(bytes);
    if (status == ATT_OK) {
        status = att_json_check_version(*root, 1, &inner);
        if (status != ATT_OK)
            json_decref(*root);
    }
    if (status != ATT_OK)
        return att_fail(error, (att_status_t)-status, "%s: %s", name, inner.text);
    note_file(w, name);
    return ATT_OK;
}

static void add_manifest(work_t *w)
{
    att_error_t error = {""};
    json_t *manifest;
    int status = read_json(w, "manifest.json", &manifest, &error);
    if (status != ATT_OK) {
        miss_file(w, "command, options, environment, dates", status, &error, "manifest.json", NULL);
        return;
    }
    static const char *const keys[] = {"run_id",  "host",   "directory",   "command",
                                       "options", "ended",  "duration_s",  "exit_status",
                                       "started", "attune", "environment", "sidecar"};
    json_t *kept = json_object();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *member = json_object_get(manifest, keys[i]);
        if (member != NULL)
            json_object_set(kept, keys[i], member);
    }
    json_object_set_new(w->value, "provenance", kept);
    json_decref(manifest);
}

static void add_checks(work_t *w)
{
    att_error_t error = {""};
    att_findings_t f;
    if (att_findings_read(w->folder, &f, &error) != ATT_OK) {
        miss(w, "checks of results and settings", error.text, NULL);
        return;
    }
    if (!f.has_fabric && !f.has_bench)
        return;
    json_t *checks = json_object();
    if (f.has_fabric) {
        json_object_set_new(checks, "fabric", att_json_text(f.fabric));
        json_object_set_new(checks, "surface",
                            f.surface[0] != '\0' ? att_json_text(f.surface) : json_null());
        json_object_set_new(checks, "mismatches", json_integer((json_int_t)f.mismatches));
        json_object_set_new(checks, "calls", json_integer((json_int_t)f.calls));
    }
    if (f.has_bench)
        json_object_set_new(checks, "wrong_results", json_integer((json_int_t)f.result_errors));
    json_object_set_new(w->value, "checks", checks);
}

static void add_counters(work_t *w)
{
    att_error_t error = {""};
    json_t *counters;
    int status = att_report_counters(w->folder, &counters, w->files, &error);
    if (status == -ATT_ENOENT)
        miss(w, "counters", "none were taken", "attune run --counters on -- COMMAND");
    else if (status != ATT_OK)
        miss(w, "counters", error.text, NULL);
    else
        json_object_set_new(w->value, "counters", counters);
}

static void add_notes(work_t *w)
{
    char *bytes;
    size_t length;
    if (att_report_file_read(w->folder, "environment.txt", NOTES_MAX, &bytes, &length, NULL) !=
        ATT_OK)
        return;
    note_file(w, "environment.txt");
    json_object_set_new(w->value, "notes", att_json_text(bytes));
    free(bytes);
}

int att_report_run_read(const char *folder, att_report_run_t *run, att_error_t *error)
{
    struct stat about;
    char real[PATH_MAX];
    *run = (att_report_run_t){0};
    if (stat(folder, &about) != 0)
        return att_fail(error, ATT_ENOENT, "%s: %s", folder, strerror(errno));
    if (!S_ISDIR(about.st_mode))
        return att_fail(error, ATT_EINPUT, "%s: not a folder; a report is made of a run folder",
                        folder);
    const char *name = realpath(folder, real) != NULL ? strrchr(real, '/') + 1 : folder;
    name = name[0] != '\0' ? name : "/";
    work_t w = {.folder = folder,
                .run = run,
                .value = json_object(),
                .missing = json_array(),
                .files = json_array()};
    run->value = w.value;
    json_object_set_new(w.value, "version", json_integer(ATT_REPORT_VERSION));
    json_object_set_new(w.value, "attune", json_string(ATTUNE_VERSION));
    json_object_set_new(w.value, "units",
                        json_string("us = microseconds, s = seconds, GB/s = 10^9 bytes a second, "
                                    "shares of 1"));
    json_object_set_new(w.value, "run", att_json_text(name));
    json_object_set_new(w.value, "missing", w.missing);
    json_object_set_new(w.value, "files", w.files);
    static const char *const sections[] = {
        "state",    "summary", "tasks",    "cost",    "search",     "stragglers", "trace",
        "coverage", "checks",  "counters", "machine", "provenance", "notes"};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        json_object_set_new(w.value, sections[i], json_null());
    int status = add_tasks(&w, error);
    if (status == ATT_OK) {
        add_trials(&w);
        add_manifest(&w);
        add_checks(&w);
        add_stragglers(&w, name);
        add_counters(&w);
        add_notes(&w);
        if (json_array_size(w.files) == 0)
            status = att_fail(error, ATT_ENOENT,
                              "%s: no file of a run in it: expected tasks.json, trials.jsonl, "
                              "manifest.json or trace/",
                              folder);
    }
    if (status != ATT_OK)
        att_report_run_free(run);
    return status;
}

void att_report_run_free(att_report_run_t *run)
{
    json_decref(run->value);
    att_report_trials_free(&run->trials);
    *run = (att_report_run_t){0};
}
