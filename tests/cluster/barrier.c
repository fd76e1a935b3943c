/*
 * barrier: does a fence without data hold all ranks? Rank 0 comes two seconds late; each rank prints
 * how long it waited. Slurm's pmix plugin has an algorithm that lets everybody go at once.
 */
#include <pmix.h>
#include <stdio.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(void)
{
    pmix_proc_t self;
    if (PMIx_Init(&self, NULL, 0) != PMIX_SUCCESS) {
        fprintf(stderr, "barrier: PMIx_Init failed\n");
        return 1;
    }
    PMIx_Fence(NULL, 0, NULL, 0);
    if (self.rank == 0) {
        struct timespec late = {2, 0};
        nanosleep(&late, NULL);
    }
    double start = now();
    pmix_status_t status = PMIx_Fence(NULL, 0, NULL, 0);
    printf("rank %u waited %.1f s\n", (unsigned)self.rank, now() - start);
    fflush(stdout);
    PMIx_Finalize(NULL, 0);
    return status != PMIX_SUCCESS;
}
