/* An NCCL whose functions only count who called them, to be loaded as one of several copies. Like
 * the real one it exports every function twice and calls ncclBroadcast from ncclBcast by its
 * exported name. It has no ncclGroupSimulateEnd, as versions before 2.22. */
#include "hook/abi/nccl_api.h"

#include <stdint.h>

#define EXPORT(name) __attribute__((visibility("default"), weak, alias("p" #name)))
#define BODY         __attribute__((visibility("default")))

/* Calls by ATT_NCCL_ number. */
BODY int copy_calls[ATT_NCCL_FUNCTION_COUNT];
/* Set by the test: an event mask, as NCCL would read it in a call; what the latest call found. */
BODY int *copy_mask;
BODY int copy_seen;
/* What every function but the communicators' makers answers. */
BODY int copy_answer;

static int called(att_nccl_function_t number)
{
    __atomic_add_fetch(&copy_calls[number], 1, __ATOMIC_RELAXED);
    if (copy_mask != NULL)
        copy_seen = *copy_mask;
    return copy_answer;
}

#define DECLARE(name, parameters) BODY int pnccl##name parameters;
ATT_NCCL_API(DECLARE)

int pncclCommInitRank(void **comm, int ranks, att_nccl_id_t id, int rank)
{
    static char handles[64];
    static int next;
    *comm = &handles[__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % 64];
    called(ATT_NCCL_CommInitRank);
    return id.internal[0];
}
EXPORT(ncclCommInitRank) int ncclCommInitRank(void **, int, att_nccl_id_t, int);

BODY int ncclCommCount(const void *comm, int *count);
BODY int ncclCommCount(const void *comm, int *count)
{
    *count = 2;
    return 0;
}

BODY int ncclCommUserRank(const void *comm, int *rank);
BODY int ncclCommUserRank(const void *comm, int *rank)
{
    *rank = 1;
    return 0;
}

BODY int ncclGetVersion(int *version);
BODY int ncclGetVersion(int *version)
{
    *version = 22105;
    return 0;
}

#define SIMPLE(name, parameters)                                                                   \
    int pnccl##name parameters                                                                     \
    {                                                                                              \
        return called(ATT_NCCL_##name);                                                            \
    }                                                                                              \
    EXPORT(nccl##name) int nccl##name parameters;

SIMPLE(CommDestroy, (void *comm))
SIMPLE(CommAbort, (void *comm))
SIMPLE(CommFinalize, (void *comm))
SIMPLE(CommGetAsyncError, (void *comm, int *error))
SIMPLE(GroupStart, (void))
SIMPLE(GroupEnd, (void))
SIMPLE(AllReduce,
       (const void *send, void *receive, size_t count, int type, int op, void *comm, void *stream))
SIMPLE(Broadcast, (const void *send, void *receive, size_t count, int type, int root, void *comm,
                   void *stream))
SIMPLE(Send, (const void *send, size_t count, int type, int peer, void *comm, void *stream))
SIMPLE(AlltoAll,
       (const void *send, void *receive, size_t count, int type, void *comm, void *stream))

int pncclBcast(void *buffer, size_t count, int type, int root, void *comm, void *stream)
{
    called(ATT_NCCL_Bcast);
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}
EXPORT(ncclBcast) int ncclBcast(void *, size_t, int, int, void *, void *);
