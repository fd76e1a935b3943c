#include "cli/bench_table.h"

#include "base/clock.h"
#include "base/names.h"
#include "cli/bench_report.h"

#include <stdio.h>

/* What driver 0 decides for all before a row. */
enum { WORD_CHECK = 1, WORD_PRINT = 2, WORD_STOP = 4 };

/* With --time, checks may take this share of the time; the first and last round are always
 * checked. */
#define CHECK_SHARE 0.2

struct table {
    att_bench_driver_t *driver;
    att_bench_report_t report; /* of driver 0 */
    uint64_t start_ns, watched_ns;
    uint64_t checked_ns; /* spent in rows with checks since the start, less their timed calls */
};

static bool is_first(const struct table *t)
{
    return t->driver->index == 0;
}

/* `word` of driver 0 holds for all. */
static int agree(struct table *t, uint64_t *word, att_error_t *error)
{
    struct att_world *world = t->driver->job->world;
    int rc = att_world_broadcast(world, t->driver->index, word);
    return rc == 0 ? ATT_OK : att_world_failure(world, error);
}

static double elapsed_s(const struct table *t)
{
    return (double)(att_clock_ns() - t->start_ns) * 1e-9;
}

/* Between the first and the last round of --time. */
static uint64_t decide_middle_row(const struct table *t)
{
    const att_bench_options_t *o = t->driver->job->options;
    if (elapsed_s(t) >= o->seconds)
        return WORD_STOP;
    bool affordable = (double)t->checked_ns * 1e-9 < CHECK_SHARE * elapsed_s(t);
    return o->check > 0 && affordable ? WORD_CHECK : 0;
}

static void watch(struct table *t, const att_shape_t *shape, const att_bench_side_t sides[2])
{
    double interval = t->driver->job->options->watch_s;
    uint64_t now = att_clock_ns();
    if (interval <= 0 || (double)(now - t->watched_ns) * 1e-9 < interval)
        return;
    t->watched_ns = now;
    printf("# %7.1f s  %-13s %12zu B  busbw", elapsed_s(t), att_shape_title(shape), shape->bytes);
    for (int i = 0; i < 2; i++)
        if (sides[i].measured)
            printf(" %s %8.2f ", i == 0 ? "out-of-place" : "in-place", sides[i].busbw_gbs);
    printf("GB/s\n");
    fflush(stdout);
}

/* A fixed setting that NCCL did not take would be NCCL's choice under a wrong name. */
static int refuse_unavailable(const struct table *t, const att_shape_t *shape, att_error_t *error)
{
    const att_bench_job_t *job = t->driver->job;
    if (job->setting == NULL)
        return ATT_OK;
    att_bench_setting_table_t *table = att_bench_setting_table(job->setting);
    char text[ATT_SETTING_TEXT];
    att_setting_text(job->options->setting, text, sizeof text);
    if (shape->ranks > 1 && shape->bytes > 0 && atomic_load(&table->decisions) == 0)
        return att_fail(error, ATT_EUNSUPPORTED,
                        "setting %s: NCCL did not ask the tuner plugin about %s", text,
                        att_shape_title(shape));
    if (atomic_load(&table->refused) > 0)
        return att_fail(error, ATT_EILLEGAL, "setting %s: NCCL does not have it for %s here", text,
                        att_shape_title(shape));
    return ATT_OK;
}

static int run_row(struct table *t, int row, int round, uint64_t word, att_error_t *error)
{
    const att_bench_job_t *job = t->driver->job;
    const att_shape_t *shape = &job->rows[row];
    att_bench_side_t sides[2] = {{0}};
    uint64_t begin = att_clock_ns();
    int rc = ATT_OK;
    for (int side = 0; rc == 0 && side < 2; side++)
        if ((int)job->options->place & 1 << side)
            rc = att_bench_measure(t->driver, shape, side == 1, (word & WORD_CHECK) != 0,
                                   &sides[side], error);
    if (rc == 0)
        rc = refuse_unavailable(t, shape, error);
    if (rc != 0 || !is_first(t))
        return rc;
    if (word & WORD_CHECK) {
        double timed = (sides[0].time_us + sides[1].time_us) * job->options->iterations * 1000.0;
        double spent = (double)(att_clock_ns() - begin) - (job->virtual_time ? 0 : timed);
        t->checked_ns += spent > 0 ? (uint64_t)spent : 0;
    }
    if (word & WORD_PRINT)
        att_bench_report_row(&t->report, row, round, sides);
    else
        att_bench_report_count(&t->report, sides);
    watch(t, shape, sides);
    return ATT_OK;
}

/* One pass over all rows, printed. Each collective gets its own column heads. */
static int run_printed_round(struct table *t, int round, att_error_t *error)
{
    const att_bench_job_t *job = t->driver->job;
    uint64_t word = WORD_PRINT | (job->options->check > 0 ? WORD_CHECK : 0);
    int rc = ATT_OK;
    for (int row = 0; rc == 0 && row < job->row_count; row++) {
        if (is_first(t) && row % job->options->size_count == 0)
            att_bench_report_columns(&job->rows[row]);
        rc = run_row(t, row, round, word, error);
    }
    return rc;
}

/* Rounds that are not printed, until the time is over. */
static int run_middle_rounds(struct table *t, int *round, att_error_t *error)
{
    const att_bench_job_t *job = t->driver->job;
    for (;; (*round)++)
        for (int row = 0; row < job->row_count; row++) {
            uint64_t word = is_first(t) ? decide_middle_row(t) : 0;
            int rc = agree(t, &word, error);
            if (rc != 0 || (word & WORD_STOP))
                return rc;
            rc = run_row(t, row, *round, word, error);
            if (rc != 0)
                return rc;
        }
}

/* The first round, the silent ones, the last. */
static int run_for_a_time(struct table *t, att_error_t *error)
{
    int round = 1;
    int rc = run_printed_round(t, round++, error);
    if (rc == 0)
        rc = run_middle_rounds(t, &round, error);
    if (rc != 0)
        return rc;
    if (is_first(t)) {
        /* The average at the end is that of the last round. */
        t->report.busbw_sum = 0;
        t->report.busbw_count = 0;
        printf("#\n# after %.1f s, the last round (%d):\n", elapsed_s(t), round);
    }
    return run_printed_round(t, round, error);
}

static int run_rounds(struct table *t, att_error_t *error)
{
    int rc = ATT_OK;
    for (int round = 1; rc == 0 && round <= t->driver->job->options->rounds; round++)
        rc = run_printed_round(t, round, error);
    return rc;
}

static int report_gemm(struct table *t, att_error_t *error)
{
    att_bench_driver_t *driver = t->driver;
    double mine[2] = {0, 0}, all[2];
    for (int i = 0; i < driver->rank_count; i++) {
        uint64_t products;
        double seconds;
        att_bench_gemm_read(driver->ranks[i].gemm, &products, &seconds);
        mine[0] += (double)products;
        mine[1] += seconds;
    }
    for (int i = 0; i < 2; i++)
        if (att_world_reduce(driver->job->world, driver->index, ATT_WORLD_SUM, mine[i], &all[i]) !=
            0)
            return att_world_failure(driver->job->world, error);
    if (is_first(t))
        att_bench_report_gemm(&t->report, (uint64_t)all[0], all[1] / driver->job->ranks);
    return ATT_OK;
}

int att_bench_table_run(att_bench_driver_t *driver, bool *passed, att_error_t *error)
{
    const att_bench_options_t *o = driver->job->options;
    struct table t = {.driver = driver};
    att_bench_report_init(&t.report, driver->job);
    t.start_ns = t.watched_ns = att_clock_ns();
    int rc = o->seconds > 0 ? run_for_a_time(&t, error) : run_rounds(&t, error);
    if (rc == 0 && o->gemm)
        rc = report_gemm(&t, error);
    if (rc == 0 && is_first(&t)) {
        att_bench_report_footer(&t.report);
        rc = att_bench_report_write(&t.report, error);
    }
    *passed = t.report.failed == 0;
    att_bench_report_free(&t.report);
    return rc;
}
