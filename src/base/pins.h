/*
 * pins: knobs that the user has set with NCCL's own variables. They win: attune does not search
 * them. Any value pins, also the forms that only exclude ("^nvls", "LL,Simple;allreduce:^LL").
 */
#ifndef ATT_BASE_PINS_H
#define ATT_BASE_PINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A variable as NCCL will see it, NULL when unset. */
typedef const char *(*att_variable_fn)(const void *context, const char *name);
const char *att_pins_own_variable(const void *context, const char *name); /* of this process */

/* ATT_PIN_* bits from the environment as it is now (NCCL has read its configuration files into it).
 * `names` gets the variables, comma-separated, cut to size. */
uint32_t att_pins_read(char *names, size_t size);

/* Most channels that the environment allows any communicator (NCCL_MAX_CTAS, NCCL_MAX_NCHANNELS);
 * 0: no limit. NCCL cuts what a tuner asks for to it in silence. */
uint32_t att_pins_channels_most(att_variable_fn variable, const void *context);

/* Does NCCL choose by its policy EFFICIENCY (NVLS for registered buffers, in AllGather and
 * ReduceScatter), as NCCL_CTA_POLICY says, or without it the communicator's CTAPolicy `configured`
 * (0: none)? With any tuner plugin loaded it does not (ncclGetAlgoInfo,
 * src/enqueue.cc; 2.27 and later), so that its own choice is another one than without. */
bool att_pins_efficiency(att_variable_fn variable, const void *context, int configured);

/* The variables: name of the i-th and the knob's ATT_PIN_* bit; NULL behind the last. */
const char *att_pins_variable(size_t i, uint32_t *pin);

#endif
