/* A surface file of any bytes is refused, or gives finite answers to every question. */
#include "surface/surface.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t bytes[] = {0, 1, 4096, 83886080, UINT64_MAX};
    struct att_surface *surface = NULL;
    att_error_t error;
    if (att_surface_parse((const char *)data, size, &surface, &error) != 0)
        return 0;
    for (int collective = 0; collective < ATT_COLLECTIVE_COUNT; collective++) {
        for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
            att_setting_t setting = att_surface_default(surface, collective, bytes[i]);
            double us = att_surface_duration_us(surface, collective, bytes[i], setting, 0);
            if (isnan(us))
                abort();
            att_surface_cost_us(surface, collective, bytes[i], setting.algorithm, setting.protocol);
        }
    }
    att_surface_close(surface);
    return 0;
}
