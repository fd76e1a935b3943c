/* The file of pinned tasks: whatever the bytes, tasks that can be or a reason. */
#include "control/pinning.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    att_pinned_task_t tasks[8];
    uint32_t count = 0;
    att_error_t error = {""};
    if (att_pinning_parse((const char *)data, size, tasks, 8, &count, &error) != ATT_OK) {
        if (error.text[0] == '\0' || count != 0)
            abort();
        return 0;
    }
    if (count > 8)
        abort();
    for (uint32_t i = 0; i < count; i++)
        if (tasks[i].collective < 0)
            abort();
    return 0;
}
