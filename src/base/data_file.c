#include "base/data_file.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEVELS 4 /* from <prefix>/lib/attune/fabric/libnccl.so.2 up to <prefix> */

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* The program or library that holds this code, "" when unknown. */
static void own_file(char path[PATH_MAX])
{
    Dl_info info;
    struct link_map *map = NULL;
    path[0] = '\0';
    if (dladdr1((void *)(uintptr_t)att_data_find, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 ||
        map == NULL)
        return;
    const char *name = map->l_name[0] != '\0' ? map->l_name : "/proc/self/exe";
    if (realpath(name, path) == NULL)
        path[0] = '\0';
}

/* share/attune of the tree that it is installed in; false when there is none. */
static bool find_installed(char place[PATH_MAX])
{
    char file[PATH_MAX];
    own_file(file);
    for (int up = 0; up < LEVELS && strrchr(file, '/') != NULL; up++) {
        *strrchr(file, '/') = '\0';
        if (snprintf(place, PATH_MAX, "%s/share/attune", file) < PATH_MAX && is_folder(place))
            return true;
    }
    return false;
}

uint32_t att_data_places(char places[ATT_DATA_PLACES][PATH_MAX])
{
    uint32_t count = 0;
    const char *chosen = getenv("ATTUNE_DATA_DIR");
    if (chosen != NULL && chosen[0] != '\0')
        snprintf(places[count++], PATH_MAX, "%s", chosen);
    if (find_installed(places[count]))
        return count + 1;
    snprintf(places[count++], PATH_MAX, "%s", ATTUNE_SOURCE_DATADIR);
    snprintf(places[count++], PATH_MAX, "%s", ATTUNE_DATADIR);
    return count;
}

void att_data_surfaces(const char *place, char folder[PATH_MAX])
{
    if (snprintf(folder, PATH_MAX, "%s/surfaces", place) >= PATH_MAX || !is_folder(folder))
        snprintf(folder, PATH_MAX, "%s", place);
}

void att_data_list(char paths[][PATH_MAX], uint32_t count, char *text, size_t size)
{
    size_t used = 0;
    for (uint32_t i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s",
                                 i == 0           ? ""
                                 : i + 1 == count ? " and "
                                                  : ", ",
                                 paths[i]);
}

int att_data_find(const char *name, char path[PATH_MAX], char folder[PATH_MAX], att_error_t *error)
{
    char places[ATT_DATA_PLACES][PATH_MAX], list[sizeof error->text];
    uint32_t count = att_data_places(places);
    for (uint32_t i = 0; i < count; i++) {
        if (folder != NULL)
            att_data_surfaces(places[i], folder);
        if (snprintf(path, PATH_MAX, "%s/%s", places[i], name) < PATH_MAX &&
            access(path, R_OK) == 0)
            return ATT_OK;
    }
    att_data_list(places, count, list, sizeof list);
    return att_fail(error, ATT_ENOENT, "no %s in %s", name, list);
}
