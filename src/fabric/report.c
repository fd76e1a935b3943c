#include "fabric/report.h"

#include "fabric/error.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A communicator that ranks of this process have destroyed. */
typedef struct att_reported {
    uint64_t hash;
    uint64_t calls;
    struct att_reported *next;
} att_reported_t;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    bool used;
    int ranks;
    att_fabric_mode_t mode;
    const att_model_setup_t *setup;
    uint64_t mismatches;
    att_reported_t *communicators;
} total;

void att_report_created(uint64_t hash, int ranks, att_fabric_mode_t mode,
                        const att_model_setup_t *setup)
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
    uint64_t calls = 0;
    for (const att_reported_t *one = total.communicators; one; one = one->next)
        calls += one->calls;
    json_t *root =
        json_pack("{s:i,s:s,s:s?,s:s?,s:i,s:I,s:I}", "version", 1, "fabric",
                  total.mode == ATT_FABRIC_MODEL ? "model" : "real", "surface",
                  total.setup ? total.setup->surface_name : NULL, "load",
                  total.setup ? total.setup->load_name : NULL, "ranks", total.ranks, "calls",
                  (json_int_t)calls, "mismatches", (json_int_t)total.mismatches);
    char path[1024], temporary[1040];
    snprintf(path, sizeof path, "%s/fabric-%d.json", directory, (int)getpid());
    snprintf(temporary, sizeof temporary, "%s.new", path);
    if (!root || json_dump_file(root, temporary, JSON_COMPACT) || rename(temporary, path))
        att_fabric_error(ncclSystemError, "cannot write %s: %s", path, strerror(errno));
    json_decref(root);
}

void att_report_destroyed(uint64_t hash, int rank, uint64_t calls, uint64_t mismatches)
{
    pthread_mutex_lock(&mutex);
    att_reported_t *one = total.communicators;
    while (one && one->hash != hash)
        one = one->next;
    if (!one && (one = calloc(1, sizeof *one))) {
        one->hash = hash;
        one->next = total.communicators;
        total.communicators = one;
    }
    if (one && calls > one->calls)
        one->calls = calls;
    total.mismatches += mismatches;
    write_report();
    pthread_mutex_unlock(&mutex);
}
