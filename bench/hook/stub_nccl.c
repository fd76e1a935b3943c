/* An NCCL that does nothing but what bench_hook puts into its calls, so that the hook's own cost
 * can be measured through the preload. */
#include "hook/abi/nccl_api.h"

#define API __attribute__((visibility("default")))

API int (*stub_inside)(void);
API int stub_mask; /* of its events */

API int pncclCommInitRank(void **comm, int ranks, att_nccl_id_t id, int rank);
int pncclCommInitRank(void **comm, int ranks, att_nccl_id_t id, int rank)
{
    *comm = &stub_mask;
    return stub_inside();
}

API int pncclAllReduce(const void *send, void *receive, size_t count, int type, int op, void *comm,
                       void *stream);
int pncclAllReduce(const void *send, void *receive, size_t count, int type, int op, void *comm,
                   void *stream)
{
    return stub_inside();
}

API int ncclCommCount(const void *comm, int *count);
int ncclCommCount(const void *comm, int *count)
{
    *count = 2;
    return 0;
}

API int ncclCommUserRank(const void *comm, int *rank);
int ncclCommUserRank(const void *comm, int *rank)
{
    *rank = 0;
    return 0;
}

API int ncclGetVersion(int *version);
int ncclGetVersion(int *version)
{
    *version = 23007;
    return 0;
}
