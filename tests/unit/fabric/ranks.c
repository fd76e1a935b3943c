#include "ranks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct start {
    rank_t rank;
    ncclUniqueId id;
    body_fn body;
} start_t;

static void run_one(start_t *start)
{
    rank_t *rank = &start->rank;
    ncclResult_t result = ncclCommInitRank(&rank->comm, rank->count, start->id, rank->rank);
    if (result != ncclSuccess) {
        fprintf(stderr, "rank %d: init: %s\n", rank->rank, ncclGetErrorString(result));
        rank->failed++;
        return;
    }
    start->body(rank);
    if (rank->comm && ncclCommDestroy(rank->comm) != ncclSuccess)
        rank->failed++;
}

static void *thread_main(void *argument)
{
    run_one(argument);
    return NULL;
}

int run_threads(int count, body_fn body, void *argument)
{
    start_t starts[64];
    pthread_t threads[64];
    ncclUniqueId id;
    int failed = ncclGetUniqueId(&id) != ncclSuccess;
    for (int r = 0; r < count; r++) {
        starts[r] = (start_t){{r, count, NULL, argument, 0}, id, body};
        pthread_create(&threads[r], NULL, thread_main, &starts[r]);
    }
    for (int r = 0; r < count; r++) {
        pthread_join(threads[r], NULL);
        failed += starts[r].rank.failed;
    }
    return failed;
}

int run_processes(int count, body_fn body, void *argument)
{
    ncclUniqueId id;
    int failed = ncclGetUniqueId(&id) != ncclSuccess;
    pid_t children[64];
    fflush(NULL);
    for (int r = 0; r < count; r++) {
        children[r] = fork();
        if (children[r] == 0) {
            start_t start = {{r, count, NULL, argument, 0}, id, body};
            run_one(&start);
            fflush(NULL);
            _exit(start.rank.failed ? 1 : 0);
        }
    }
    for (int r = 0; r < count; r++) {
        int status = 0;
        waitpid(children[r], &status, 0);
        failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    return failed;
}
