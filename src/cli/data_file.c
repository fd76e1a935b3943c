#include "cli/data_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int att_data_find(const char *name, char path[PATH_MAX], char folder[PATH_MAX], att_error_t *error)
{
    static const char *const places[] = {ATTUNE_SOURCE_DATADIR, ATTUNE_DATADIR};
    const char *chosen = getenv("ATTUNE_DATA_DIR");
    if (chosen != NULL && chosen[0] != '\0') { /* it holds the surfaces themselves */
        snprintf(path, PATH_MAX, "%s/%s", chosen, name);
        if (folder != NULL)
            snprintf(folder, PATH_MAX, "%s", chosen);
        if (access(path, R_OK) == 0)
            return ATT_OK;
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        snprintf(path, PATH_MAX, "%s/%s", places[i], name);
        if (folder != NULL)
            snprintf(folder, PATH_MAX, "%s/surfaces", places[i]);
        if (access(path, R_OK) == 0)
            return ATT_OK;
    }
    return att_fail(error, ATT_ENOENT, "no %s in %s and %s", name, places[0], places[1]);
}
