#include "cli/bench_report.h"

#include "base/names.h"
#include "cli/json_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void att_bench_report_init(att_bench_report_t *report, const att_bench_job_t *job)
{
    memset(report, 0, sizeof *report);
    report->job = job;
    report->results = json_array();
    report->last = json_object();
}

void att_bench_report_free(att_bench_report_t *report)
{
    json_decref(report->results);
    json_decref(report->last);
    json_decref(report->gemm);
}

void att_bench_report_columns(const att_shape_t *shape)
{
    printf("#\n# Collective test starting: %s\n#\n", att_shape_title(shape));
    printf("# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place"
           "          \n",
           "", "", "", "", "");
    printf("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s\n", "size", "count",
           "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw",
           "#wrong");
    printf("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s\n", "(B)",
           "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)",
           "");
    fflush(stdout);
}

/* nccl-tests' rule: two decimals, fewer as the column fills up. */
static void number(double value, int width, char *text, size_t size)
{
    for (int decimals = 2; decimals >= 0; decimals--)
        if (snprintf(text, size, "%*.*f", width, decimals, value) <= width)
            return;
    snprintf(text, size, "%*.*e", width, width >= 7 ? 1 : 0, value);
}

static void print_side(const att_bench_side_t *side)
{
    char time[32], algbw[32], busbw[32];
    if (!side->measured) {
        printf("  %7s  %6s  %6s  %6s", "N/A", "N/A", "N/A", "N/A");
        return;
    }
    number(side->time_us, 7, time, sizeof time);
    number(side->algbw_gbs, 6, algbw, sizeof algbw);
    number(side->busbw_gbs, 6, busbw, sizeof busbw);
    printf("  %7s  %6s  %6s", time, algbw, busbw);
    if (side->checked)
        printf("  %6g", (double)side->wrong);
    else
        printf("  %6s", "N/A");
}

static json_t *json_side(const att_bench_side_t *side)
{
    if (!side->measured)
        return json_null();
    return json_pack("{s:f, s:f, s:f, s:f, s:o}", "time", side->time_us, "host", side->host_us,
                     "alg_bw", side->algbw_gbs, "bus_bw", side->busbw_gbs, "nwrong",
                     side->checked ? json_integer((json_int_t)side->wrong) : json_null());
}

static const char *op_word(const att_shape_t *shape)
{
    return att_shape_reduces(shape) ? att_nccl_op_name(shape->op) : "none";
}

static int root_word(const att_shape_t *shape)
{
    return att_shape_has_root(shape) ? shape->root : -1;
}

void att_bench_report_count(att_bench_report_t *report, const att_bench_side_t sides[2])
{
    for (int i = 0; i < 2; i++) {
        report->wrong += sides[i].wrong;
        report->failed += sides[i].wrong > 0;
    }
}

void att_bench_report_row(att_bench_report_t *report, int row, int round,
                          const att_bench_side_t sides[2])
{
    const att_shape_t *shape = &report->job->rows[row];
    printf("%12zu  %12zu  %8s  %6s  %6d", shape->bytes, shape->count,
           att_nccl_type_name(shape->type), op_word(shape), root_word(shape));
    print_side(&sides[0]);
    print_side(&sides[1]);
    printf("\n");
    fflush(stdout);
    att_bench_report_count(report, sides);
    for (int i = 0; i < 2; i++) {
        report->busbw_sum += sides[i].busbw_gbs;
        report->busbw_count += sides[i].measured;
    }
    json_t *line =
        json_pack("{s:i, s:s, s:I, s:I, s:s, s:s, s:i, s:o, s:o}", "round", round, "collective",
                  att_collective_name(shape->collective), "size", (json_int_t)shape->bytes, "count",
                  (json_int_t)shape->count, "type", att_nccl_type_name(shape->type), "redop",
                  op_word(shape), "root", root_word(shape), "out_of_place", json_side(&sides[0]),
                  "in_place", json_side(&sides[1]));
    char key[16];
    snprintf(key, sizeof key, "%06d", row);
    json_object_set(report->last, key, line);
    json_array_append_new(report->results, line);
}

void att_bench_report_gemm(att_bench_report_t *report, uint64_t products, double seconds)
{
    const att_gemm_shape_t *g = &report->job->gemm_shape;
    double rate = seconds > 0 ? (double)products / seconds : 0;
    double flops = rate * 2.0 * g->m * g->n * g->k;
    printf("# products beside: %" PRIu64 " in %.2f s on the average rank and in all ranks together "
           "%.4g GFLOP/s\n",
           products, seconds, flops * 1e-9);
    report->gemm = json_pack("{s:I, s:f, s:f}", "products", (json_int_t)products, "seconds",
                             seconds, "gflops", flops * 1e-9);
}

static double average_busbw(const att_bench_report_t *report)
{
    return report->busbw_count > 0 ? report->busbw_sum / (double)report->busbw_count : 0;
}

void att_bench_report_footer(const att_bench_report_t *report)
{
    printf("# %-20s : %" PRIu64 " %s\n", "Out of bounds values", report->failed,
           report->failed > 0 ? "FAILED" : "OK");
    printf("# %-20s : %g \n", "Avg bus bandwidth", average_busbw(report));
    printf("#\n# Collective test concluded\n");
    fflush(stdout);
}

json_t *att_bench_provenance(const att_bench_job_t *job)
{
    const att_bench_options_t *o = job->options;
    char version[24], date[32] = "", device[128] = "";
    time_t now = time(NULL);
    struct tm utc;
    int units = 0;
    if (gmtime_r(&now, &utc) != NULL)
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    if (job->device.ops->describe(job->device.state, 0, device, sizeof device, &units, NULL) != 0)
        device[0] = '\0';
    json_t *args = json_array();
    for (int i = 0; i < job->argc; i++)
        json_array_append_new(args, att_json_text(job->argv[i]));
    return json_pack("{s:s, s:s, s:s, s:o, s:b, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:o}",
                     "attune", ATTUNE_VERSION, "date", date, "nccl_version",
                     att_nccl_version_text(job->nccl.version, version, sizeof version),
                     "nccl_library", att_json_text(job->nccl.path), "host_fabric", job->nccl.fabric,
                     "device", device, "devices", job->device_count, "ranks", job->ranks,
                     "processes", o->processes, "threads", o->threads, "ranks_per_thread",
                     o->ranks_per_thread, "iterations", o->iterations, "clock",
                     job->virtual_time ? "modelled" : "wall", "args", args);
}

static json_t *gemm_json(const att_bench_job_t *job)
{
    const att_gemm_shape_t *g = &job->gemm_shape;
    if (!job->options->gemm)
        return json_null();
    return json_pack("{s:i, s:i, s:i, s:s}", "m", g->m, "n", g->n, "k", g->k, "type",
                     att_nccl_type_name(g->type));
}

static int write_json(const att_bench_report_t *report, att_error_t *error)
{
    json_t *root =
        json_pack("{s:i, s:{s:s, s:s}, s:o, s:o, s:O, s:{s:I, s:b}, s:{s:f}, s:o}", "version", 1,
                  "units", "time", "us", "bw", "GB/s (10^9 bytes a second)", "provenance",
                  att_bench_provenance(report->job), "gemm", gemm_json(report->job), "results",
                  report->results, "out_of_bounds", "count", (json_int_t)report->failed, "okay",
                  report->failed == 0, "average_bus_bandwidth", "bandwidth", average_busbw(report),
                  "gemm_done", report->gemm != NULL ? json_incref(report->gemm) : json_null());
    if (root == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for %s", report->job->options->json);
    return att_json_replace(report->job->options->json, root, error);
}

/* Rows in the order in which they are run; `attune run` reads files of bounded size. */
static json_t *last_rows(const att_bench_report_t *report)
{
    json_t *rows = json_array();
    for (int row = 0; row < report->job->row_count && row < 1000; row++) {
        char key[16];
        snprintf(key, sizeof key, "%06d", row);
        json_t *line = json_object_get(report->last, key);
        if (line != NULL)
            json_array_append(rows, line);
    }
    return rows;
}

int att_bench_report_write(const att_bench_report_t *report, att_error_t *error)
{
    if (report->job->options->json != NULL) {
        int rc = write_json(report, error);
        if (rc != 0)
            return rc;
    }
    const char *run_dir = getenv("ATTUNE_RUN_DIR");
    if (run_dir == NULL || run_dir[0] == '\0')
        return ATT_OK;
    char path[4096];
    snprintf(path, sizeof path, "%s/bench-%d.json", run_dir, (int)getpid());
    json_t *root = json_pack("{s:i, s:I, s:o}", "version", 1, "result_errors",
                             (json_int_t)report->wrong, "sizes", last_rows(report));
    if (root == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for %s", path);
    return att_json_replace(path, root, error);
}
