#include "fabric_ranks.h"

#include "isolated.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

void fabric_ranks(const char *library, int ranks, void *(*run)(void *), void (*body)(rank_t *))
{
    setenv("NCCL_TUNER_PLUGIN", "STATIC_PLUGIN", 1);
    setenv("ATTUNE_FABRIC_SHM_DIR", getenv("ATTUNE_SHM_DIR"), 1);
    void *nccl = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    CHECK(nccl != NULL);
    int (*get_id)(att_nccl_id_t *) = (int (*)(att_nccl_id_t *))dlsym(nccl, "ncclGetUniqueId");
    rank_t *all = calloc((size_t)ranks, sizeof *all);
    pthread_t *threads = calloc((size_t)ranks, sizeof *threads);
    att_nccl_id_t id;
    CHECK(all != NULL && threads != NULL);
    CHECK_EQUAL(get_id(&id), 0);
    for (int r = 0; r < ranks; r++) {
        all[r] = (rank_t){.nccl = nccl, .rank = r, .id = id, .body = body};
        CHECK_EQUAL(pthread_create(&threads[r], NULL, run, &all[r]), 0);
    }
    for (int r = 0; r < ranks; r++)
        CHECK_EQUAL(pthread_join(threads[r], NULL), 0);
    free(threads);
    free(all);
}
