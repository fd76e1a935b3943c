#include "cli/bench_sample.h"

#include "base/pins.h"

#include <stdlib.h>
#include <string.h>

#define MOST_CHANNELS 32

static int meet(att_bench_driver_t *d, att_error_t *error)
{
    return att_world_barrier(d->job->world) == 0 ? ATT_OK : att_world_failure(d->job->world, error);
}

/* Put a setting in force on all ranks; no call is in flight before or after. */
static int apply(att_bench_driver_t *d, att_setting_t setting, att_error_t *error)
{
    int rc = meet(d, error);
    if (rc == 0 && d->index == 0)
        att_bench_setting_apply(d->job->setting, setting);
    return rc == 0 ? meet(d, error) : rc;
}

/* The i-th call of a sample: of the kinds that --place names, as the ordinary run has them, since
 * for some settings they differ. */
static int call(att_bench_driver_t *d, const att_shape_t *shape, int i, att_error_t *error)
{
    return att_bench_driver_call(d, shape, att_bench_options_in_place(d->job->options, i), error);
}

/* The driver's own time of `batch` calls, over its ranks. */
static int time_with_events(att_bench_driver_t *d, const att_shape_t *shape, int batch, double *us,
                            att_error_t *error)
{
    const att_device_ops_t *ops = d->job->device.ops;
    void *state = d->job->device.state;
    bool symmetric = att_shape_is_symmetric(shape);
    int rc = ATT_OK;
    for (int i = 0; rc == 0 && i < d->rank_count; i++) {
        rc = ops->select(state, d->ranks[i].device_index, error);
        if (rc == 0)
            rc = ops->event_record(state, d->ranks[i].start, d->ranks[i].stream, error);
    }
    for (int i = 0; rc == 0 && i < batch; i++)
        rc = call(d, shape, i, error);
    for (int i = 0; rc == 0 && i < d->rank_count; i++) {
        rc = ops->select(state, d->ranks[i].device_index, error);
        if (rc == 0)
            rc = ops->event_record(state, d->ranks[i].stop, d->ranks[i].stream, error);
    }
    if (rc == 0)
        rc = att_bench_driver_wait(d, error);
    for (int i = 0; rc == 0 && i < d->rank_count; i++) {
        double mine;
        rc = ops->event_elapsed(state, d->ranks[i].start, d->ranks[i].stop, &mine, error);
        if (rc == 0 && (i == 0 || symmetric == (mine < *us)))
            *us = mine;
    }
    return rc;
}

static int time_with_clock(att_bench_driver_t *d, const att_shape_t *shape, int batch, double *us,
                           att_error_t *error)
{
    uint64_t start = att_bench_driver_now(d);
    int rc = ATT_OK;
    for (int i = 0; rc == 0 && i < batch; i++)
        rc = call(d, shape, i, error);
    if (rc == 0)
        rc = att_bench_driver_wait(d, error);
    *us = (double)(att_bench_driver_now(d) - start) / 1000.0;
    return rc;
}

/* One sample of the setting in force. */
static int sample(att_bench_driver_t *d, const att_shape_t *shape, int batch, double *us,
                  att_error_t *error)
{
    double mine = 0;
    int rc = meet(d, error);
    if (rc == 0)
        rc = d->job->device.ops->event_record != NULL
                 ? time_with_events(d, shape, batch, &mine, error)
                 : time_with_clock(d, shape, batch, &mine, error);
    if (rc != 0)
        return rc;
    rc = att_world_reduce(d->job->world, d->index,
                          att_shape_is_symmetric(shape) ? ATT_WORLD_MIN : ATT_WORLD_MAX,
                          mine / batch, us);
    return rc == 0 ? ATT_OK : att_world_failure(d->job->world, error);
}

int att_bench_sample_setting(att_bench_driver_t *driver, const att_shape_t *shape,
                             att_setting_t setting, int discard, int batch, double *us,
                             bool *refused, att_error_t *error)
{
    int rc = apply(driver, setting, error);
    for (int i = 0; rc == 0 && i < discard; i++)
        rc = call(driver, shape, 0, error);
    if (rc == 0)
        rc = att_bench_driver_wait(driver, error);
    if (rc == 0)
        rc = sample(driver, shape, batch, us, error);
    /* The reduction was a meeting: all decisions of this setting are noted. */
    if (rc == 0 && refused != NULL &&
        atomic_load(&att_bench_setting_table(driver->job->setting)->refused) > 0)
        *refused = true;
    return rc;
}

/* The first call with a setting, on prepared buffers; all have it behind them on return. */
static int prepared_call(att_bench_driver_t *d, const att_shape_t *shape, att_setting_t setting,
                         att_error_t *error)
{
    int rc = apply(d, setting, error);
    if (rc == 0)
        rc = att_bench_driver_prepare(d, shape, false, error);
    if (rc == 0)
        rc = meet(d, error);
    if (rc == 0)
        rc = att_bench_driver_call(d, shape, false, error);
    if (rc == 0)
        rc = att_bench_driver_wait(d, error);
    return rc == 0 ? meet(d, error) : rc;
}

static int compare(att_bench_driver_t *d, const att_shape_t *shape, uint64_t *wrong,
                   att_error_t *error)
{
    uint64_t found = 0;
    int rc = d->job->options->check > 0 ? att_bench_driver_wrong(d, shape, false, &found, error)
                                        : ATT_OK;
    *wrong += found;
    return rc;
}

int att_bench_look(att_bench_driver_t *driver, const att_shape_t *shape, att_bench_look_t *look,
                   uint64_t *wrong, att_error_t *error)
{
    int rc = prepared_call(driver, shape, ATT_SETTING_KEEP, error);
    if (rc != 0)
        return rc;
    att_bench_setting_table_t *table = att_bench_setting_table(driver->job->setting);
    if (atomic_load(&table->decisions) == 0)
        return att_fail(error, ATT_EUNSUPPORTED,
                        "NCCL %d did not ask the tuner plugin: it is not loaded, or this call "
                        "bypasses it",
                        driver->job->nccl.version);
    look->legal_pairs = atomic_load(&table->legal_pairs);
    look->native_pair = atomic_load(&table->native_pair);
    for (int pair = 0; pair < ATT_PAIR_COUNT; pair++) {
        bool legal = look->legal_pairs & (1u << pair);
        look->cost_us[pair] = legal ? atomic_load(&table->cost_us[pair]) : -1.0f;
    }
    rc = compare(driver, shape, wrong, error);
    return rc == 0 ? meet(driver, error) : rc;
}

int att_bench_warm_pairs(att_bench_driver_t *driver, const att_shape_t *shape, uint32_t pairs,
                         att_error_t *error)
{
    double us;
    int rc = ATT_OK;
    for (int pair = 0; rc == 0 && pair < ATT_PAIR_COUNT; pair++) {
        if (!(pairs & (1u << pair)))
            continue;
        att_setting_t setting = ATT_SETTING_KEEP;
        setting.algorithm = (int8_t)(pair / ATT_PROTOCOL_COUNT);
        setting.protocol = (int8_t)(pair % ATT_PROTOCOL_COUNT);
        rc = att_bench_sample_setting(driver, shape, setting, 1, 1, &us, NULL, error);
    }
    return rc;
}

int att_bench_check_setting(att_bench_driver_t *driver, const att_shape_t *shape,
                            att_setting_t setting, uint64_t *wrong, att_error_t *error)
{
    if (driver->job->options->check == 0)
        return ATT_OK;
    int rc = prepared_call(driver, shape, setting, error);
    return rc == 0 ? compare(driver, shape, wrong, error) : rc;
}

int att_bench_default_batch(const att_bench_job_t *job, const att_shape_t *shape)
{
    if (job->options->batch > 0)
        return job->options->batch;
    if (job->virtual_time)
        return 1;
    return shape->bytes <= 256u << 10  ? 16
           : shape->bytes <= 2u << 20  ? 8
           : shape->bytes <= 32u << 20 ? 4
                                       : 2;
}

int att_bench_most_channels(const att_bench_job_t *job)
{
    if (job->options->max_channels > 0)
        return job->options->max_channels;
    uint32_t most = att_pins_channels_most(att_pins_own_variable, NULL);
    return most >= 1 && most <= 64 ? (int)most : MOST_CHANNELS;
}
