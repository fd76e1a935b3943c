#include "hook/chain_library.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* NCCL_VERSION_CODE from which on */
#define NET_SHARED    22602 /* the open net plugin is asked, not its name */
#define NET_LIST      22703 /* NCCL_NET_PLUGIN names several */
#define NET_BY_NAME   22706 /* its name is opened once more, which STATIC_PLUGIN is not */
#define NAME_MOST     255
#define NET_LIST_MOST 4096

static void *open_name(const char *value, const char *stem, int mode, bool may_be_static)
{
    char file[NAME_MOST + 1];
    size_t length = strlen(value);
    mode |= RTLD_NOW | RTLD_LOCAL;
    void *library = may_be_static && strncasecmp(value, "STATIC_PLUGIN", length) == 0
                        ? dlopen(NULL, mode)
                        : dlopen(value, mode);
    bool named = strchr(value, '/') != NULL || (strncmp(value, "lib", 3) == 0 && length > 3 &&
                                                strcmp(value + length - 3, ".so") == 0);
    if (library == NULL && !named) {
        snprintf(file, sizeof file, "lib%s-%.200s.so", stem, value);
        library = dlopen(file, mode);
    }
    return library;
}

void *att_chain_open(const char *value, const char *stem)
{
    if (value[0] == '\0' || strcasecmp(value, "none") == 0)
        return NULL;
    return open_name(value, stem, 0, true);
}

/* The last of the list that is open: NCCL stops at the first that it can use. */
static void *open_of_list(const char *value, bool may_be_static)
{
    char list[NET_LIST_MOST];
    void *library = NULL;
    snprintf(list, sizeof list, "%s", value);
    char *rest = NULL;
    for (char *name = strtok_r(list, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
        void *open = open_name(name, "nccl-net", RTLD_NOLOAD, may_be_static);
        library = open != NULL ? open : library;
    }
    return library;
}

void *att_chain_net_library(uint32_t version)
{
    const char *value = getenv("NCCL_NET_PLUGIN");
    if (version == 0)
        version = UINT32_MAX;
    if (value == NULL || (value[0] == '\0' && version < NET_LIST))
        value = "libnccl-net.so";
    if (version < NET_SHARED)
        return open_name(value, "nccl-net", 0, true);
    if (version < NET_LIST)
        return open_name(value, "nccl-net", RTLD_NOLOAD, true);
    return strcasecmp(value, "none") == 0 ? NULL : open_of_list(value, version < NET_BY_NAME);
}
