/* A counters file of any bytes: points name what is there, and their values are numbers. */
#include "cli/counted.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    att_counted_t counted = {0};
    if (att_counted_parse((const char *)data, size, &counted) == ATT_OK)
        for (size_t i = 0; i < counted.count; i++)
            if (counted.points[i].name >= counted.name_count ||
                memchr(counted.names[counted.points[i].name], '\0', ATT_COUNTED_NAME) == NULL ||
                isnan(counted.points[i].value))
                abort();
    att_counted_free(&counted);
    return 0;
}
