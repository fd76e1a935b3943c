/*
 * forced_tuner: a tuner inside the test program (NCCL_TUNER_PLUGIN=STATIC_PLUGIN) that forces one
 * setting on every call, so that each combination can be reached.
 */
#ifndef ATT_TEST_FABRIC_FORCED_TUNER_H
#define ATT_TEST_FABRIC_FORCED_TUNER_H

#include <stddef.h>

typedef struct forced {
    int algorithm; /* -1: leave everything to the fabric */
    int protocol;
    int channels;
    size_t chunk; /* 0: keep */
} forced_t;

/* Read by all ranks; set while none of them runs. */
extern forced_t forced;

#endif
