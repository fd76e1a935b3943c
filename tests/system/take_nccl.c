/* take_nccl LIBRARY: two ranks, ten AllReduces each, with functions taken by dlsym from the library
 * itself, as vLLM's Python wrapper does: nothing that stands in front of them is used. */
#include "hook/abi/nccl_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define RANKS 2

static void *library;
static att_nccl_id_t id;
static float data[RANKS][1024];

static void *take(const char *name)
{
    void *function = dlsym(library, name);
    if (function == NULL) {
        fprintf(stderr, "take_nccl: %s\n", dlerror());
        exit(1);
    }
    return function;
}

static void *run_rank(void *argument)
{
    float *mine = argument;
    void *comm = NULL;
    __typeof__(&ncclCommInitRank) init = (__typeof__(&ncclCommInitRank))take("ncclCommInitRank");
    __typeof__(&ncclAllReduce) reduce = (__typeof__(&ncclAllReduce))take("ncclAllReduce");
    __typeof__(&ncclCommDestroy) destroy = (__typeof__(&ncclCommDestroy))take("ncclCommDestroy");
    int result = init(&comm, RANKS, id, (int)((mine - data[0]) / 1024));
    for (int i = 0; i < 10 && result == 0; i++)
        result = reduce(mine, mine, 1024, 7, 0, comm, NULL);
    return result != 0 || destroy(comm) != 0 ? (void *)1 : NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[RANKS];
    library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL) {
        fprintf(stderr, "take_nccl: %s\n", argc == 2 ? dlerror() : "usage: take_nccl LIBRARY");
        return 2;
    }
    int (*get_id)(att_nccl_id_t *) = (int (*)(att_nccl_id_t *))take("ncclGetUniqueId");
    if (get_id(&id) != 0)
        return 1;
    for (int r = 0; r < RANKS; r++)
        if (pthread_create(&threads[r], NULL, run_rank, data[r]) != 0)
            return 1;
    int status = 0;
    for (int r = 0; r < RANKS; r++) {
        void *failed = NULL;
        pthread_join(threads[r], &failed);
        status |= failed != NULL;
    }
    return status;
}
