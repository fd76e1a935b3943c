#include "cli/bench_sweep_report.h"

#include "base/names.h"
#include "base/bandwidth.h"
#include "cli/bench_report.h"
#include "cli/json_file.h"
#include "search/statistics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFINITION                                                                                 \
    "a sample is the time of `batch` calls, of the kinds that --place names in turn, after a meeting "   \
    "of "                                                                                          \
    "all ranks, divided by batch; on each rank between two CUDA events (or by the fabric's "       \
    "clock); the smallest over the ranks, "                                                        \
    "the largest for broadcast and reduce"

void att_sweep_report_header(const att_bench_job_t *job)
{
    const att_bench_options_t *o = job->options;
    printf("#\n# Sweep: grid of %d sample(s) a setting, then the best %d, NCCL's choice%s: %d "
           "samples each, interleaved\n",
           o->grid_repeats, o->keep, o->also != NULL ? " and the tuned settings" : "", o->repeats);
    printf("# " DEFINITION "\n");
}

static const char *label_of(const att_candidate_t *c)
{
    if (c->native)
        return c->also ? "NCCL's choice = tuned" : "NCCL's choice";
    return c->also ? "tuned" : "";
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Value below which `share` of the samples lie, nearest rank. */
static double quantile(const att_candidate_t *c, double share)
{
    if (c->sample_count == 0)
        return 0;
    double *sorted = malloc(c->sample_count * sizeof *sorted);
    if (sorted == NULL)
        return 0;
    memcpy(sorted, c->samples, c->sample_count * sizeof *sorted);
    qsort(sorted, c->sample_count, sizeof *sorted, compare_doubles);
    uint32_t index = (uint32_t)(share * (c->sample_count - 1) + 0.5);
    double value = sorted[index];
    free(sorted);
    return value;
}

static json_t *setting_json(att_setting_t s)
{
    char text[ATT_SETTING_TEXT];
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:I}", "text",
                     att_setting_text(s, text, sizeof text), "algorithm",
                     att_algorithm_name(s.algorithm), "protocol", att_protocol_name(s.protocol),
                     "transport", att_transport_name(s.transport), "channels", (int)s.channels,
                     "threads", (int)s.threads, "chunk", (json_int_t)s.chunk_bytes);
}

static json_t *final_json(const att_sweep_row_t *row, const att_candidate_t *c, double best_us)
{
    double algbw = att_algorithm_gbs(row->shape->bytes, c->median_us);
    json_t *samples = json_array();
    for (uint32_t i = 0; i < c->sample_count; i++)
        json_array_append_new(samples, json_real(c->samples[i]));
    return json_pack("{s:o, s:b, s:b, s:f, s:f, s:f, s:f, s:f, s:f, s:i, s:o}", "setting",
                     setting_json(c->setting), "default", c->native, "tuned", c->also, "median_us",
                     c->median_us, "p10_us", quantile(c, 0.1), "p90_us", quantile(c, 0.9), "alg_bw",
                     algbw, "bus_bw",
                     algbw * att_bus_factor(row->shape->collective, row->shape->ranks),
                     "ratio_to_best", c->median_us > 0 ? best_us / c->median_us : 0, "repeats",
                     (int)c->sample_count, "samples_us", samples);
}

static json_t *grid_json(const att_candidates_t *grid)
{
    json_t *list = json_array();
    for (int i = 0; i < grid->count; i++) {
        const att_candidate_t *c = &grid->items[i];
        char text[ATT_SETTING_TEXT];
        json_array_append_new(list, json_pack("[s, f, i]",
                                              att_setting_text(c->setting, text, sizeof text),
                                              c->median_us, (int)c->sample_count));
    }
    return list;
}

static void print_row(const att_sweep_row_t *row, double best_us)
{
    char bytes[24];
    printf("#\n# %s %s: %d settings in the grid, NCCL's own pair %s/%s, %d call(s) a sample, "
           "#wrong %s%" PRIu64 "\n",
           att_shape_title(row->shape), att_bytes_text(row->shape->bytes, bytes, sizeof bytes),
           row->grid->count - 1, att_algorithm_name(row->native_pair / ATT_PROTOCOL_COUNT),
           att_protocol_name(row->native_pair % ATT_PROTOCOL_COUNT), row->batch,
           row->checked ? "" : "N/A ", row->wrong);
    printf("# %4s  %-36s  %9s  %9s  %9s  %7s  %7s  %6s\n", "", "setting", "median us", "p10 us",
           "p90 us", "algbw", "busbw", "ratio");
    for (int i = 0; i < row->finals->count; i++) {
        const att_candidate_t *c = &row->finals->items[i];
        char text[ATT_SETTING_TEXT];
        double algbw = att_algorithm_gbs(row->shape->bytes, c->median_us);
        printf("  %4d  %-36s  %9.2f  %9.2f  %9.2f  %7.2f  %7.2f  %6.3f  %s\n", i + 1,
               att_setting_text(c->setting, text, sizeof text), c->median_us, quantile(c, 0.1),
               quantile(c, 0.9), algbw,
               algbw * att_bus_factor(row->shape->collective, row->shape->ranks),
               c->median_us > 0 ? best_us / c->median_us : 0, label_of(c));
    }
    fflush(stdout);
}

static const att_candidate_t *find(const att_candidates_t *list, bool native, bool also)
{
    for (int i = 0; i < list->count; i++)
        if ((native && list->items[i].native) || (also && list->items[i].also))
            return &list->items[i];
    return NULL;
}

json_t *att_sweep_report_row(const att_bench_job_t *job, const att_sweep_row_t *row)
{
    double best_us = row->finals->items[0].median_us;
    print_row(row, best_us);
    json_t *finals = json_array();
    for (int i = 0; i < row->finals->count; i++)
        json_array_append_new(finals, final_json(row, &row->finals->items[i], best_us));
    const att_candidate_t *native = find(row->finals, true, false);
    const att_candidate_t *tuned = find(row->finals, false, true);
    int pair = row->native_pair;
    return json_pack("{s:s, s:I, s:i, s:s, s:s, s:i, s:o, s:f, s:o, s:o, s:o, s:o, s:o}",
                     "collective", att_collective_name(row->shape->collective), "bytes",
                     (json_int_t)row->shape->bytes, "ranks", row->shape->ranks, "type",
                     att_nccl_type_name(row->shape->type), "load",
                     job->options->gemm ? "gemm" : "none", "batch", row->batch, "native_pair",
                     pair < 0 ? json_null()
                              : json_sprintf("%s/%s", att_algorithm_name(pair / ATT_PROTOCOL_COUNT),
                                             att_protocol_name(pair % ATT_PROTOCOL_COUNT)),
                     "best_us", best_us, "default_us",
                     native != NULL ? json_real(native->median_us) : json_null(), "tuned_us",
                     tuned != NULL ? json_real(tuned->median_us) : json_null(), "nwrong",
                     row->checked ? json_integer((json_int_t)row->wrong) : json_null(), "settings",
                     finals, "grid", grid_json(row->grid));
}

/* One line a row: NCCL's choice, tuned and best, and how the first two compare with the best. */
static void print_summary(const json_t *tasks)
{
    size_t i;
    json_t *task;
    printf("#\n# %-13s  %12s  %5s  %11s  %11s  %11s  %9s  %9s  %s\n", "collective", "bytes", "load",
           "default us", "tuned us", "best us", "default", "tuned", "best setting");
    json_array_foreach(tasks, i, task)
    {
        double best = json_real_value(json_object_get(task, "best_us"));
        double native = json_real_value(json_object_get(task, "default_us"));
        json_t *tuned = json_object_get(task, "tuned_us");
        json_t *first = json_array_get(json_object_get(task, "settings"), 0);
        char tuned_us[32] = "-", tuned_ratio[32] = "-";
        if (json_is_real(tuned) && json_real_value(tuned) > 0) {
            snprintf(tuned_us, sizeof tuned_us, "%.2f", json_real_value(tuned));
            snprintf(tuned_ratio, sizeof tuned_ratio, "%.3f", best / json_real_value(tuned));
        }
        printf("  %-13s  %12" JSON_INTEGER_FORMAT "  %5s  %11.2f  %11s  %11.2f  %9.3f  %9s  %s\n",
               json_string_value(json_object_get(task, "collective")),
               json_integer_value(json_object_get(task, "bytes")),
               json_string_value(json_object_get(task, "load")), native, tuned_us, best,
               native > 0 ? best / native : 0, tuned_ratio,
               json_string_value(json_object_get(json_object_get(first, "setting"), "text")));
    }
    fflush(stdout);
}

int att_sweep_report_end(const att_bench_job_t *job, json_t *tasks, att_error_t *error)
{
    print_summary(tasks);
    if (job->options->json == NULL) {
        json_decref(tasks);
        return ATT_OK;
    }
    json_t *root = json_pack("{s:i, s:{s:s, s:s}, s:s, s:o, s:o}", "version", 1, "units", "time",
                             "us", "bw", "GB/s (10^9 bytes a second)", "definition", DEFINITION,
                             "provenance", att_bench_provenance(job), "tasks", tasks);
    if (root == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for %s", job->options->json);
    return att_json_replace(job->options->json, root, error);
}
