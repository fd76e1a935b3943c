/* A surface file of any bytes is refused with one line, or gives sane answers to every question. */
#include "surface/surface.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct att_surface *surface, int collective, uint64_t bytes)
{
    static const att_setting_t odd[] = {
        {.algorithm = 1, .protocol = 2, .transport = -1, .channels = 1, .chunk_bytes = 1},
        {.algorithm = -1, .protocol = -1, .transport = 1, .channels = 65535, .threads = 32},
        {.algorithm = 0, .protocol = 0, .transport = 0, .threads = 640, .chunk_bytes = UINT32_MAX},
        {.algorithm = 127, .protocol = -128, .transport = 127, .threads = 65535},
    };
    const att_surface_info_t *info = att_surface_info(surface);
    att_setting_t native = att_surface_default(surface, collective, bytes);
    int offered = att_surface_pairs(surface, collective) != 0;
    for (int load = -1; load <= info->load_count; load++) {
        double us = att_surface_duration_us(surface, collective, bytes, native, load);
        int has_value = offered && load >= 0 && load < info->load_count;
        if (!isfinite(us) || has_value != (us >= 0))
            abort();
        for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
            if (!isfinite(att_surface_duration_us(surface, collective, bytes, odd[i], load)))
                abort();
    }
    double cost =
        att_surface_cost_us(surface, collective, bytes, native.algorithm, native.protocol);
    if (!isfinite(cost) || offered != (cost >= 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t bytes[] = {0, 1, 4096, 83886080, UINT64_MAX};
    struct att_surface *surface = NULL;
    att_error_t error = {""};
    if (att_surface_parse((const char *)data, size, &surface, &error) != 0) {
        if (error.text[0] == '\0' || strchr(error.text, '\n') != NULL)
            abort();
        return 0;
    }
    for (int collective = -1; collective <= ATT_COLLECTIVE_COUNT; collective++)
        for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
            ask(surface, collective, bytes[i]);
    att_surface_close(surface);
    return 0;
}
