/* A module that is linked with one copy of NCCL and loaded with RTLD_LOCAL, as Python loads its
 * own. */
#include "hook/abi/nccl_api.h"

__attribute__((visibility("default"))) int use_all_reduce(void *comm);
int use_all_reduce(void *comm)
{
    int result = ncclAllReduce("", (void *)"", 1, 7, 0, comm, (void *)0);
    return result; /* not a tail call: the return address is in this module */
}

__attribute__((visibility("default"))) int use_init(void **comm);
int use_init(void **comm)
{
    att_nccl_id_t id = {{0}};
    int result = ncclCommInitRank(comm, 2, id, 1);
    return result;
}

__attribute__((visibility("default"))) int use_group(void);
int use_group(void)
{
    int result = ncclGroupStart();
    return result + ncclGroupEnd();
}
