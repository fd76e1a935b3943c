#include "cli/folder_glob.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

int att_folder_glob(const char *folder, const char *pattern, glob_t *found)
{
    char full[2 * PATH_MAX];
    size_t used = 0;
    for (const char *c = folder; *c != '\0'; c++) {
        if (used + 3 > sizeof full)
            return GLOB_NOSPACE;
        if (strchr("*?[]\\", *c) != NULL)
            full[used++] = '\\';
        full[used++] = *c;
    }
    int wanted = snprintf(full + used, sizeof full - used, "/%s", pattern);
    return (size_t)wanted < sizeof full - used ? glob(full, 0, NULL, found) : GLOB_NOSPACE;
}
