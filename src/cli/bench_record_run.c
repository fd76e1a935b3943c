#include "cli/bench_record_run.h"

#include "base/clock.h"
#include "base/names.h"
#include "base/one_line.h"
#include "cli/bench_record_grid.h"
#include "cli/bench_recording.h"
#include "cli/bench_report.h"
#include "cli/bench_sample.h"
#include "cli/bench_variant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a row's time; beyond it the grid gets no further pass. */
#define GRID_SHARE 0.6
#define SAVE_NS    30000000000ull
#define WORD_END   0u

typedef struct recorder {
    att_bench_driver_t *driver;
    const att_bench_job_t *job;
    const att_record_options_t *options;
    att_bench_variants_t variants;
    uint64_t start_ns;
    uint64_t wrong;
    /* driver 0 */
    json_t *provenance;
    char device[200], description[200], note[200];
    int device_units, incomplete;
} recorder_t;

/* One row. */
typedef struct row {
    const att_shape_t *shape;
    int batch, count, native_pair;
    att_setting_t *settings;
    char name[256], path[4096];
    float cost_us[ATT_PAIR_COUNT];
    /* driver 0 */
    att_recording_t recording;
    bool open;
    uint64_t end_ns, grid_end_ns, saved_ns; /* 0: no limit */
} row_t;

static int say(recorder_t *r, uint64_t *word, att_error_t *error)
{
    int rc = att_world_broadcast(r->job->world, r->driver->index, word);
    return rc == 0 ? ATT_OK : att_world_failure(r->job->world, error);
}

static void name_row(const recorder_t *r, int number, row_t *row)
{
    char size[24];
    row->shape = &r->job->rows[number];
    att_bytes_text(row->shape->bytes, size, sizeof size);
    for (char *c = size; *c != '\0'; c++)
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    snprintf(row->name, sizeof row->name, "%s-%s-%s%s", r->options->prefix,
             att_collective_name(row->shape->collective), size,
             r->job->options->gemm ? "-gemm" : "");
    snprintf(row->path, sizeof row->path, "%s/%s.json.gz", r->options->out, row->name);
}

static att_t4_header_t header_of(recorder_t *r, const row_t *row)
{
    const att_shape_t *shape = row->shape;
    att_setting_t native = ATT_SETTING_KEEP;
    if (row->native_pair >= 0) {
        native.algorithm = (int8_t)(row->native_pair / ATT_PROTOCOL_COUNT);
        native.protocol = (int8_t)(row->native_pair % ATT_PROTOCOL_COUNT);
    }
    return (att_t4_header_t){.name = row->name,
                             .description = r->description,
                             .source = "measured by attune record",
                             .note = r->note,
                             .collective = shape->collective,
                             .bytes = shape->bytes,
                             .load = r->job->options->gemm ? "gemm" : "none",
                             .type = att_nccl_type_name(shape->type),
                             .device = r->device,
                             .device_units = r->device_units,
                             .ranks = shape->ranks,
                             .nodes = 1,
                             .native = native,
                             .cost_us = row->cost_us,
                             .provenance = r->provenance};
}

static int open_recording(recorder_t *r, row_t *row, att_error_t *error)
{
    const att_record_options_t *o = r->options;
    char version[24], size[24];
    att_nccl_version_text(r->job->nccl.version, version, sizeof version);
    snprintf(
        r->note, sizeof r->note,
        "%d call(s) a sample, %s; what took more than %g times NCCL's choice has one sample of "
        "one call",
        row->batch,
        r->job->options->place == ATT_BENCH_OUT_OF_PLACE ? "out-of-place"
        : r->job->options->place == ATT_BENCH_IN_PLACE   ? "in-place"
                                                         : "out-of-place and in-place in turn",
        ATT_SLOW_FIRST);
    snprintf(r->description, sizeof r->description, "%s, %s, %d ranks%s%.100s",
             att_collective_name(row->shape->collective),
             att_bytes_text(row->shape->bytes, size, sizeof size), row->shape->ranks,
             o->description != NULL ? ", " : "", o->description != NULL ? o->description : "");
    att_t4_header_t header = header_of(r, row);
    att_recording_plan_t plan = {.repeats = o->repeats,
                                 .again = o->again,
                                 .again_share = o->again_share,
                                 .front = o->front,
                                 .front_samples = o->front_samples,
                                 .seed = r->job->options->seed,
                                 .batch = row->batch};
    int rc = att_recording_open(row->path, &header, version, &plan, row->settings, row->count,
                                &row->recording, error);
    if (rc != 0)
        return rc;
    row->open = true;
    uint64_t there = att_recording_samples(&row->recording);
    printf("# %s: %d settings", row->name, row->count);
    if (there > 0)
        printf(", goes on after %llu samples", (unsigned long long)there);
    printf("\n");
    fflush(stdout);
    return ATT_OK;
}

/* An equal part of what is left of the budget for each row that is left. */
static void set_limits(const recorder_t *r, row_t *row, int rows)
{
    uint64_t now = att_clock_ns();
    row->saved_ns = now;
    if (r->options->budget_s <= 0)
        return;
    double left = r->options->budget_s * 1e9 - (double)(now - r->start_ns);
    double mine = left > 0 ? left / rows : 0;
    row->end_ns = now + (uint64_t)mine + 1;
    row->grid_end_ns = now + (uint64_t)(GRID_SHARE * mine) + 1;
}

/* What driver 0 wants measured: 0 to end, else 1 + index * 4 + kind. */
static uint64_t choose(row_t *row, bool *done)
{
    int index = 0;
    att_recording_kind_t kind = ATT_RECORDING_GRID;
    uint64_t now = att_clock_ns();
    row->recording.hurry = row->grid_end_ns > 0 && now > row->grid_end_ns;
    *done = !att_recording_next(&row->recording, &index, &kind);
    if (*done || (row->end_ns > 0 && now > row->end_ns))
        return WORD_END;
    return 1u + (uint64_t)index * 4u + (uint64_t)kind;
}

static int note(row_t *row, int index, att_recording_kind_t kind, double us, bool refused,
                att_error_t *error)
{
    if (refused)
        return att_recording_refuse(&row->recording, index, error);
    if (kind == ATT_RECORDING_PROBE)
        return att_recording_probe(&row->recording, index, us, error);
    int rc = att_recording_sample(&row->recording, index, kind, us, error);
    if (rc == 0 && att_clock_ns() - row->saved_ns > SAVE_NS) {
        row->saved_ns = att_clock_ns();
        rc = att_recording_save(&row->recording, false, error);
    }
    return rc;
}

static int measure(recorder_t *r, row_t *row, int index, att_recording_kind_t kind,
                   att_error_t *error)
{
    bool refused = false, boss = r->driver->index == 0;
    double us = 0;
    att_setting_t setting = row->settings[index];
    att_bench_variants_use(r->driver, &r->variants, setting.threads);
    setting.threads = 0;
    int discard = kind == ATT_RECORDING_PROBE ? 0 : 1;
    int batch = kind == ATT_RECORDING_PROBE ? 1 : row->batch;
    int rc = att_bench_sample_setting(r->driver, row->shape, setting, discard, batch, &us, &refused,
                                      error);
    if (rc == 0 && boss)
        rc = note(row, index, kind, us, refused, error);
    return rc;
}

static int measure_all(recorder_t *r, row_t *row, att_error_t *error)
{
    bool boss = r->driver->index == 0, done = false;
    int rc = ATT_OK;
    for (uint64_t word = 1; rc == 0 && word != WORD_END;) {
        word = boss ? choose(row, &done) : 0;
        rc = say(r, &word, error);
        if (rc == 0 && word != WORD_END)
            rc = measure(r, row, (int)((word - 1) / 4), (att_recording_kind_t)((word - 1) % 4),
                         error);
    }
    if (rc == 0 && boss) {
        r->incomplete += !done;
        rc = att_recording_save(&row->recording, done, error);
    }
    return rc;
}

/* NCCL's table, and each algorithm connected in each communicator. */
static int prepare_row(recorder_t *r, row_t *row, att_error_t *error)
{
    att_bench_look_t look;
    int rc = ATT_OK;
    for (int v = r->variants.count - 1; rc == 0 && v >= 0; v--) {
        att_bench_variants_use(r->driver, &r->variants, v > 0 ? r->variants.threads[v - 1] : 0);
        rc = att_bench_look(r->driver, row->shape, &look, &r->wrong, error);
        if (rc == 0)
            rc = att_bench_warm_pairs(r->driver, row->shape, look.legal_pairs, error);
    }
    if (rc != 0)
        return rc;
    row->native_pair = look.native_pair;
    memcpy(row->cost_us, look.cost_us, sizeof row->cost_us);
    return att_record_grid(r->options, r->job, row->shape, look.legal_pairs, &row->settings,
                           &row->count, error);
}

static void print_best(const row_t *row)
{
    char text[ATT_SETTING_TEXT];
    const att_recording_t *rec = &row->recording;
    int best = att_recording_best(rec);
    if (best < 0)
        return;
    const att_recording_point_t *p = &rec->points[best], *native = &rec->points[0];
    bool again = p->again_count > 0;
    printf("  %-40s NCCL %10.2f us  best %10.2f us  %s  %s\n", row->name,
           again && native->again_count > 0 ? native->again_median_us : native->median_us,
           again ? p->again_median_us : p->median_us,
           att_setting_text(p->setting, text, sizeof text), rec->header.state);
    fflush(stdout);
}

static int check_best(recorder_t *r, row_t *row, att_error_t *error)
{
    uint64_t index = 0;
    if (r->driver->index == 0) {
        int best = att_recording_best(&row->recording);
        index = best > 0 ? (uint64_t)best : 0;
    }
    int rc = say(r, &index, error);
    if (rc != 0)
        return rc;
    att_setting_t setting = row->settings[index];
    att_bench_variants_use(r->driver, &r->variants, setting.threads);
    setting.threads = 0;
    return att_bench_check_setting(r->driver, row->shape, setting, &r->wrong, error);
}

static int run_row(recorder_t *r, row_t *row, int left, att_error_t *error)
{
    bool boss = r->driver->index == 0;
    row->batch = att_bench_default_batch(r->job, row->shape);
    int rc = prepare_row(r, row, error);
    if (rc == 0 && boss)
        rc = open_recording(r, row, error);
    if (rc == 0 && boss)
        set_limits(r, row, left);
    if (rc == 0)
        rc = att_bench_driver_gemm(r->driver, true, error);
    if (rc == 0)
        rc = measure_all(r, row, error);
    int off = att_bench_driver_gemm(r->driver, false, rc == 0 ? error : NULL);
    if (rc == 0)
        rc = off;
    if (rc == 0)
        rc = check_best(r, row, error);
    if (rc == 0 && boss)
        print_best(row);
    att_bench_variants_use(r->driver, &r->variants, 0);
    if (row->open)
        att_recording_close(&row->recording);
    free(row->settings);
    return rc;
}

/* Rows that are not complete, from this one on. */
static int rows_left(const recorder_t *r, int number)
{
    int left = 1;
    row_t *other = calloc(1, sizeof *other);
    for (int i = number + 1; other != NULL && i < r->job->row_count; i++) {
        name_row(r, i, other);
        left += !att_recording_is_complete(other->path);
    }
    free(other);
    return left;
}

/* A row that is complete already is left alone; driver 0 looks. */
static int run_or_skip(recorder_t *r, int number, att_error_t *error)
{
    row_t *row = calloc(1, sizeof *row);
    if (row == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for a row");
    name_row(r, number, row);
    char path[ATT_ONE_LINE];
    uint64_t complete = r->driver->index == 0 && att_recording_is_complete(row->path);
    int rc = say(r, &complete, error);
    if (rc == 0 && complete && r->driver->index == 0)
        printf("# %s: complete already (remove the file to record it anew)\n",
               att_one_line(row->path, path, sizeof path));
    if (rc == 0 && !complete)
        rc = run_row(r, row, rows_left(r, number), error);
    free(row);
    return rc;
}

/* What every file of this run says of the machine. */
static int describe(recorder_t *r, att_error_t *error)
{
    char text[160] = "";
    int units = 0;
    int rc =
        r->job->device.ops->describe(r->job->device.state, 0, text, sizeof text, &units, error);
    if (rc != 0)
        return rc;
    const char *device = r->options->device != NULL ? r->options->device : text;
    snprintf(r->device, sizeof r->device, "%.150s", device[0] != '\0' ? device : "unknown");
    r->device_units = r->options->device_units > 0 ? r->options->device_units : units;
    r->provenance = att_bench_provenance(r->job);
    return r->provenance != NULL ? ATT_OK : att_fail(error, ATT_ENOMEM, "no memory");
}

int att_bench_record_check(const att_bench_job_t *job, att_error_t *error)
{
    const att_record_options_t *o = job->options->record;
    return o != NULL && o->thread_count > 0 ? att_bench_variants_check(job, error) : ATT_OK;
}

int att_bench_record_run(att_bench_driver_t *driver, bool *passed, att_error_t *error)
{
    recorder_t *r = calloc(1, sizeof *r);
    if (r == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for a recording");
    r->driver = driver;
    r->job = driver->job;
    r->options = driver->job->options->record;
    r->start_ns = att_clock_ns();
    int rc = driver->index == 0 ? describe(r, error) : ATT_OK;
    if (rc == 0)
        rc = att_bench_variants_open(driver, r->options->threads, r->options->thread_count,
                                     &r->variants, error);
    for (int i = 0; rc == 0 && i < r->job->row_count; i++)
        rc = run_or_skip(r, i, error);
    if (rc == 0) {
        double total = 0;
        if (att_world_reduce(r->job->world, driver->index, ATT_WORLD_SUM, (double)r->wrong,
                             &total) != 0)
            rc = att_world_failure(r->job->world, error);
        *passed = total <= 0;
    }
    if (rc == 0)
        att_bench_variants_close(driver, &r->variants);
    uint64_t incomplete = (uint64_t)r->incomplete;
    if (rc == 0)
        rc = say(r, &incomplete, error);
    if (rc == 0 && incomplete > 0)
        rc = att_fail(error, ATT_ETIMEOUT,
                      "out of time with %d of %d surfaces incomplete; the same command goes on",
                      (int)incomplete, r->job->row_count);
    json_decref(r->provenance);
    free(r->variants.comms);
    free(r);
    return rc;
}
