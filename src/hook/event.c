#include "hook/event.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

static bool load(att_event_driver_t *driver)
{
    const struct {
        const char *name;
        void **slot;
    } table[] = {{"cuEventCreate", (void **)&driver->create},
                 {"cuEventDestroy_v2", (void **)&driver->destroy},
                 {"cuEventRecord", (void **)&driver->record},
                 {"cuEventQuery", (void **)&driver->query},
                 {"cuEventElapsedTime", (void **)&driver->elapsed},
                 {"cuStreamWaitEvent", (void **)&driver->wait},
                 {"cuStreamIsCapturing", (void **)&driver->capturing},
                 {"cuThreadExchangeStreamCaptureMode", (void **)&driver->capture_mode}};
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL)
        return false;
    bool good = true;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        *table[i].slot = dlsym(library, table[i].name);
        good = good && *table[i].slot != NULL;
    }
    dlclose(library); /* RTLD_NOLOAD only counted: the object stays */
    return good;
}

bool att_event_driver_is_loaded(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (library != NULL)
        dlclose(library);
    return library != NULL;
}

const att_event_driver_t *att_event_driver(void)
{
    static att_event_driver_t kept;
    static _Atomic(const att_event_driver_t *) found;
    static _Atomic int loading;
    const att_event_driver_t *driver = atomic_load_explicit(&found, memory_order_acquire);
    if (driver != NULL)
        return driver;
    att_event_driver_t fresh = {0};
    int place = 0;
    if (!load(&fresh) || !atomic_compare_exchange_strong(&loading, &place, 1))
        return atomic_load_explicit(&found, memory_order_acquire);
    kept = fresh;
    atomic_store_explicit(&found, &kept, memory_order_release);
    return &kept;
}

bool att_event_capturing(const att_event_driver_t *driver, void *stream)
{
    int status = 0;
    return driver->capturing(stream, &status) != 0 || status != 0;
}
