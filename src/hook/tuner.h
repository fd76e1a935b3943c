/*
 * tuner: what NCCL's tuner plugin does, independent of the ABI version. The functions return an
 * ncclResult_t: always ATT_NCCL_SUCCESS, but for a committed setting that cannot be applied here,
 * which must not launch (ATT_NCCL_SYSTEM_ERROR).
 */
#ifndef ATT_HOOK_TUNER_H
#define ATT_HOOK_TUNER_H

#include "hook/abi/nccl.h"

#include <stddef.h>

/* Communicators of ABIs 3 and 4, which are not told apart by a hash. */
#define ATT_COMM_UNTOLD 0

/* A context that changes nothing, with one INFO line that says why. */
int att_tuner_init_idle(void **context, att_nccl_logger_fn logger, const char *why);
int att_tuner_init(void **context, uint64_t comm_id, size_t ranks, size_t nodes,
                   att_nccl_logger_fn logger, uint32_t abi);

/* getCollInfo. `table` is float[algorithms][protocols], microseconds, negative = IGNORE; the chosen
 * pair gets 0. *channels is set only to a value above 0; 0 keeps NCCL's. */
int att_tuner_decide(void *context, int collective, size_t bytes, float *table, int algorithms,
                     int protocols, int *channels);

/* getChunkSize. *chunk is NCCL's own value in bytes, replaced only when the batch holds exactly one
 * decision that this can be about. */
int att_tuner_chunk(void *context, int collective, int algorithm, int protocol, size_t *chunk);

int att_tuner_finalize(void *context);

#endif
