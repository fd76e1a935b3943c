#include "surface/table.h"

#include "base/names.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define RESIDUAL_SAMPLES 5 /* a setting with fewer samples says too little about noise */
#define KEEP_DISTANCE    1e3

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double att_table_median(const double *values, size_t count)
{
    double *sorted = count > 0 ? malloc(count * sizeof *sorted) : NULL;
    if (sorted == NULL)
        return 0;
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_doubles);
    double median =
        count % 2 ? sorted[count / 2] : 0.5 * (sorted[count / 2 - 1] + sorted[count / 2]);
    free(sorted);
    return median;
}

att_table_task_t *att_table_task(att_table_t *table, int collective, uint64_t bytes,
                                 att_error_t *error)
{
    for (int i = 0; i < table->task_count; i++)
        if (table->tasks[i].collective == collective && table->tasks[i].bytes == bytes)
            return &table->tasks[i];
    if (table->task_count == ATT_SURFACE_TASKS) {
        att_fail(error, ATT_EINPUT, "more than %d tasks (collective, bytes)", ATT_SURFACE_TASKS);
        return NULL;
    }
    att_table_task_t *task = &table->tasks[table->task_count++];
    *task =
        (att_table_task_t){.collective = collective, .bytes = bytes, .native = ATT_SETTING_KEEP};
    for (int pair = 0; pair < ATT_PAIR_COUNT; pair++)
        task->cost_us[pair] = -1;
    return task;
}

/* Both kinds of samples in one block, freed by the first pointer. */
static int copy_samples(att_surface_point_t *point, const att_table_record_t *record)
{
    size_t total = (size_t)record->sample_count + record->again_count;
    double *copy = malloc((total > 0 ? total : 1) * sizeof *copy);
    if (copy == NULL)
        return -ATT_ENOMEM;
    if (record->sample_count > 0)
        memcpy(copy, record->samples_us, record->sample_count * sizeof *copy);
    if (record->again_count > 0)
        memcpy(copy + record->sample_count, record->again_us, record->again_count * sizeof *copy);
    point->samples_us = copy;
    point->again_us = copy + record->sample_count;
    point->sample_count = record->sample_count;
    point->again_count = record->again_count;
    return ATT_OK;
}

int att_table_add(att_table_task_t *task, const att_table_record_t *record, att_error_t *error)
{
    if (task->count == task->capacity) {
        size_t capacity = task->capacity > 0 ? 2 * task->capacity : 64;
        att_surface_point_t *points = realloc(task->points, capacity * sizeof *points);
        if (points == NULL)
            return att_fail(error, ATT_ENOMEM, "no memory for %zu settings", capacity);
        task->points = points;
        task->capacity = capacity;
    }
    att_surface_point_t *point = &task->points[task->count];
    *point = (att_surface_point_t){
        .setting = record->setting, .at_least = record->at_least, .record = record->number};
    if (copy_samples(point, record) != ATT_OK)
        return att_fail(error, ATT_ENOMEM, "no memory for samples");
    task->count++;
    if (point->again_count > 0)
        point->time_us = att_table_median(point->again_us, point->again_count);
    else if (point->sample_count > 0)
        point->time_us = att_table_median(point->samples_us, point->sample_count);
    else
        point->time_us = record->time_us;
    return point->time_us > 0 ? ATT_OK : att_fail(error, ATT_ENOMEM, "no memory for a median");
}

static int by_value(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_settings(att_setting_t a, att_setting_t b)
{
    int order = by_value(a.algorithm, b.algorithm);
    order = order != 0 ? order : by_value(a.protocol, b.protocol);
    order = order != 0 ? order : by_value(a.transport, b.transport);
    order = order != 0 ? order : by_value(a.channels, b.channels);
    order = order != 0 ? order : by_value(a.threads, b.threads);
    return order != 0 ? order : by_value(a.chunk_bytes, b.chunk_bytes);
}

static int compare_points(const void *a, const void *b)
{
    const att_surface_point_t *x = a, *y = b;
    int order = compare_settings(x->setting, y->setting);
    return order != 0 ? order : by_value(x->record, y->record);
}

static int refuse_twice(const att_table_task_t *task, const char *where, att_error_t *error)
{
    char text[ATT_SETTING_TEXT], bytes[24];
    for (size_t i = 1; i < task->count; i++) {
        const att_surface_point_t *first = &task->points[i - 1], *second = &task->points[i];
        if (compare_settings(first->setting, second->setting) == 0)
            return att_fail(error, ATT_EINPUT,
                            "%s %u: '%s' of %s %s was there before (%s %u): each setting once",
                            where, second->record,
                            att_setting_text(second->setting, text, sizeof text),
                            att_collective_name(task->collective),
                            att_bytes_text(task->bytes, bytes, sizeof bytes), where, first->record);
    }
    return ATT_OK;
}

static int find_native(att_table_task_t *task, att_error_t *error)
{
    if (att_setting_is_keep(task->points[0].setting)) {
        task->native_point = 0; /* keep sorts first */
        return ATT_OK;
    }
    double *times = malloc(task->count * sizeof *times);
    if (times == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for %zu settings", task->count);
    for (size_t i = 0; i < task->count; i++)
        times[i] = task->points[i].time_us;
    qsort(times, task->count, sizeof *times, compare_doubles);
    double middle = times[task->count / 2];
    free(times);
    while (task->points[task->native_point].time_us != middle)
        task->native_point++;
    return ATT_OK;
}

static void note_residuals(att_table_task_t *task, const double *samples, uint32_t count)
{
    double median = count >= RESIDUAL_SAMPLES ? att_table_median(samples, count) : 0;
    for (uint32_t i = 0; median > 0 && i < count; i++)
        task->residuals[task->residual_count++] = samples[i] / median - 1;
}

static int collect_residuals(att_table_task_t *task, att_error_t *error)
{
    size_t total = 0;
    for (size_t i = 0; i < task->count; i++)
        total += (size_t)task->points[i].sample_count + task->points[i].again_count;
    task->residuals = malloc((total > 0 ? total : 1) * sizeof *task->residuals);
    if (task->residuals == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for %zu samples", total);
    for (size_t i = 0; i < task->count; i++) {
        note_residuals(task, task->points[i].samples_us, task->points[i].sample_count);
        note_residuals(task, task->points[i].again_us, task->points[i].again_count);
    }
    return ATT_OK;
}

int att_table_finish(att_table_t *table, const char *where, att_error_t *error)
{
    int status = ATT_OK;
    for (int i = 0; status == ATT_OK && i < table->task_count; i++) {
        att_table_task_t *task = &table->tasks[i];
        qsort(task->points, task->count, sizeof *task->points, compare_points);
        status = refuse_twice(task, where, error);
        if (status == ATT_OK)
            status = find_native(task, error);
        if (status == ATT_OK)
            status = collect_residuals(task, error);
    }
    return status;
}

void att_table_free(att_table_t *table)
{
    for (int i = 0; i < table->task_count; i++) {
        att_table_task_t *task = &table->tasks[i];
        for (size_t j = 0; j < task->count; j++)
            free((void *)(uintptr_t)task->points[j].samples_us);
        free(task->points);
        free(task->residuals);
    }
    table->task_count = 0;
}

const att_table_task_t *att_table_find(const att_table_t *table, int collective, uint64_t bytes)
{
    for (int i = 0; i < table->task_count; i++)
        if (table->tasks[i].collective == collective && table->tasks[i].bytes == bytes)
            return &table->tasks[i];
    return NULL;
}

/* First point that is not before `setting`. */
static size_t lower_bound(const att_table_task_t *task, att_setting_t setting)
{
    size_t low = 0, high = task->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_settings(task->points[middle].setting, setting) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int same_subspace(att_setting_t a, att_setting_t b)
{
    return a.algorithm == b.algorithm && a.protocol == b.protocol && a.transport == b.transport;
}

/* Squared distance of logarithms; what is kept lies far from every number, and beyond the largest.
 */
static double distance(double wanted, double there)
{
    if (wanted == there)
        return 0;
    if (there == 0)
        return KEEP_DISTANCE;
    if (wanted == 0)
        return KEEP_DISTANCE + 100 - log(there);
    double d = log(wanted) - log(there);
    return d * d;
}

typedef struct hull {
    uint32_t least, most, step; /* of the numbers; least 0: there is none */
} hull_t;

static void widen(hull_t *hull, uint32_t value)
{
    if (value == 0)
        return;
    if (hull->least == 0 || value < hull->least)
        hull->least = value;
    if (value > hull->most)
        hull->most = value;
}

static void refine(hull_t *hull, uint32_t value)
{
    uint32_t a = value > hull->least ? value - hull->least : 0, b = hull->step;
    while (a != 0) {
        uint32_t rest = b % a;
        b = a;
        a = rest;
    }
    hull->step = b;
}

static int outside(const hull_t *hull, uint32_t value)
{
    return value != 0 && hull->least != 0 && (value < hull->least || value > hull->most);
}

const att_surface_point_t *att_table_nearest(const att_table_task_t *task, att_setting_t setting)
{
    if (att_setting_is_keep(setting))
        return &task->points[task->native_point];
    size_t at = lower_bound(task, setting);
    if (at < task->count && compare_settings(task->points[at].setting, setting) == 0)
        return &task->points[at];
    att_setting_t first = {.algorithm = setting.algorithm,
                           .protocol = setting.protocol,
                           .transport = setting.transport};
    hull_t channels = {0}, threads = {0}, chunks = {0};
    const att_surface_point_t *best = NULL;
    double best_distance = 0;
    for (at = lower_bound(task, first);
         at < task->count && same_subspace(task->points[at].setting, setting); at++) {
        att_setting_t there = task->points[at].setting;
        double d = distance(setting.channels, there.channels) +
                   distance(setting.threads, there.threads) +
                   distance(setting.chunk_bytes, there.chunk_bytes);
        widen(&channels, there.channels);
        widen(&threads, there.threads);
        widen(&chunks, there.chunk_bytes);
        /* the smaller ones come first and win a tie, whatever the last digit says */
        if (best == NULL || d < best_distance - 1e-9) {
            best = &task->points[at];
            best_distance = d;
        }
    }
    if (outside(&channels, setting.channels) || outside(&threads, setting.threads) ||
        outside(&chunks, setting.chunk_bytes))
        return NULL;
    return best;
}

static int by_prior(const void *a, const void *b)
{
    const att_subspace_t *x = a, *y = b;
    int x_known = x->prior_us >= 0, y_known = y->prior_us >= 0;
    if (x_known != y_known)
        return y_known - x_known;
    if (x_known && x->prior_us != y->prior_us)
        return x->prior_us < y->prior_us ? -1 : 1;
    int order = by_value(x->algorithm, y->algorithm);
    order = order != 0 ? order : by_value(x->protocol, y->protocol);
    order = order != 0 ? order : by_value(x->transport, y->transport);
    return order != 0 ? order : by_value(x->threads_max, y->threads_max);
}

/* The hulls of those of the points [from, to), all of one algorithm, protocol and transport, whose
 * threads are kept, or are numbers: a live search has a subspace for NCCL's own and others for
 * communicators with other threads, too. The number of points is in *count. */
static att_subspace_t subspace_of(const att_table_task_t *task, size_t from, size_t to, bool kept,
                                  size_t *count)
{
    hull_t channels = {0}, threads = {0}, chunks = {0};
    *count = 0;
    for (size_t i = from; i < to; i++) {
        if ((task->points[i].setting.threads == 0) != kept)
            continue;
        widen(&channels, task->points[i].setting.channels);
        widen(&threads, task->points[i].setting.threads);
        widen(&chunks, task->points[i].setting.chunk_bytes);
        ++*count;
    }
    for (size_t i = from; i < to; i++) {
        if ((task->points[i].setting.threads == 0) != kept)
            continue;
        refine(&channels, task->points[i].setting.channels);
        refine(&threads, task->points[i].setting.threads);
        refine(&chunks, task->points[i].setting.chunk_bytes);
    }
    att_setting_t s = task->points[from].setting;
    return (att_subspace_t){
        .algorithm = s.algorithm,
        .protocol = s.protocol,
        .transport = s.transport,
        .channels_min = (uint16_t)channels.least,
        .channels_max = (uint16_t)channels.most,
        .channels_step = (uint16_t)(channels.step > 0 ? channels.step : channels.least > 0),
        .threads_min = (uint16_t)threads.least,
        .threads_max = (uint16_t)threads.most,
        .threads_step = (uint16_t)(threads.step > 0 ? threads.step : threads.least > 0),
        .chunk_min = chunks.least,
        .chunk_max = chunks.most,
        .chunk_step = chunks.step > 0 ? chunks.step : chunks.least > 0,
        .prior_us = task->cost_us[s.algorithm * ATT_PROTOCOL_COUNT + s.protocol]};
}

uint32_t att_table_space(const att_table_task_t *task, att_subspace_t *subspaces)
{
    uint32_t count = 0;
    for (size_t from = 0, to; from < task->count; from = to) {
        for (to = from + 1; to < task->count &&
                            same_subspace(task->points[from].setting, task->points[to].setting);)
            to++;
        if (task->points[from].setting.algorithm == ATT_ALGORITHM_KEEP)
            continue;
        for (int kept = 1; kept >= 0; kept--) {
            size_t points;
            subspaces[count] = subspace_of(task, from, to, kept != 0, &points);
            count += points > 0;
        }
    }
    qsort(subspaces, count, sizeof *subspaces, by_prior);
    return count;
}

uint32_t att_table_pairs(const att_table_task_t *task)
{
    uint32_t pairs = 0;
    for (size_t i = 0; i < task->count; i++) {
        att_setting_t s = task->points[i].setting;
        if (s.algorithm != ATT_ALGORITHM_KEEP)
            pairs |= ATT_PAIR_BIT(s.algorithm, s.protocol);
    }
    return pairs;
}

int att_table_channels(const att_table_t *table)
{
    int most = 1;
    for (int i = 0; i < table->task_count; i++)
        for (size_t j = 0; j < table->tasks[i].count; j++)
            if (table->tasks[i].points[j].setting.channels > most)
                most = table->tasks[i].points[j].setting.channels;
    return most;
}

double att_table_noise(const att_table_t *table)
{
    size_t total = 0, n = 0;
    for (int i = 0; i < table->task_count; i++)
        total += table->tasks[i].residual_count;
    double *sizes = total > 0 ? malloc(total * sizeof *sizes) : NULL;
    if (sizes == NULL)
        return 0;
    for (int i = 0; i < table->task_count; i++)
        for (size_t j = 0; j < table->tasks[i].residual_count; j++)
            sizes[n++] = fabs(table->tasks[i].residuals[j]);
    double noise = 1.4826 * att_table_median(sizes, total);
    free(sizes);
    return noise;
}
