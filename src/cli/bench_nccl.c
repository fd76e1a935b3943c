#include "cli/bench_nccl.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    size_t size;
} types[ATT_NCCL_TYPES] = {{"int8", 1},   {"uint8", 1},   {"int32", 4}, {"uint32", 4},
                           {"int64", 8},  {"uint64", 8},  {"half", 2},  {"float", 4},
                           {"double", 8}, {"bfloat16", 2}};

static const char *const ops[ATT_NCCL_OPS] = {"sum", "prod", "max", "min", "avg"};

const char *att_nccl_type_name(int type)
{
    return type >= 0 && type < ATT_NCCL_TYPES ? types[type].name : "unknown";
}

size_t att_nccl_type_size(int type)
{
    return type >= 0 && type < ATT_NCCL_TYPES ? types[type].size : 0;
}

int att_nccl_type_parse(const char *word)
{
    for (int i = 0; i < ATT_NCCL_TYPES; i++)
        if (strcasecmp(types[i].name, word) == 0)
            return i;
    return -1;
}

const char *att_nccl_op_name(int op)
{
    return op >= 0 && op < ATT_NCCL_OPS ? ops[op] : "unknown";
}

int att_nccl_op_parse(const char *word)
{
    for (int i = 0; i < ATT_NCCL_OPS; i++)
        if (strcasecmp(ops[i], word) == 0)
            return i;
    return -1;
}

static int load_functions(att_nccl_t *nccl, att_error_t *error)
{
    const struct {
        const char *name;
        void **slot;
        bool optional;
    } table[] = {
        {"ncclGetVersion", (void **)&nccl->get_version, false},
        {"ncclGetUniqueId", (void **)&nccl->get_unique_id, false},
        {"ncclCommInitRank", (void **)&nccl->comm_init_rank, false},
        {"ncclCommDestroy", (void **)&nccl->comm_destroy, false},
        {"ncclCommAbort", (void **)&nccl->comm_abort, false},
        {"ncclGetErrorString", (void **)&nccl->error_string, false},
        {"ncclGetLastError", (void **)&nccl->last_error, true},
        {"ncclGroupStart", (void **)&nccl->group_start, false},
        {"ncclGroupEnd", (void **)&nccl->group_end, false},
        {"ncclAllReduce", (void **)&nccl->all_reduce, false},
        {"ncclAllGather", (void **)&nccl->all_gather, false},
        {"ncclReduceScatter", (void **)&nccl->reduce_scatter, false},
        {"ncclBroadcast", (void **)&nccl->broadcast, false},
        {"ncclReduce", (void **)&nccl->reduce, false},
        {"ncclFabricAdvance", (void **)&nccl->fabric_advance, !nccl->fabric},
        {"ncclFabricNow", (void **)&nccl->fabric_now, !nccl->fabric},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        /* As a linked program would find it: a preloaded hook comes first. */
        *table[i].slot = dlsym(RTLD_DEFAULT, table[i].name);
        if (*table[i].slot == NULL)
            *table[i].slot = dlsym(nccl->library, table[i].name);
        if (*table[i].slot == NULL && !table[i].optional)
            return att_fail(error, ATT_EVERSION, "%s has no %s: not an NCCL library", nccl->path,
                            table[i].name);
    }
    return ATT_OK;
}

int att_nccl_load(att_nccl_t *nccl, att_error_t *error)
{
    memset(nccl, 0, sizeof *nccl);
    const char *name = getenv("ATTUNE_NCCL_LIB");
    if (name == NULL || name[0] == '\0')
        name = "libnccl.so.2";
    nccl->library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    if (nccl->library == NULL)
        return att_fail(error, ATT_ENOENT,
                        "cannot load NCCL (%s); set ATTUNE_NCCL_LIB or LD_LIBRARY_PATH", dlerror());
    snprintf(nccl->path, sizeof nccl->path, "%s", name);
    nccl->fabric = dlsym(nccl->library, "ncclFabricDeviceInfo") != NULL;
    int rc = load_functions(nccl, error);
    if (rc != 0) {
        dlclose(nccl->library);
        nccl->library = NULL;
        return rc;
    }
    Dl_info where;
    void *function = dlsym(nccl->library, "ncclGetVersion");
    if (function != NULL && dladdr(function, &where) != 0 && where.dli_fname != NULL)
        snprintf(nccl->path, sizeof nccl->path, "%s", where.dli_fname);
    return ATT_OK;
}

int att_nccl_check(const att_nccl_t *nccl, int result, const char *what, att_error_t *error)
{
    if (result == ATT_NCCL_SUCCESS)
        return ATT_OK;
    const char *last = nccl->last_error != NULL ? nccl->last_error(NULL) : NULL;
    return att_fail(error, ATT_ESYSTEM, "%s: %s%s%s", what, nccl->error_string(result),
                    last != NULL && last[0] != '\0' ? ": " : "", last != NULL ? last : "");
}
