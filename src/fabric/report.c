#include "fabric/report.h"

#include "base/descriptor.h"
#include "fabric/device.h"
#include "fabric/error.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    bool used;
    int ranks;
    att_fabric_mode_t mode;
    const att_model_setup_t *setup;
    uint64_t calls;
    uint64_t mismatches;
} total;

void att_report_created(int ranks, att_fabric_mode_t mode, const att_model_setup_t *setup)
{
    pthread_mutex_lock(&mutex);
    total.used = true;
    total.mode = mode;
    total.setup = setup;
    if (ranks > total.ranks)
        total.ranks = ranks;
    pthread_mutex_unlock(&mutex);
}

static void write_report(void)
{
    const char *directory = getenv("ATTUNE_RUN_DIR");
    if (!directory || !*directory || !total.used)
        return;
    json_t *root =
        json_pack("{s:i,s:s,s:s?,s:s?,s:i,s:I,s:I}", "version", 1, "fabric",
                  total.mode == ATT_FABRIC_MODEL ? "model" : "real", "surface",
                  total.setup ? total.setup->surface_name : NULL, "load",
                  total.setup ? total.setup->load_name : NULL, "ranks", total.ranks, "calls",
                  (json_int_t)total.calls, "mismatches", (json_int_t)total.mismatches);
    char path[PATH_MAX], temporary[PATH_MAX + 8];
    /* Process ids repeat over nodes and containers that share the folder. */
    int length = snprintf(path, sizeof path, "%s/fabric-%d-%08x.json", directory, (int)getpid(),
                          (unsigned)att_device_process());
    snprintf(temporary, sizeof temporary, "%s.new", path);
    errno = ENAMETOOLONG;
    int fd = -1;
    if (length < (int)sizeof path) /* cut, it would be a file elsewhere */
        fd = att_descriptor_keep(open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    bool failed = fd < 0 || !root || json_dumpfd(root, fd, JSON_COMPACT);
    if (fd >= 0)
        failed |= close(fd) != 0;
    if (failed || rename(temporary, path)) {
        static bool told; /* by the first of many communicators */
        if (!told)
            att_fabric_error(ncclSystemError, "cannot write %s: %s", path, strerror(errno));
        told = true;
        if (fd >= 0)
            unlink(temporary);
    }
    json_decref(root);
}

void att_report_destroyed(int rank, uint64_t calls, uint64_t mismatches)
{
    pthread_mutex_lock(&mutex);
    if (rank == 0)
        total.calls += calls;
    total.mismatches += mismatches;
    write_report();
    pthread_mutex_unlock(&mutex);
}
