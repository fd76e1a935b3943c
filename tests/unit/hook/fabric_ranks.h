/*
 * fabric_ranks: the ranks of one communicator on the host fabric, a thread each, in the body of an
 * isolated test.
 */
#ifndef FABRIC_RANKS_H
#define FABRIC_RANKS_H

#include "hook/abi/nccl_api.h"

typedef struct rank {
    void *nccl; /* the fabric's handle */
    int rank;
    att_nccl_id_t id;
    void *comm;
    int result;
    void (*body)(struct rank *);
} rank_t;

/* `run` on each rank, with its rank_t, until all are over. NCCL_* are the caller's, but the hook of
 * this program is the tuner. */
void fabric_ranks(const char *library, int ranks, void *(*run)(void *), void (*body)(rank_t *));

#endif
