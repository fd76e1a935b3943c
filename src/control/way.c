#include "control/way.h"

#include <string.h>

void att_way_of_process(const att_segment_process_t *process, att_home_path_t *path)
{
    memset(path, 0, sizeof *path);
    if (atomic_load_explicit(&process->helper, memory_order_acquire) == 0)
        return;
    path->port = process->helper_port;
    memcpy(path->key, process->helper_key, sizeof path->key);
    memcpy(path->address, process->helper_address, sizeof path->address);
    for (int i = 0; i < ATT_ADDRESSES; i++)
        path->address[i][ATT_ADDRESS_TEXT - 1] = '\0';
}

/* The next address that can be tried at all. */
static int try_next(att_way_t *way, uint64_t now_ns)
{
    for (; way->address < ATT_ADDRESSES; way->address++) {
        const char *address = way->path.address[way->address];
        att_home_request_t request = {.magic = ATT_HOME_MAGIC,
                                      .hash = way->group.hash,
                                      .ranks = way->group.ranks,
                                      .verb = ATT_HOME_TEST};
        memcpy(request.key, way->path.key, sizeof request.key);
        if (address[0] == '\0' || memchr(address, '\0', ATT_ADDRESS_TEXT) == NULL ||
            att_resolver_start(address, way->path.port, &request, &way->resolver) != ATT_OK)
            continue;
        way->since_ns = now_ns;
        return 0;
    }
    way->testing = 0;
    return -ATT_ESYSTEM;
}

void att_way_begin(att_way_t *way, const att_group_key_t *group, const att_home_path_t *path)
{
    *way = (att_way_t){.path = *path, .group = *group, .resolver.fd = -1, .testing = 1};
}

static void write_group(const att_way_t *way, att_segment_group_t *group)
{
    const char *address = way->path.address[way->address];
    /* A sidecar before this one may have written the same: ranks may be reading it. */
    if (atomic_load(&group->path) != 0 && group->home_port == way->path.port &&
        memcmp(group->home_key, way->path.key, sizeof group->home_key) == 0 &&
        strncmp(group->home_address, address, ATT_ADDRESS_TEXT) == 0)
        return;
    group->home_port = way->path.port;
    memcpy(group->home_key, way->path.key, sizeof group->home_key);
    memcpy(group->home_address, address, ATT_ADDRESS_TEXT);
    atomic_store_explicit(&group->path, 1, memory_order_release);
}

int att_way_step(att_way_t *way, att_segment_group_t *group, uint64_t now_ns)
{
    if (!way->testing)
        return 0;
    if (way->resolver.fd < 0)
        return try_next(way, now_ns);
    int status = att_resolver_step(&way->resolver, 0);
    if (status == ATT_OK) {
        way->testing = 0;
        write_group(way, group);
        return 1;
    }
    if (status == -ATT_EBUSY && now_ns - way->since_ns < ATT_WAY_NS)
        return 0;
    att_resolver_stop(&way->resolver);
    way->address++;
    return try_next(way, now_ns);
}

void att_way_stop(att_way_t *way)
{
    if (way->testing && way->resolver.fd >= 0)
        att_resolver_stop(&way->resolver);
    way->testing = 0;
}
