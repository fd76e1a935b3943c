#include "cli/places.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Take `candidate` (followed by `file`) when it is there and nothing was found before. */
__attribute__((format(printf, 5, 6))) static void look(char *found, char *searched, size_t size,
                                                       const char *file, const char *format, ...)
{
    char folder[PATH_MAX], path[2 * PATH_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(folder, sizeof folder, format, args);
    va_end(args);
    snprintf(path, sizeof path, "%s/%s", folder, file);
    char *real = realpath(path, NULL);
    if (found[0] == '\0' && real != NULL)
        snprintf(found, PATH_MAX, "%s", real);
    free(real);
    size_t used = strlen(searched);
    if (strstr(searched, path) == NULL)
        snprintf(searched + used, size - used, "%s%s", used > 0 ? ", " : "", path);
}

static void look_in_path(att_places_t *p, const char *file)
{
    const char *path = getenv("PATH");
    while (path != NULL && *path != '\0' && p->sidecar[0] == '\0') {
        size_t length = strcspn(path, ":");
        char candidate[PATH_MAX];
        snprintf(candidate, sizeof candidate, "%.*s/%s", (int)length, path, file);
        if (length > 0 && access(candidate, X_OK) == 0)
            snprintf(p->sidecar, sizeof p->sidecar, "%s", candidate);
        path += length + (path[length] == ':');
    }
    size_t used = strlen(p->sidecar_searched);
    snprintf(p->sidecar_searched + used, sizeof p->sidecar_searched - used, ", PATH");
}

int att_places_find(att_places_t *places, att_error_t *error)
{
    memset(places, 0, sizeof *places);
    ssize_t length = readlink("/proc/self/exe", places->program, sizeof places->program - 1);
    if (length < 0)
        return att_fail_errno(error, "/proc/self/exe");
    char bin[PATH_MAX];
    snprintf(bin, sizeof bin, "%s", places->program);
    *strrchr(bin, '/') = '\0';

    size_t size = sizeof places->hook_searched;
    look(places->sidecar, places->sidecar_searched, size, "attuned", "%s", bin);
    look(places->sidecar, places->sidecar_searched, size, "attuned", "%s/../libexec/attune", bin);
    look_in_path(places, "attuned");

    look(places->hook, places->hook_searched, size, "libattune-nccl.so", "%s/../lib", bin);
    look(places->hook, places->hook_searched, size, "libattune-nccl.so", "%s/../%s", bin,
         ATTUNE_LIBDIR);

    char library[PATH_MAX] = "";
    look(library, places->fabric_searched, size, "libnccl.so.2", "%s/../fabric", bin);
    look(library, places->fabric_searched, size, "libnccl.so.2", "%s/../lib/attune/fabric", bin);
    look(library, places->fabric_searched, size, "libnccl.so.2", "%s/../%s/attune/fabric", bin,
         ATTUNE_LIBDIR);
    if (library[0] != '\0') {
        *strrchr(library, '/') = '\0';
        snprintf(places->fabric, sizeof places->fabric, "%s", library);
    }

    char script[PATH_MAX] = "";
    look(script, places->jobs_searched, size, "companion.sh", "%s/../share/attune/jobs", bin);
    look(script, places->jobs_searched, size, "companion.sh", "%s", ATTUNE_SOURCE_JOBS);
    if (script[0] != '\0') {
        *strrchr(script, '/') = '\0';
        snprintf(places->jobs, sizeof places->jobs, "%s", script);
    }
    return ATT_OK;
}
