/*
 * chain: the tuner that NCCL would have loaded without attune. It is asked first; its answer is
 * what "keep" means, so the baseline of every comparison and the fallback.
 *
 * Which one: ATTUNE_CHAIN_TUNER (attune run puts the user's NCCL_TUNER_PLUGIN there), unset
 * libnccl-tuner.so; when there is no such file, the net plugin's library (hook/chain_library.h);
 * "none": none. A file without a tuner for this NCCL ends the search, as in NCCL. Loaded once a
 * process, never closed.
 *
 * The ABI files call these. Without another tuner they are att_tuner_* (hook/tuner.h) behind one
 * branch, and the context is the same; with one, every context of the process is a link to both.
 */
#ifndef ATT_HOOK_CHAIN_H
#define ATT_HOOK_CHAIN_H

#include "hook/abi/tuner_v5.h"

#include <stdint.h>

/* What NCCL tells a tuner's init; what its ABI does not tell is 0 or NULL. */
typedef struct att_tuner_start {
    uint32_t abi; /* of the table that NCCL uses: the other's is not newer */
    uint64_t comm_id;
    size_t ranks, nodes;
    att_nccl_logger_fn logger;
    att_nvl_domains_v5_t *domains;
    att_tuner_constants_v5_t *constants;
} att_tuner_start_t;

/* One question of getCollInfo. */
typedef struct att_tuner_question {
    int collective;
    size_t bytes;
    int pipe_ops;
    float *table;
    int algorithms, protocols;
    int registered;
} att_tuner_question_t;

int att_chain_init(void **context, const att_tuner_start_t *start);
int att_chain_decide(void *context, const att_tuner_question_t *question, int *channels);
int att_chain_chunk(void *context, int collective, size_t bytes, int algorithm, int protocol,
                    int channels, size_t *chunk);
int att_chain_finalize(void *context);

/* ABI 2 (NCCL 2.21), where attune answers nothing: the other's answer alone. */
int att_chain_decide_v2(void *context, int collective, size_t bytes, int collnet, int nvls,
                        int pipe_ops, int *algorithm, int *protocol, int *channels);

#endif
