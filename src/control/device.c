#include "control/device.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>

static void read_model(const char *path, char *model, size_t size)
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return;
    char line[128];
    while (fgets(line, sizeof line, file) != NULL) {
        char *value = strncmp(line, "Model:", 6) == 0 ? line + 6 + strspn(line + 6, " \t") : NULL;
        if (value != NULL) {
            value[strcspn(value, "\n")] = '\0';
            snprintf(model, size, "%s", value);
            break;
        }
    }
    fclose(file);
}

const char *att_device_text(const att_segment_member_t *member, char *text, size_t size)
{
    static char model[64];
    if (model[0] == '\0') {
        snprintf(model, sizeof model, "host");
        glob_t files;
        if (glob("/proc/driver/nvidia/gpus/*/information", 0, NULL, &files) == 0)
            read_model(files.gl_pathv[0], model, sizeof model);
        globfree(&files);
    }
    snprintf(text, size, "%s, %u units", model, member->device_units);
    return text;
}
