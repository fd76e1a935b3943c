#include "base/data_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* <prefix>/share/attune of a program in <prefix>/bin; "" when unknown. */
static void beside_program(char place[PATH_MAX])
{
    place[0] = '\0';
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0)
        return;
    program[length] = '\0';
    for (int up = 0; up < 2 && strrchr(program, '/') != NULL; up++)
        *strrchr(program, '/') = '\0';
    if (snprintf(place, PATH_MAX, "%s/share/attune", program) >= PATH_MAX)
        place[0] = '\0';
}

int att_data_find(const char *name, char path[PATH_MAX], char folder[PATH_MAX], att_error_t *error)
{
    char beside[PATH_MAX];
    beside_program(beside);
    const char *const places[] = {ATTUNE_SOURCE_DATADIR, ATTUNE_DATADIR, beside};
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
    return att_fail(error, ATT_ENOENT, "no %s in %s, %s and %s", name, places[0], places[1],
                    places[2]);
}
