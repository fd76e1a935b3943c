#include "cli/bench_sweep.h"

#include "base/clock.h"
#include "cli/bench_candidate.h"
#include "cli/bench_sample.h"
#include "cli/bench_sweep_report.h"
#include "cli/tasks_file.h"
#include "search/statistics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct sweep {
    att_bench_driver_t *driver;
    const att_bench_job_t *job;
    att_tasks_t tuned; /* of --also */
    json_t *tasks;     /* driver 0 */
    uint64_t wrong;
};

/* One row being swept. */
struct row {
    const att_shape_t *shape;
    int batch;
    uint32_t legal_pairs;
    int native_pair;
    att_candidates_t grid, finals;
};

/* A setting that NCCL refused is marked. */
static int sample_candidate(struct sweep *s, const struct row *row, att_candidate_t *c, int discard,
                            int batch, double *us, att_error_t *error)
{
    return att_bench_sample_setting(s->driver, row->shape, c->setting, discard, batch, us,
                                    &c->refused, error);
}

/* The median of a few calls of NCCL's choice. */
static int first_of_native(struct sweep *s, struct row *row, att_error_t *error)
{
    att_candidate_t *native = &row->grid.items[0];
    double us[ATT_NATIVE_CALLS] = {0};
    int rc = ATT_OK;
    for (int i = 0; rc == 0 && i < ATT_NATIVE_CALLS; i++)
        rc = sample_candidate(s, row, native, i == 0 ? 2 : 0, 1, &us[i], error);
    native->first_us = att_median(us, ATT_NATIVE_CALLS);
    return rc;
}

/* A call of each setting, two of one that looks slow, to leave the slow ones out. No samples. */
static int first_pass(struct sweep *s, struct row *row, att_error_t *error)
{
    int rc = first_of_native(s, row, error);
    double limit_us = ATT_SLOW_FIRST * row->grid.items[0].first_us;
    for (int i = 1; rc == 0 && i < row->grid.count; i++) {
        att_candidate_t *c = &row->grid.items[i];
        double again_us = 0;
        rc = sample_candidate(s, row, c, 0, 1, &c->first_us, error);
        if (rc != 0 || c->refused || c->first_us <= limit_us)
            continue;
        rc = sample_candidate(s, row, c, 0, 1, &again_us, error);
        c->first_us = fmin(c->first_us, again_us);
        c->slow = c->first_us > limit_us;
    }
    return rc;
}

static int pass(struct sweep *s, const struct row *row, att_candidates_t *list, int discard,
                uint64_t seed, att_error_t *error)
{
    int *order = malloc((size_t)list->count * sizeof *order);
    int rc = order != NULL ? ATT_OK : att_fail(error, ATT_ENOMEM, "no memory for a sweep");
    if (rc == 0)
        att_candidates_shuffle(order, list->count, seed);
    for (int i = 0; rc == 0 && i < list->count; i++) {
        att_candidate_t *c = &list->items[order[i]];
        double us;
        if (c->refused || c->slow)
            continue;
        rc = sample_candidate(s, row, c, discard, row->batch, &us, error);
        if (rc == 0)
            att_candidate_sample(c, list->sample_capacity, us);
    }
    free(order);
    return rc;
}

/* 1 when the grid's time (--time) is over, the same on all drivers. */
static int out_of_time(struct sweep *s, uint64_t start_ns, uint64_t *over, att_error_t *error)
{
    double limit = s->job->options->seconds;
    *over = limit > 0 && (double)(att_clock_ns() - start_ns) * 1e-9 > limit;
    int rc = att_world_broadcast(s->job->world, s->driver->index, over);
    return rc == 0 ? ATT_OK : att_world_failure(s->job->world, error);
}

static int run_grid(struct sweep *s, struct row *row, int number, att_error_t *error)
{
    const att_bench_options_t *o = s->job->options;
    uint64_t start_ns = att_clock_ns(), over = 0;
    int rc = first_pass(s, row, error);
    for (int repeat = 0; rc == 0 && !over && repeat < o->grid_repeats; repeat++) {
        rc = pass(s, row, &row->grid, 0, o->seed + (uint64_t)(number * 1000 + repeat), error);
        att_candidates_drop_slow(&row->grid);
        if (rc == 0)
            rc = out_of_time(s, start_ns, &over, error);
    }
    return rc;
}

static bool is_row_of(const att_task_row_t *task, const att_shape_t *shape)
{
    return task->collective == shape->collective && task->bytes == shape->bytes &&
           task->ranks == shape->ranks;
}

/* The best of the grid, NCCL's choice, and what --also says of this row. */
static int choose_finals(struct sweep *s, struct row *row, att_error_t *error)
{
    att_candidates_sort(&row->grid);
    bool memory = att_candidates_add(&row->finals, ATT_SETTING_KEEP) != NULL;
    for (int i = 0; memory && i < row->grid.count && row->finals.count <= s->job->options->keep;
         i++)
        if (!row->grid.items[i].refused)
            memory = att_candidates_add(&row->finals, row->grid.items[i].setting) != NULL;
    for (size_t i = 0; memory && i < s->tuned.count; i++) {
        const att_task_row_t *task = &s->tuned.rows[i];
        if (!is_row_of(task, row->shape))
            continue;
        att_candidate_t *c = att_candidates_add(
            &row->finals, task->kept_default ? ATT_SETTING_KEEP : task->tuned.setting);
        memory = c != NULL;
        if (memory)
            c->also = true;
    }
    return memory ? ATT_OK : att_fail(error, ATT_ENOMEM, "no memory for a sweep");
}

static int run_finals(struct sweep *s, struct row *row, int number, att_error_t *error)
{
    const att_bench_options_t *o = s->job->options;
    int rc = ATT_OK;
    for (int repeat = 0; rc == 0 && repeat < o->repeats; repeat++)
        rc = pass(s, row, &row->finals, 1,
                  o->seed + 500000000u + (uint64_t)(number * 1000 + repeat), error);
    att_candidates_sort(&row->finals);
    return rc;
}

static int measure_row(struct sweep *s, struct row *row, int number, att_error_t *error)
{
    att_bench_look_t seen;
    int rc = att_bench_look(s->driver, row->shape, &seen, &s->wrong, error);
    row->legal_pairs = rc == 0 ? seen.legal_pairs : 0;
    row->native_pair = rc == 0 ? seen.native_pair : -1;
    if (rc == 0)
        rc = att_candidates_grid(&row->grid, row->shape, row->legal_pairs,
                                 att_bench_most_channels(s->job));
    if (rc == 0)
        rc = att_bench_warm_pairs(s->driver, row->shape, row->legal_pairs, error);
    if (rc == 0)
        rc = att_bench_driver_gemm(s->driver, true, error);
    if (rc == 0)
        rc = run_grid(s, row, number, error);
    if (rc == 0)
        rc = choose_finals(s, row, error);
    if (rc == 0)
        rc = run_finals(s, row, number, error);
    int off = att_bench_driver_gemm(s->driver, false, rc == 0 ? error : NULL);
    if (rc == 0)
        rc = off;
    return rc == 0 ? att_bench_check_setting(s->driver, row->shape, row->finals.items[0].setting,
                                             &s->wrong, error)
                   : rc;
}

static int run_row(struct sweep *s, int number, uint64_t *all_wrong, att_error_t *error)
{
    const att_bench_options_t *o = s->job->options;
    struct row row = {.shape = &s->job->rows[number]};
    row.batch = att_bench_default_batch(s->job, row.shape);
    att_candidates_init(&row.grid, (uint32_t)o->grid_repeats);
    att_candidates_init(&row.finals, (uint32_t)o->repeats);
    s->wrong = 0;
    double total = 0;
    int rc = measure_row(s, &row, number, error);
    if (rc == 0 && att_world_reduce(s->job->world, s->driver->index, ATT_WORLD_SUM,
                                    (double)s->wrong, &total) != 0)
        rc = att_world_failure(s->job->world, error);
    if (rc == 0 && s->driver->index == 0) {
        att_sweep_row_t done = {.shape = row.shape,
                                .grid = &row.grid,
                                .finals = &row.finals,
                                .native_pair = row.native_pair,
                                .batch = row.batch,
                                .wrong = (uint64_t)total,
                                .checked = o->check > 0};
        json_array_append_new(s->tasks, att_sweep_report_row(s->job, &done));
    }
    *all_wrong += (uint64_t)total;
    att_candidates_free(&row.grid);
    att_candidates_free(&row.finals);
    return rc;
}

/* --also names a run's folder or its tasks.json. */
static int read_tuned(struct sweep *s, att_error_t *error)
{
    const char *also = s->job->options->also;
    char path[4096];
    struct stat status;
    if (also == NULL)
        return ATT_OK;
    bool folder = stat(also, &status) == 0 && S_ISDIR(status.st_mode);
    snprintf(path, sizeof path, "%s%s", also, folder ? "/tasks.json" : "");
    return att_tasks_read(path, &s->tuned, error);
}

int att_bench_sweep_run(att_bench_driver_t *driver, bool *passed, att_error_t *error)
{
    struct sweep s = {.driver = driver, .job = driver->job};
    uint64_t wrong = 0;
    int rc = read_tuned(&s, error);
    if (rc == 0 && driver->index == 0) {
        att_sweep_report_header(s.job);
        s.tasks = json_array();
    }
    for (int row = 0; rc == 0 && row < s.job->row_count; row++)
        rc = run_row(&s, row, &wrong, error);
    if (rc == 0 && driver->index == 0) {
        rc = att_sweep_report_end(s.job, s.tasks, error);
        s.tasks = NULL;
    }
    json_decref(s.tasks);
    att_tasks_free(&s.tuned);
    *passed = wrong == 0;
    return rc;
}
