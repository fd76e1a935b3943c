/* surface: telling the forms of a file apart, and the answers that callers want. */
#include "surface/surface.h"

#include "surface/csv.h"
#include "surface/definition.h"
#include "surface/file.h"
#include "surface/gunzip.h"
#include "surface/t4.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The file's name without folder and endings, for a recording that has no name of its own. */
static void name_after(const char *path, struct att_surface *surface)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    size_t n = strcspn(base, ".");
    snprintf(surface->file_name, sizeof surface->file_name, "%.*s", (int)(n < 100 ? n : 100), base);
    for (char *c = surface->file_name; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    if (surface->document == NULL && surface->file_name[0] != '\0')
        surface->info.name = surface->file_name;
}

int att_surface_open(const char *name, struct att_surface **surface, att_error_t *error)
{
    char path[4096], *bytes = NULL;
    size_t length = 0;
    int status = att_surface_file_read(name, path, sizeof path, &bytes, &length, error);
    if (status != ATT_OK)
        return status;
    att_error_t inner = {""};
    status = att_surface_parse(bytes, length, surface, &inner);
    free(bytes);
    if (status != ATT_OK)
        return att_fail(error, (att_status_t)-status, "%s: %s", path, inner.text);
    name_after(path, *surface);
    return ATT_OK;
}

static int parse_json(struct att_surface *surface, const char *bytes, size_t length,
                      att_error_t *error)
{
    json_error_t syntax;
    surface->document = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, &syntax);
    if (surface->document == NULL) {
        /* The text quotes the file: keep it one line. */
        for (char *at = syntax.text; *at != '\0'; at++)
            if ((unsigned char)*at < 0x20 || *at == 0x7f)
                *at = '?';
        return att_fail(error, ATT_EINPUT, "line %d, column %d: %s", syntax.line, syntax.column,
                        syntax.text);
    }
    if (!att_t4_is(surface->document))
        return att_definition_read(surface, error);
    surface->info.kind = ATT_SURFACE_RECORDED;
    return att_t4_read(surface, error);
}

/* What a recording says of itself once it is complete. */
static void finish_recorded(struct att_surface *surface)
{
    att_surface_info_t *info = &surface->info;
    info->channels_ceiling = att_table_channels(&surface->table);
    info->noise = att_table_noise(&surface->table);
    info->task_count = surface->table.task_count;
    for (int i = 0; i < info->task_count; i++)
        info->tasks[i] = (att_surface_task_t){.collective = surface->table.tasks[i].collective,
                                              .bytes = surface->table.tasks[i].bytes};
}

static int parse_text(struct att_surface *surface, const char *bytes, size_t length,
                      att_error_t *error)
{
    size_t at = 0;
    while (at < length && strchr(" \t\r\n", bytes[at]) != NULL && bytes[at] != '\0')
        at++;
    if (at == length)
        return att_fail(error, ATT_EINPUT, "the file is empty");
    int status = ATT_OK;
    if (bytes[at] == '{' || bytes[at] == '[') {
        status = parse_json(surface, bytes, length, error);
    } else {
        surface->info.kind = ATT_SURFACE_RECORDED;
        status = att_csv_read(bytes, length, surface, error);
    }
    if (status == ATT_OK && surface->info.kind == ATT_SURFACE_RECORDED)
        finish_recorded(surface);
    return status;
}

int att_surface_parse(const char *bytes, size_t length, struct att_surface **surface,
                      att_error_t *error)
{
    struct att_surface *made = calloc(1, sizeof *made);
    char *inflated = NULL;
    int status = ATT_OK;
    if (made == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for a surface");
    if (att_gunzip_is(bytes, length)) {
        size_t inflated_length = 0;
        status =
            att_gunzip(bytes, length, ATT_SURFACE_BYTES_MAX, &inflated, &inflated_length, error);
        bytes = inflated;
        length = inflated_length;
    }
    if (status == ATT_OK)
        status = parse_text(made, bytes, length, error);
    free(inflated);
    if (status != ATT_OK) {
        att_surface_close(made);
        return status;
    }
    *surface = made;
    return ATT_OK;
}

void att_surface_close(struct att_surface *surface)
{
    if (surface == NULL)
        return;
    att_table_free(&surface->table);
    json_decref(surface->document);
    free(surface);
}

const att_surface_info_t *att_surface_info(const struct att_surface *surface)
{
    return &surface->info;
}

int att_surface_load_index(const struct att_surface *surface, const char *load)
{
    for (int i = 0; load != NULL && i < surface->info.load_count; i++)
        if (strcmp(surface->info.loads[i], load) == 0)
            return i;
    return -1;
}

static const att_surface_pair_t *find_pair(const struct att_surface *surface, int collective,
                                           int algorithm, int protocol)
{
    if (collective < 0 || collective >= ATT_COLLECTIVE_COUNT || algorithm < 0 ||
        algorithm >= ATT_ALGORITHM_COUNT || protocol < 0 || protocol >= ATT_PROTOCOL_COUNT)
        return NULL;
    const att_surface_collective_t *known = &surface->collectives[collective];
    if (!(known->offered & ATT_PAIR_BIT(algorithm, protocol)))
        return NULL;
    return &known->pairs[algorithm * ATT_PROTOCOL_COUNT + protocol];
}

bool att_surface_has_transport(const struct att_surface *surface, int transport)
{
    if (surface->info.kind == ATT_SURFACE_RECORDED || transport < 0 ||
        transport >= ATT_TRANSPORT_COUNT)
        return false;
    for (int c = 0; c < ATT_COLLECTIVE_COUNT; c++) {
        const att_surface_collective_t *known = &surface->collectives[c];
        for (int i = 0; i < ATT_PAIR_COUNT; i++)
            if ((known->offered & 1u << i) != 0 &&
                (known->pairs[i].transports & 1u << transport) == 0)
                return false;
    }
    return true;
}

uint32_t att_surface_pairs(const struct att_surface *surface, int collective)
{
    if (collective < 0 || collective >= ATT_COLLECTIVE_COUNT)
        return 0;
    uint32_t pairs = surface->collectives[collective].offered;
    for (int i = 0; i < surface->table.task_count; i++)
        if (surface->table.tasks[i].collective == collective)
            pairs |= att_table_pairs(&surface->table.tasks[i]);
    return pairs;
}

double att_surface_cost_us(const struct att_surface *surface, int collective, uint64_t bytes,
                           int algorithm, int protocol)
{
    if (surface->info.kind == ATT_SURFACE_RECORDED) {
        const att_table_task_t *task = att_table_find(&surface->table, collective, bytes);
        int known = task != NULL && algorithm >= 0 && algorithm < ATT_ALGORITHM_COUNT &&
                    protocol >= 0 && protocol < ATT_PROTOCOL_COUNT;
        return known ? task->cost_us[algorithm * ATT_PROTOCOL_COUNT + protocol] : -1.0;
    }
    const att_surface_pair_t *pair = find_pair(surface, collective, algorithm, protocol);
    if (pair == NULL)
        return -1.0;
    return pair->cost_latency_us + (double)bytes / pair->cost_bandwidth;
}

/* The pair of the smallest estimate; the first one of equal ones, as NCCL takes it. */
static const att_surface_pair_t *native_pair(const struct att_surface *surface, int collective,
                                             uint64_t bytes)
{
    const att_surface_pair_t *best = NULL;
    double best_us = 0;
    for (int algorithm = 0; algorithm < ATT_ALGORITHM_COUNT; algorithm++)
        for (int protocol = 0; protocol < ATT_PROTOCOL_COUNT; protocol++) {
            double us = att_surface_cost_us(surface, collective, bytes, algorithm, protocol);
            if (us >= 0 && (best == NULL || us < best_us)) {
                best = find_pair(surface, collective, algorithm, protocol);
                best_us = us;
            }
        }
    return best;
}

/* Small messages get fewer channels, then fewer threads (NCCL 2.30, enqueue.cc, ncclGetAlgoInfo;
 * thresholds of graph/tuning.cc in bytes per thread). */
static void shrink(att_setting_t *native, int ranks, uint64_t bytes)
{
    double threshold = native->protocol == ATT_PROTOCOL_SIMPLE ? 64 : 8;
    if (native->protocol == ATT_PROTOCOL_LL && native->algorithm == ATT_ALGORITHM_RING)
        threshold *= ranks;
    while (native->channels > 1 && (double)bytes < native->channels * native->threads * threshold)
        native->channels--;
    while (native->threads % 128 == 0 &&
           (double)bytes < native->channels * native->threads * threshold)
        native->threads /= 2;
    if (native->threads < 96)
        native->threads = 96;
}

att_setting_t att_surface_resolve(const struct att_surface *surface, int collective, uint64_t bytes,
                                  att_setting_t setting)
{
    if (surface->info.kind == ATT_SURFACE_RECORDED)
        return setting;
    const att_surface_pair_t *pair =
        setting.algorithm == ATT_ALGORITHM_KEEP
            ? native_pair(surface, collective, bytes)
            : find_pair(surface, collective, setting.algorithm, setting.protocol);
    if (pair == NULL)
        return setting;
    att_setting_t native = pair->native;
    shrink(&native, surface->info.ranks, bytes);
    setting.algorithm = native.algorithm;
    setting.protocol = native.protocol;
    if (setting.transport == ATT_TRANSPORT_KEEP)
        setting.transport = native.transport;
    if (setting.channels == 0)
        setting.channels = native.channels;
    if (setting.threads == 0)
        setting.threads = native.threads;
    if (setting.chunk_bytes == 0)
        setting.chunk_bytes = native.chunk_bytes;
    /* As calcCollChunking does; less than one grain stays, for the caller to refuse. */
    if (setting.chunk_bytes > pair->chunk_max)
        setting.chunk_bytes = pair->chunk_max;
    if (setting.chunk_bytes > pair->chunk_grain)
        setting.chunk_bytes -= setting.chunk_bytes % pair->chunk_grain;
    return setting;
}

att_setting_t att_surface_default(const struct att_surface *surface, int collective, uint64_t bytes)
{
    if (surface->info.kind == ATT_SURFACE_RECORDED) {
        const att_table_task_t *task = att_table_find(&surface->table, collective, bytes);
        return task != NULL ? task->native : ATT_SETTING_KEEP;
    }
    return att_surface_resolve(surface, collective, bytes, ATT_SETTING_KEEP);
}

double att_surface_duration_us(const struct att_surface *surface, int collective, uint64_t bytes,
                               att_setting_t setting, int load)
{
    if (surface->info.kind == ATT_SURFACE_RECORDED) {
        const att_table_task_t *task = att_table_find(&surface->table, collective, bytes);
        const att_surface_point_t *point =
            task != NULL && load == 0 ? att_table_nearest(task, setting) : NULL;
        return point != NULL ? point->time_us : -1.0;
    }
    setting = att_surface_resolve(surface, collective, bytes, setting);
    const att_surface_pair_t *pair =
        find_pair(surface, collective, setting.algorithm, setting.protocol);
    if (pair == NULL || load < 0 || load >= surface->info.load_count || setting.transport < 0 ||
        setting.transport >= ATT_TRANSPORT_COUNT || !(pair->transports & 1u << setting.transport) ||
        setting.channels > surface->info.channels_ceiling ||
        setting.threads > ATT_SURFACE_THREADS_MAX || setting.threads % 32 != 0 ||
        setting.chunk_bytes < pair->chunk_grain)
        return -1.0;
    return att_model_time_us(&pair->paths[setting.transport], &surface->loads[load], (double)bytes,
                             setting.channels, setting.threads, setting.chunk_bytes);
}

const att_surface_point_t *att_surface_points(const struct att_surface *surface, int collective,
                                              uint64_t bytes, size_t *count)
{
    const att_table_task_t *task = att_table_find(&surface->table, collective, bytes);
    *count = task != NULL ? task->count : 0;
    return task != NULL ? task->points : NULL;
}

const double *att_surface_residuals(const struct att_surface *surface, int collective,
                                    uint64_t bytes, size_t *count)
{
    const att_table_task_t *task = att_table_find(&surface->table, collective, bytes);
    *count = task != NULL ? task->residual_count : 0;
    return *count > 0 ? task->residuals : NULL;
}

att_setting_t att_surface_nearest(const struct att_surface *surface, int collective, uint64_t bytes,
                                  att_setting_t setting)
{
    if (surface->info.kind == ATT_SURFACE_MODELLED)
        return setting;
    const att_table_task_t *task = att_table_find(&surface->table, collective, bytes);
    const att_surface_point_t *point = task != NULL ? att_table_nearest(task, setting) : NULL;
    if (point == NULL || att_setting_is_keep(setting))
        return ATT_SETTING_KEEP;
    return point->setting;
}
