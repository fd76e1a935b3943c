#include "fabric/plugin_file.h"

#include "fabric/error.h"
#include "fabric/version.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static void *open_library(const char *name)
{
    if (strncasecmp(name, "STATIC_PLUGIN", strlen(name)) == 0)
        name = NULL;
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        att_fabric_info("%s", dlerror());
    return library;
}

static bool is_library(const char *name)
{
    size_t length = strlen(name);
    return !strncmp(name, "lib", 3) && length >= 3 && !strcmp(name + length - 3, ".so");
}

/* Only a bare word is also tried as a part of a library's name. */
static bool is_word(const char *name)
{
    return !strchr(name, '/') && !is_library(name);
}

/* 2.27.3 alone takes nothing but lib<...>.so as it is given, not even a path. */
static bool takes_as_given(const char *name)
{
    bool strict = att_fabric_version() >= 22703 && att_fabric_version() < 22705;
    return !strict || is_library(name);
}

/* `opened`, 256 bytes: the name that did it. */
static void *find(const char *kind, const char *name, char *opened)
{
    if (!name || !*name) {
        snprintf(opened, 256, "libnccl-%s.so", kind);
        return open_library(opened);
    }
    snprintf(opened, 256, "%.254s", name); /* NCCL's own limit */
    void *library = takes_as_given(name) ? open_library(opened) : NULL;
    if (!library && (is_word(name) || !takes_as_given(name))) {
        snprintf(opened, 256, "libnccl-%s-%.200s.so", kind, name);
        library = open_library(opened);
    }
    return library;
}

void *att_plugin_find(const char *kind, const char *name)
{
    char opened[256];
    return find(kind, name, opened);
}

static struct {
    pthread_mutex_t lock;
    bool loaded;
    void *library;
    char name[256];
} net = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* src/net.cc, since 2.26 src/plugin/net.cc: the versions it looks for. */
static bool is_net(void *library)
{
    static const struct {
        int number, since, until;
    } abis[] = {{12, 23003, 99999}, {11, 22803, 99999}, {10, 22602, 99999}, {9, 22403, 99999},
                {8, 0, 99999},      {7, 0, 99999},      {6, 0, 99999},      {5, 0, 22600}};
    int version = att_fabric_version();
    for (size_t i = 0; i < sizeof abis / sizeof abis[0]; i++) {
        char symbol[32];
        snprintf(symbol, sizeof symbol, "ncclNetPlugin_v%d", abis[i].number);
        if (version >= abis[i].since && version < abis[i].until && dlsym(library, symbol))
            return true;
    }
    return false;
}

static bool load_one(const char *name)
{
    net.library = find("net", name, net.name);
    if (net.library && !is_net(net.library)) {
        att_fabric_info("NCCL_NET_PLUGIN: %s is no net plugin", net.name);
        dlclose(net.library);
        net.library = NULL;
    }
    if (net.library)
        att_fabric_info("NCCL_NET_PLUGIN: %s is kept open; the fabric moves no data with it",
                        net.name);
    return net.library != NULL;
}

void att_plugin_net_load(const char *value)
{
    char list[4096], *rest = NULL;
    pthread_mutex_lock(&net.lock);
    bool done = net.loaded;
    net.loaded = true;
    if (!done && (!value || (!*value && att_fabric_version() < 22703))) {
        load_one("");
    } else if (!done && att_fabric_version() < 22703) {
        load_one(value);
    } else if (!done && strcasecmp(value, "none") != 0) {
        snprintf(list, sizeof list, "%s", value);
        for (char *name = strtok_r(list, ",", &rest); name && !load_one(name);)
            name = strtok_r(NULL, ",", &rest);
    }
    pthread_mutex_unlock(&net.lock);
}

void *att_plugin_net_library(const char *value)
{
    if (att_fabric_version() < 22602)
        return att_plugin_find("net", value);
    pthread_mutex_lock(&net.lock);
    bool is_static = strncasecmp(net.name, "STATIC_PLUGIN", strlen(net.name)) == 0;
    void *library = NULL;
    if (net.library && is_static)
        library = att_fabric_version() < 22706 ? dlopen(NULL, RTLD_NOW) : NULL;
    else if (net.library)
        library = dlopen(net.name, RTLD_NOW | RTLD_LOCAL);
    pthread_mutex_unlock(&net.lock);
    return library;
}
