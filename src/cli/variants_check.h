/*
 * variants check: may communicator variants (base/variants.h) be made with the variables that NCCL
 * will see, and what do they cost. What only the job can tell (nodes, blocking, groups) is the
 * hook's matter (hook/variant.h).
 */
#ifndef ATT_CLI_VARIANTS_CHECK_H
#define ATT_CLI_VARIANTS_CHECK_H

#include "base/pins.h"
#include "base/variants.h"

/* -ATT_EUSAGE: a variable is in the way; the text names it and what to do. */
int att_variants_check(const att_variants_t *variants, att_variable_fn variable,
                       const void *context, att_error_t *error);

/* What they may take on one GPU for each communicator of the job. */
typedef struct att_variants_cost {
    uint32_t channels; /* of one, at most: NCCL_MAX_CTAS, NCCL_MAX_NCHANNELS or 32 */
    uint64_t bytes;
} att_variants_cost_t;
att_variants_cost_t att_variants_cost(const att_variants_t *variants, att_variable_fn variable,
                                      const void *context);

#endif
