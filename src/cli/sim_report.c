#include "cli/sim_report.h"

#include "base/names.h"
#include "base/one_line.h"
#include "cli/json_file.h"
#include "cli/sim_trace.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* null for NAN and infinity. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *levels(const double values[ATT_SIM_LEVELS])
{
    return json_pack("{s:o,s:o,s:o,s:o}", "10", number(values[0]), "5", number(values[1]), "2",
                     number(values[2]), "1", number(values[3]));
}

static json_t *row_json(const att_sim_row_t *r)
{
    json_t *row =
        json_pack("{s:s,s:b,s:s,s:i,s:f,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "surface", r->surface,
                  "held_out", r->held_out, "strategy", r->strategy, "seeds", (int)r->seeds, "noise",
                  r->noise, "calls_at_stop_median", number(r->calls_at_stop), "gap_at_descent_stop",
                  number(r->gap_at_descent_stop), "gap_final_geomean", number(r->gap_final),
                  "gap_final_p99", number(r->gap_p99), "gap_final_worst", number(r->gap_worst),
                  "calls_to", levels(r->calls_to), "regret", number(r->regret));
    json_t *more = json_pack(
        "{s:I,s:o,s:I,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:i}", "descent_stop",
        (json_int_t)r->descent_stop, "calls_at_settled_median", number(r->calls_at_settled),
        "budget", (json_int_t)r->budget, "gap_final_median", number(r->gap_median), "gap_final_p90",
        number(r->gap_p90), "calls_to_mean", levels(r->calls_to_mean), "calls_to_stay",
        levels(r->calls_to_stay), "share_to", levels(r->share_to), "regret_share",
        number(r->regret_share), "slower_share", number(r->slower_share), "trials_median",
        number(r->trials), "trial_calls_median", number(r->trial_calls), "offline_samples",
        number(r->offline), "kept_default_share", number(r->kept_share), "ask_us",
        number(r->ask_us), "speedup", number(r->speedup), "step_speedup", number(r->step_speedup),
        "failed", (int)r->failed);
    if (row != NULL && more != NULL)
        json_object_update(row, more);
    json_decref(more);
    return row;
}

static const char csv_header[] =
    "surface,held_out,strategy,seeds,noise,descent_stop_calls,budget_calls,calls_at_stop_median,"
    "calls_at_settled_median,gap_at_descent_stop,gap_final_geomean,gap_final_median,gap_final_p90,"
    "gap_final_p99,gap_final_worst,calls_to_10,calls_to_5,calls_to_2,calls_to_1,regret_calls,"
    "slower_share,trials_median,offline_samples,ask_us,speedup,step_speedup,failed\n";

/* An empty field: never. */
static void csv_number(FILE *out, double value)
{
    if (isfinite(value))
        fprintf(out, ",%.9g", value);
    else
        fputc(',', out);
}

/* In quotes, a quote within them twice (RFC 4180). */
static void csv_quoted(FILE *out, const char *text)
{
    char line[ATT_ONE_LINE];
    fputc('"', out);
    for (const char *c = att_one_line(text, line, sizeof line); *c != '\0'; c++)
        fputs(*c == '"' ? "\"\"" : (const char[]){*c, '\0'}, out);
    fputc('"', out);
}

static void csv_row(FILE *out, const att_sim_row_t *r)
{
    if (strpbrk(r->surface, ",\"\n\r") != NULL)
        csv_quoted(out, r->surface);
    else
        fputs(r->surface, out);
    fprintf(out, ",%d,", r->held_out);
    csv_quoted(out, r->strategy);
    fprintf(out, ",%u,%.9g,%" PRIu64 ",%" PRIu64, r->seeds, r->noise, r->descent_stop, r->budget);
    const double values[] = {r->calls_at_stop, r->calls_at_settled, r->gap_at_descent_stop,
                             r->gap_final,     r->gap_median,       r->gap_p90,
                             r->gap_p99,       r->gap_worst,        r->calls_to[0],
                             r->calls_to[1],   r->calls_to[2],      r->calls_to[3],
                             r->regret,        r->slower_share,     r->trials,
                             r->offline,       r->ask_us,           r->speedup,
                             r->step_speedup};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        csv_number(out, values[i]);
    fprintf(out, ",%u\n", r->failed);
}

/* The folders that the file lies in, as far as they are missing. */
static void make_folders(const char *path)
{
    char folder[PATH_MAX];
    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        if (folder[0] != '\0')
            (void)mkdir(folder, 0777); /* what is wrong shows when the file is opened */
    }
}

int att_sim_report_try(const char *path, att_error_t *error)
{
    char temporary[PATH_MAX];
    struct stat status;
    make_folders(path);
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return att_fail(error, ATT_ESYSTEM, "%s: cannot write: it is a folder", path);
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    FILE *file = fopen(temporary, "we");
    if (file == NULL)
        return att_fail_errno(error, "%s: cannot write", path);
    fclose(file);
    unlink(temporary);
    return ATT_OK;
}

static int open_text(const char *path, const char *header, FILE **file, att_error_t *error)
{
    make_folders(path);
    *file = fopen(path, "we");
    if (*file == NULL)
        return att_fail_errno(error, "%s: cannot write", path);
    fputs(header, *file);
    return ATT_OK;
}

static int close_text(FILE *file, const char *what, att_error_t *error)
{
    if (file == NULL)
        return ATT_OK;
    bool bad = ferror(file) != 0;
    bad |= fclose(file) != 0;
    return bad ? att_fail_errno(error, "cannot write %s", what) : ATT_OK;
}

int att_sim_report_open(att_sim_report_t *report, const char *json_path, const char *csv_path,
                        const char *trace_path, att_error_t *error)
{
    int rc = json_path != NULL ? att_sim_report_try(json_path, error) : ATT_OK;
    if (rc != ATT_OK)
        return rc;
    att_sim_report_t made = {.rows = json_array(), .comparisons = json_array()};
    if (att_sim_verdict_open(&made.verdict) != ATT_OK || made.rows == NULL ||
        made.comparisons == NULL)
        rc = att_fail(error, ATT_ENOMEM, "no memory for a report");
    if (rc == ATT_OK && csv_path != NULL)
        rc = open_text(csv_path, csv_header, &made.csv, error);
    if (rc == ATT_OK && trace_path != NULL)
        rc = open_text(trace_path, att_sim_trace_header, &made.trace, error);
    if (rc != ATT_OK) {
        att_sim_report_drop(&made);
        return rc;
    }
    *report = made;
    return ATT_OK;
}

void att_sim_report_drop(att_sim_report_t *report)
{
    json_decref(report->rows);
    json_decref(report->comparisons);
    json_decref(att_sim_verdict_close(&report->verdict, ""));
    (void)close_text(report->csv, "", NULL);
    (void)close_text(report->trace, "", NULL);
}

void att_sim_report_heading(const char *surface, const struct att_sim_task *task, int load,
                            const att_sim_contest_t *contest, double noise)
{
    const att_sim_task_config_t *c = att_sim_task_config(task);
    att_sim_optimum_t optimum = {ATT_SETTING_KEEP, 0};
    (void)att_sim_task_optimum((struct att_sim_task *)task, load, &optimum, NULL); /* known */
    double native_us = att_sim_task_us(task, ATT_SETTING_KEEP, load);
    char bytes[24], setting[ATT_SETTING_TEXT];
    printf("%s: %s of %s, %s, noise %.3g %%\n", surface, att_collective_name(c->collective),
           att_bytes_text(c->bytes, bytes, sizeof bytes),
           c->objective == ATT_SIM_STEP ? "step" : "collective", 100 * noise);
    printf("  optimum %s, %.1f us; NCCL's choice %.1f us (%+.1f %%)\n",
           att_setting_text(optimum.setting, setting, sizeof setting), optimum.us, native_us,
           100 * (native_us / optimum.us - 1));
    if (c->step.compute_us > 0) {
        double native_step_us = att_sim_task_step_us(task, ATT_SETTING_KEEP, load);
        double step_us = att_sim_task_step_us(task, optimum.setting, load);
        printf("  step: compute %.1f us, with NCCL's choice %.1f us, with this optimum %.1f us "
               "(%.2fx)\n",
               c->step.compute_us, native_step_us, step_us, native_step_us / step_us);
    }
    if (contest->descent_stop > 0)
        printf("  coordinate descent stops after %" PRIu64 " calls (median); ",
               contest->descent_stop);
    printf("  budget %" PRIu64 " calls, %u seeds\n", contest->budget, contest->seeds);
    printf("  %-36s %6s %7s %7s %7s %7s %7s %6s %6s %6s %6s %8s %6s %7s\n", "strategy", "stop",
           "settled", "gap@ds", "final", "p99", "worst", "to10%", "to5%", "to2%", "to1%", "regret",
           "slower", "ask us");
}

static void print_percent(double value, int width)
{
    if (isfinite(value))
        printf(" %*.2f%%", width - 1, 100 * value);
    else
        printf(" %*s", width, "-");
}

static void print_calls(double value, int width)
{
    if (isfinite(value))
        printf(" %*.0f", width, value);
    else
        printf(" %*s", width, "never");
}

int att_sim_report_row(att_sim_report_t *report, const att_sim_row_t *row, att_error_t *error)
{
    printf("  %-36s", row->strategy);
    print_calls(row->calls_at_stop, 6);
    print_calls(row->calls_at_settled, 7);
    print_percent(row->gap_at_descent_stop, 7);
    print_percent(row->gap_final, 7);
    print_percent(row->gap_p99, 7);
    print_percent(row->gap_worst, 7);
    for (int level = 0; level < ATT_SIM_LEVELS; level++)
        print_calls(row->calls_to[level], 6);
    printf(" %8.1f", row->regret);
    print_percent(row->slower_share, 6);
    printf(" %7.1f", row->ask_us);
    if (isfinite(row->step_speedup) || row->offline > 0)
        printf("  ");
    if (isfinite(row->step_speedup))
        printf(" step %.2fx", row->step_speedup);
    if (row->offline > 0)
        printf(" +%.0f offline samples, charged", row->offline);
    report->failed += row->failed > 0;
    if (row->failed > 0)
        printf("  failed in %u runs: %s", row->failed, row->why);
    printf("\n");
    if (report->csv != NULL)
        csv_row(report->csv, row);
    json_t *json = row_json(row);
    if (json == NULL || json_array_append_new(report->rows, json) != 0)
        return att_fail(error, ATT_ENOMEM, "no memory for a row of the report");
    return ATT_OK;
}

void att_sim_report_duels_heading(const char *against)
{
    printf("  against %s, run by run with the same seed (Wilcoxon signed rank):\n", against);
}

/* In the table's units: gaps in %, the others in calls. */
static const char *measure_text(const att_sim_duel_t *duel, double value, char *text, size_t size)
{
    if (!isfinite(value))
        snprintf(text, size, "-");
    else if (duel->measure == ATT_SIM_GAP_AT_STOP || duel->measure == ATT_SIM_GAP_FINAL)
        snprintf(text, size, "%.2f%%", 100 * value);
    else
        snprintf(text, size, "%.*f calls", duel->measure == ATT_SIM_REGRET, value);
    return text;
}

int att_sim_report_duel(att_sim_report_t *report, const char *surface, const att_sim_duel_t *duel,
                        att_error_t *error)
{
    const att_wilcoxon_t *t = &duel->test;
    char a[32], b[32];
    printf("    %-34s %-20s median %s, there %s; smaller in %u runs, larger in %u; p %.2g\n",
           duel->a, att_sim_measure_name(duel->measure),
           measure_text(duel, duel->median_a, a, sizeof a),
           measure_text(duel, duel->median_b, b, sizeof b), t->wins, t->losses, t->p);
    json_t *json = json_pack(
        "{s:s,s:s,s:s,s:s,s:o,s:o,s:o,s:i,s:i,s:i,s:s,s:o}", "surface", surface, "measure",
        att_sim_measure_name(duel->measure), "a", duel->a, "b", duel->b, "median_a",
        number(duel->median_a), "median_b", number(duel->median_b), "median_difference",
        number(duel->median_difference), "pairs", (int)t->pairs, "a_smaller", (int)t->wins,
        "a_larger", (int)t->losses, "test",
        t->exact ? "Wilcoxon signed rank, exact" : "Wilcoxon signed rank, normal approximation",
        "p", number(t->p));
    if (json == NULL || json_array_append_new(report->comparisons, json) != 0)
        return att_fail(error, ATT_ENOMEM, "no memory for a comparison of the report");
    return ATT_OK;
}

int att_sim_report_close(att_sim_report_t *report, const char *strategy, const char *json_path,
                         att_error_t *error)
{
    int rc = ATT_OK;
    if (report->verdict.surfaces[0] + report->verdict.surfaces[1] > 1)
        att_sim_verdict_print(&report->verdict, strategy);
    rc = close_text(report->csv, "the CSV rows", error);
    int traced = close_text(report->trace, "the trace", rc == ATT_OK ? error : NULL);
    rc = rc == ATT_OK ? traced : rc;
    json_t *root =
        json_pack("{s:i,s:s,s:s,s:o,s:o,s:o}", "version", 1, "tool", "attune sim " ATTUNE_VERSION,
                  "units", "gaps: fraction over the optimum; calls; regret: optimal calls", "rows",
                  report->rows, "comparisons", report->comparisons, "verdict",
                  att_sim_verdict_close(&report->verdict, strategy));
    if (root == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for the report");
    if (json_path == NULL || rc != ATT_OK) {
        json_decref(root);
        return rc;
    }
    return att_json_replace(json_path, root, error);
}
