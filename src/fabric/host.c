#include "fabric/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

void att_host_name(char *name, int size)
{
    if (gethostname(name, (size_t)size) != 0)
        snprintf(name, (size_t)size, "unknown");
    name[size - 1] = '\0';
}

uint64_t att_host_hash(const char *host_id)
{
    char text[1024];
    if (host_id != NULL) {
        snprintf(text, sizeof text, "%s", host_id);
    } else {
        att_host_name(text, 512);
        FILE *file = fopen(BOOT_ID, "re");
        if (file != NULL) {
            char boot[64];
            if (fscanf(file, "%63s", boot) == 1)
                strcat(text, boot);
            fclose(file);
        }
    }
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (const char *c = text; *c != '\0'; c++)
        hash = (hash ^ (uint8_t)*c) * 0x100000001b3u;
    return hash != 0 ? hash : 1;
}

static int by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

att_host_layout_t att_host_layout(const uint64_t *hashes, int count)
{
    uint64_t sorted[count];
    memcpy(sorted, hashes, sizeof sorted);
    qsort(sorted, (size_t)count, sizeof sorted[0], by_value);
    att_host_layout_t layout = {0, count, 0};
    for (int first = 0, next; first < count; first = next) {
        for (next = first; next < count && sorted[next] == sorted[first];)
            next++;
        layout.nodes++;
        if (next - first < layout.fewest)
            layout.fewest = next - first;
        if (next - first > layout.most)
            layout.most = next - first;
    }
    return layout;
}
