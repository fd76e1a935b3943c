#include "hook/library.h"

#include <dlfcn.h>
#include <stddef.h>

static void *symbol_of(const char *file, const char *name)
{
    void *handle = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL)
        return NULL;
    void *address = dlsym(handle, name);
    dlclose(handle); /* RTLD_NOLOAD only counted: the object stays */
    return address;
}

void *att_library_symbol(att_nccl_logger_fn logger, const char *name)
{
    Dl_info info;
    void *address = NULL;
    if (logger != NULL && dladdr((void *)logger, &info) != 0 && info.dli_fname != NULL)
        address = symbol_of(info.dli_fname, name);
    if (address == NULL)
        address = dlsym(RTLD_DEFAULT, name);
    if (address == NULL)
        address = symbol_of("libnccl.so.2", name);
    return address;
}

uint32_t att_library_version(att_nccl_logger_fn logger)
{
    int (*get_version)(int *) = (int (*)(int *))att_library_symbol(logger, "ncclGetVersion");
    int version = 0;
    if (get_version == NULL || get_version(&version) != ATT_NCCL_SUCCESS || version < 0)
        return 0;
    return (uint32_t)version;
}
