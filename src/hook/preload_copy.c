#include "hook/preload_copy.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define COPIES  8
#define CALLERS 512 /* a power of two */
#define PROBES  8

static _Atomic(att_preload_copy_t *) copies[COPIES];

/* Call sites are few and stay: their copy is looked up once. */
static struct {
    _Atomic(const void *) caller;
    _Atomic(const att_preload_copy_t *) copy;
} callers[CALLERS];

#define ATT_OWN(name, parameters) {"pnccl" #name, (void *)(uintptr_t)nccl##name},
static const struct {
    const char *name; /* without its first letter: the other name */
    void *own;
} functions[ATT_NCCL_FUNCTION_COUNT] = {ATT_NCCL_API(ATT_OWN)};
#undef ATT_OWN

/* pncclX; where only one name is exported, ncclX, unless that is the preload itself. */
static void *function_in(void *handle, att_nccl_function_t number)
{
    void *address = dlsym(handle, functions[number].name);
    if (address == NULL)
        address = dlsym(handle, functions[number].name + 1);
    return address != functions[number].own ? address : NULL;
}

static void *object_of(void *address)
{
    Dl_info info;
    return address != NULL && dladdr(address, &info) != 0 ? info.dli_fbase : NULL;
}

static bool is_in_an_nccl(void *address)
{
    Dl_info info;
    void *handle = dladdr(address, &info) != 0 && info.dli_fname != NULL
                       ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
                       : NULL;
    if (handle == NULL)
        return true; /* the program itself: its own copy */
    void *private = dlsym(handle, "pncclCommInitRank");
    dlclose(handle);
    return private != NULL && object_of(private) == info.dli_fbase;
}

/* A library that wraps NCCL's functions and was preloaded, too, comes before NCCL itself. */
static void *next_of(void *real, att_nccl_function_t number)
{
    void *next = dlsym(RTLD_NEXT, functions[number].name + 1);
    bool wraps = real != NULL && next != NULL && next != functions[number].own &&
                 object_of(next) != object_of(real) && !is_in_an_nccl(next);
    return wraps ? next : real;
}

/* Who loaded it for everybody may close it again, and call sites remember it: it stays. */
static void keep(void *address)
{
    Dl_info info;
    if (dladdr(address, &info) != 0 && info.dli_fname != NULL)
        (void)dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

/* The copy that the handle's scope holds, NULL none. Handles stay open: what is found stays. */
static const att_preload_copy_t *copy_in(void *handle)
{
    void *anchor = function_in(handle, ATT_NCCL_CommInitRank);
    if (anchor == NULL)
        return NULL;
    for (int i = 0; i < COPIES; i++) {
        att_preload_copy_t *known = atomic_load_explicit(&copies[i], memory_order_acquire);
        if (known != NULL && known->anchor == anchor)
            return known;
    }
    att_preload_copy_t *copy = calloc(1, sizeof *copy);
    if (copy == NULL)
        return NULL;
    keep(anchor);
    copy->anchor = anchor;
    for (int i = 0; i < ATT_NCCL_FUNCTION_COUNT; i++)
        copy->functions[i] =
            next_of(function_in(handle, (att_nccl_function_t)i), (att_nccl_function_t)i);
    copy->comm_count = (int (*)(const void *, int *))dlsym(handle, "ncclCommCount");
    copy->comm_rank = (int (*)(const void *, int *))dlsym(handle, "ncclCommUserRank");
    copy->version = (int (*)(int *))dlsym(handle, "ncclGetVersion");
    if (copy->version == NULL || copy->version(&copy->version_code) != 0)
        copy->version_code = 0;
    for (int i = 0; i < COPIES; i++) {
        att_preload_copy_t *expected = NULL;
        if (atomic_compare_exchange_strong(&copies[i], &expected, copy))
            return copy;
        if (expected->anchor == anchor) {
            free(copy);
            return expected;
        }
    }
    free(copy);
    return NULL;
}

bool att_preload_copy_watch(const void *address, _Atomic int *mask)
{
    Dl_info owner;
    if (dladdr(address, &owner) == 0)
        return false;
    for (int i = 0; i < COPIES; i++) {
        att_preload_copy_t *copy = atomic_load_explicit(&copies[i], memory_order_acquire);
        if (copy == NULL || object_of(copy->anchor) != owner.dli_fbase)
            continue;
        atomic_store_explicit(&copy->mask, mask, memory_order_release);
        return true;
    }
    return false;
}

/* No lock is held over the loader's own: a library's constructor may call NCCL. */
static const att_preload_copy_t *look_up(const void *caller)
{
    const att_preload_copy_t *copy = copy_in(RTLD_NEXT);
    Dl_info info;
    struct link_map *map = NULL;
    if (copy == NULL && dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) != 0 &&
        map != NULL && map->l_name != NULL && map->l_name[0] != '\0') {
        void *handle = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
        if (handle != NULL)
            copy = copy_in(handle);
    }
    if (copy == NULL) {
        void *handle = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD);
        if (handle != NULL)
            copy = copy_in(handle);
    }
    /* Under another name, or in a scope that does not show: the first that was met. */
    return copy != NULL ? copy : atomic_load_explicit(&copies[0], memory_order_acquire);
}

const att_preload_copy_t *att_preload_copy_of(const void *caller)
{
    uint32_t at = (uint32_t)(((uint64_t)(uintptr_t)caller * 0x9e3779b97f4a7c15u) >> 40);
    const void *seen = NULL;
    for (uint32_t i = 0; i < PROBES && seen != caller; i++, at++) {
        seen = atomic_load_explicit(&callers[at % CALLERS].caller, memory_order_acquire);
        if (seen == caller)
            return atomic_load_explicit(&callers[at % CALLERS].copy, memory_order_relaxed);
        if (seen == NULL)
            break;
    }
    const att_preload_copy_t *copy = look_up(caller);
    if (copy == NULL || seen != NULL) /* none yet: asked again; no room: asked every time */
        return copy;
    /* Taken by two threads at once: one of them stays without a place, which only costs time. */
    const att_preload_copy_t *empty = NULL;
    if (atomic_compare_exchange_strong(&callers[at % CALLERS].copy, &empty, copy))
        atomic_store_explicit(&callers[at % CALLERS].caller, caller, memory_order_release);
    return copy;
}
