#include "surface/file.h"

#include "base/nearest.h"
#include "surface/surface.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int too_large(const char *path, att_error_t *error)
{
    return att_fail(error, ATT_EINPUT, "%s: larger than %u MiB, the most that a surface may have",
                    path, ATT_SURFACE_BYTES_MAX >> 20);
}

static int read_file(const char *path, FILE *file, char **bytes, size_t *length, att_error_t *error)
{
    struct stat status;
    if (fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_size > (off_t)ATT_SURFACE_BYTES_MAX)
        return too_large(path, error);
    char *read = NULL;
    size_t used = 0, room = 0;
    for (;;) {
        if (used == room) {
            /* one more than allowed, to see that there is more */
            room = room == 0 ? 32768 : 2 * room;
            room = room <= ATT_SURFACE_BYTES_MAX ? room : ATT_SURFACE_BYTES_MAX + 1;
            char *larger = realloc(read, room);
            if (larger == NULL) {
                free(read);
                return att_fail(error, ATT_ENOMEM, "%s: no memory for it", path);
            }
            read = larger;
        }
        size_t got = fread(read + used, 1, room - used, file);
        used += got;
        if (got == 0 || used > ATT_SURFACE_BYTES_MAX)
            break;
    }
    int rc = ATT_OK;
    if (ferror(file))
        rc = att_fail_errno(error, "%s: cannot read", path);
    else if (used > ATT_SURFACE_BYTES_MAX)
        rc = too_large(path, error);
    if (rc != ATT_OK) {
        free(read);
        return rc;
    }
    *bytes = read;
    *length = used;
    return ATT_OK;
}

/* 1 when the file was there, with the outcome in *status. */
static int try_path(const char *path, char **bytes, size_t *length, int *status, att_error_t *error)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        if (errno == ENOENT || errno == ENOTDIR)
            return 0;
        *status = att_fail_errno(error, "%s: cannot open", path);
        return 1;
    }
    *status = read_file(path, file, bytes, length, error);
    fclose(file);
    return 1;
}

static int ends_in(const char *name, const char *ending)
{
    size_t n = strlen(name), m = strlen(ending);
    return n > m && strcmp(name + n - m, ending) == 0;
}

uint32_t att_surface_folders(char folders[ATT_SURFACE_FOLDERS][PATH_MAX])
{
    char places[ATT_DATA_PLACES][PATH_MAX];
    uint32_t count = att_data_places(places);
    for (uint32_t i = 0; i < count; i++)
        att_data_surfaces(places[i], folders[i]);
    return count;
}

static bool is_surface(const char *file, char *name, size_t size)
{
    static const char *const endings[] = {".json", ".json.gz", ".csv"};
    for (int e = 0; e < 3; e++)
        if (ends_in(file, endings[e])) {
            snprintf(name, size, "%.*s", (int)(strlen(file) - strlen(endings[e])), file);
            return true;
        }
    return false;
}

static int refuse_name(const char *name, char folders[][PATH_MAX], uint32_t count,
                       att_error_t *error)
{
    char list[sizeof error->text];
    char known[ATT_NEAREST_WORD + 1]; /* one that is cut stays too long */
    att_nearest_t nearest;
    att_nearest_init(&nearest, name);
    for (uint32_t i = 0; i < count; i++) {
        DIR *folder = opendir(folders[i]);
        for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;)
            if (is_surface(entry->d_name, known, sizeof known))
                att_nearest_offer(&nearest, known);
        if (folder != NULL)
            closedir(folder);
    }
    att_data_list(folders, count, list, sizeof list);
    return att_fail(error, ATT_ENOENT,
                    "no surface '%s'%s: looked for %s.json, .json.gz and .csv in %s", name,
                    att_nearest_hint(&nearest), name, list);
}

int att_surface_file_read(const char *name, char *path, size_t path_size, char **bytes,
                          size_t *length, att_error_t *error)
{
    if (name == NULL || name[0] == '\0')
        return att_fail(error, ATT_EUSAGE, "no surface was named");
    int status = ATT_OK;
    if (strchr(name, '/') != NULL || ends_in(name, ".json") || ends_in(name, ".csv") ||
        ends_in(name, ".gz")) {
        if (snprintf(path, path_size, "%s", name) >= (int)path_size)
            return att_fail(error, ATT_EUSAGE, "the path '%.64s...' is too long", name);
        if (!try_path(name, bytes, length, &status, error))
            return att_fail(error, ATT_ENOENT, "%s: there is no such surface file", name);
        return status;
    }
    char folders[ATT_SURFACE_FOLDERS][PATH_MAX];
    uint32_t count = att_surface_folders(folders);
    static const char *const endings[] = {".json", ".json.gz", ".csv"};
    for (uint32_t i = 0; i < count; i++)
        for (int e = 0; e < 3; e++) {
            if (snprintf(path, path_size, "%s/%s%s", folders[i], name, endings[e]) >=
                (int)path_size)
                return att_fail(error, ATT_EUSAGE, "the path of surface '%.64s...' is too long",
                                name);
            if (try_path(path, bytes, length, &status, error))
                return status;
        }
    return refuse_name(name, folders, count, error);
}
