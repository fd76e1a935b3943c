/* surface: finding a file by name, and the answers that callers want from its definition. */
#include "surface/surface.h"

#include "surface/definition.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX (16 << 20)

static int read_file(const char *path, FILE *file, struct att_surface **surface, att_error_t *error)
{
    char *bytes = NULL;
    size_t length = 0, room = 0;
    int status = ATT_OK;
    while (status == ATT_OK) {
        if (length == room) {
            room = room == 0 ? 32768 : 2 * room;
            char *larger = room <= FILE_MAX ? realloc(bytes, room) : NULL;
            if (larger == NULL) {
                status = att_fail(error, ATT_EINPUT, "%s: larger than %d bytes", path, FILE_MAX);
                break;
            }
            bytes = larger;
        }
        size_t got = fread(bytes + length, 1, room - length, file);
        length += got;
        if (got == 0)
            break;
    }
    if (status == ATT_OK && ferror(file))
        status = att_fail_errno(error, "%s: cannot read", path);
    if (status == ATT_OK) {
        att_error_t inner = {""};
        status = att_surface_parse(bytes, length, surface, &inner);
        if (status != ATT_OK)
            att_fail(error, (att_status_t)-status, "%s: %s", path, inner.text);
    }
    free(bytes);
    return status;
}

/* 1 when the file was there, with the outcome in *status. */
static int try_path(const char *path, struct att_surface **surface, int *status, att_error_t *error)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        if (errno == ENOENT || errno == ENOTDIR)
            return 0;
        *status = att_fail_errno(error, "%s: cannot open", path);
        return 1;
    }
    *status = read_file(path, file, surface, error);
    fclose(file);
    return 1;
}

int att_surface_open(const char *name, struct att_surface **surface, att_error_t *error)
{
    if (name == NULL || name[0] == '\0')
        return att_fail(error, ATT_EUSAGE, "no surface was named");
    int status = ATT_OK;
    size_t n = strlen(name);
    if (strchr(name, '/') != NULL || (n > 5 && strcmp(name + n - 5, ".json") == 0)) {
        if (!try_path(name, surface, &status, error))
            return att_fail(error, ATT_ENOENT, "%s: there is no such surface file", name);
        return status;
    }
    const char *chosen = getenv("ATTUNE_DATA_DIR");
    if (chosen != NULL && chosen[0] == '\0')
        chosen = NULL;
    const char *const folders[] = {chosen, ATTUNE_SOURCE_DATADIR "/surfaces",
                                   ATTUNE_DATADIR "/surfaces"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char path[4096];
        if (folders[i] == NULL)
            continue;
        if (snprintf(path, sizeof path, "%s/%s.json", folders[i], name) >= (int)sizeof path)
            return att_fail(error, ATT_EUSAGE, "the path of surface '%.64s...' is too long", name);
        if (try_path(path, surface, &status, error))
            return status;
    }
    return att_fail(error, ATT_ENOENT, "no surface '%s': looked for %s.json in %s%s%s and %s", name,
                    name, chosen != NULL ? chosen : "", chosen != NULL ? ", " : "", folders[1],
                    folders[2]);
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

uint32_t att_surface_pairs(const struct att_surface *surface, int collective)
{
    if (collective < 0 || collective >= ATT_COLLECTIVE_COUNT)
        return 0;
    return surface->collectives[collective].offered;
}

double att_surface_cost_us(const struct att_surface *surface, int collective, uint64_t bytes,
                           int algorithm, int protocol)
{
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
    return att_surface_resolve(surface, collective, bytes, ATT_SETTING_KEEP);
}

double att_surface_duration_us(const struct att_surface *surface, int collective, uint64_t bytes,
                               att_setting_t setting, int load)
{
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
