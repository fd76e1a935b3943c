#include "cli/report_tasks.h"

#include "base/bandwidth.h"
#include "base/names.h"
#include "cli/json_file.h"

#include <math.h>
#include <string.h>

static json_t *positive(double value)
{
    return value > 0 && isfinite(value) ? json_real(value) : json_null();
}

static json_t *side_json(const att_task_row_t *row, const att_measured_t *m)
{
    char text[ATT_SETTING_TEXT];
    double gbs = att_algorithm_gbs(row->bytes, m->median_us);
    return json_pack(
        "{s:s,s:o,s:I,s:o,s:o}", "setting",
        att_setting_is_keep(m->setting) ? "" : att_setting_text(m->setting, text, sizeof text),
        "median_us", positive(m->median_us), "samples", (json_int_t)m->samples, "algbw_gbs",
        positive(gbs), "busbw_gbs", positive(gbs * att_bus_factor(row->collective, row->ranks)));
}

/* What became of a task. */
static const char *verdict_of(const att_task_row_t *row)
{
    if (att_task_row_failed(row))
        return "failed";
    if (row->kept_default)
        return "kept";
    if (!att_setting_is_keep(row->tuned.setting) && row->tuned.median_us > 0 &&
        row->native.median_us > 0)
        return "tuned";
    return "open";
}

static void copy_member(json_t *to, const json_t *from, const char *key)
{
    json_t *member = json_object_get(from, key);
    if (json_is_number(member) || json_is_string(member))
        json_object_set(to, key, member);
}

static json_t *task_json(const att_task_row_t *row, const json_t *raw)
{
    const char *verdict = verdict_of(row);
    double speedup = row->native.median_us > 0 && row->tuned.median_us > 0
                         ? row->native.median_us / row->tuned.median_us
                         : 0;
    json_t *task =
        json_pack("{s:s,s:I,s:o,s:i,s:i,s:s,s:o,s:o,s:I,s:I,s:I,s:f,s:o,s:o,s:o}", "collective",
                  att_collective_name(row->collective), "bytes", (json_int_t)row->bytes, "group",
                  att_json_text(row->group), "ranks", row->ranks, "nodes", row->nodes, "verdict",
                  verdict, "phase", att_json_text(row->phase), "reason", att_json_text(row->reason),
                  "trials", (json_int_t)row->trials, "calls", (json_int_t)row->calls, "switches",
                  (json_int_t)row->switches, "lost_s", row->lost_us * 1e-6, "default",
                  side_json(row, &row->native), "tuned", side_json(row, &row->tuned), "speedup",
                  strcmp(verdict, "tuned") == 0 || strcmp(verdict, "kept") == 0 ? positive(speedup)
                                                                                : json_null());
    char warning[ATT_TASK_WARNING];
    json_object_set_new(task, "warning", json_string(att_task_row_warning(row, warning)));
    static const char *const more[] = {"gain_lower", "calls_seen", "aborts",
                                       "lost",       "disturbed",  "reduction"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        copy_member(task, raw, more[i]);
    return task;
}

json_t *att_report_tasks(const att_tasks_t *tasks, const json_t *raw)
{
    json_t *list = json_array();
    for (size_t i = 0; i < tasks->count; i++)
        json_array_append_new(list, task_json(&tasks->rows[i], json_array_get(raw, i)));
    return list;
}

json_t *att_report_summary(const json_t *tasks)
{
    int tuned = 0, kept = 0, failed = 0, counted = 0;
    double logs = 0, best = 0, least = INFINITY;
    size_t i;
    json_t *task, *best_task = NULL, *failure = NULL;
    json_array_foreach(tasks, i, task)
    {
        const char *verdict = att_json_text_at(task, "verdict");
        double speedup = json_number_value(json_object_get(task, "speedup"));
        tuned += strcmp(verdict, "tuned") == 0;
        kept += strcmp(verdict, "kept") == 0;
        if (strcmp(verdict, "failed") == 0 && failed++ == 0)
            failure = json_object_get(task, "reason");
        if (speedup <= 0)
            continue;
        logs += log(speedup);
        counted++;
        least = fmin(least, speedup);
        if (speedup > best) {
            best = speedup;
            best_task = task;
        }
    }
    json_t *summary =
        json_pack("{s:i,s:i,s:i,s:i,s:O?,s:i,s:o,s:o,s:o}", "tasks", (int)json_array_size(tasks),
                  "tuned", tuned, "kept", kept, "failed", failed, "failure", failure, "open",
                  (int)json_array_size(tasks) - tuned - kept - failed, "speedup_geometric_mean",
                  counted > 0 ? json_real(exp(logs / counted)) : json_null(), "speedup_most",
                  positive(best), "speedup_least", positive(counted > 0 ? least : 0));
    if (best_task != NULL)
        json_object_set_new(summary, "most",
                            json_pack("{s:s,s:O}", "collective",
                                      att_json_text_at(best_task, "collective"), "bytes",
                                      json_object_get(best_task, "bytes")));
    return summary;
}

void att_report_curves(json_t *tasks, const att_report_trials_t *trials)
{
    uint32_t baseline = att_report_word(&trials->phases, "baseline");
    uint32_t search = att_report_word(&trials->phases, "search");
    size_t i;
    json_t *task;
    json_array_foreach(tasks, i, task)
    {
        const att_report_search_t *s = &trials->searches[i];
        if (s->count == 0)
            continue;
        json_t *curve = json_array();
        double best = 0;
        int searches = 0;
        for (uint32_t k = 0; k < s->count; k++) {
            const att_report_trial_t *trial = &s->trials[k];
            if (trial->phase == baseline) {
                searches++;
                best = 1;
                json_array_append_new(curve, json_pack("[I,f]", (json_int_t)k + 1, 1.0));
            } else if (trial->phase == search && trial->speedup > best) {
                best = trial->speedup;
                json_array_append_new(curve, json_pack("[I,f]", (json_int_t)k + 1, best));
            }
        }
        json_object_set_new(task, "searches", json_integer(searches));
        json_object_set_new(task, "curve", curve);
    }
}
