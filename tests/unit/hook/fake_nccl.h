/*
 * fake_nccl: drives the hook's tables as NCCL 2.30.7 does, in the same order (src/enqueue.cc,
 * src/plugin/profiler.cc), without moving data.
 *
 *     begin -> enqueue ... -> prepare -> launch -> end   and, when the "GPU" runs, run
 *
 * ABI 5 is driven with both halves of version 5, 6 with both of version 6, tuners 3 and 4 with
 * profiler 4 (ATTUNE_GRAPHS=no is the caller's). The driver looks at
 * pointers only through the tables, so it can also drive a hook that was loaded with dlopen.
 */
#ifndef FAKE_NCCL_H
#define FAKE_NCCL_H

#include "attune/setting.h"
#include "hook/abi/profiler_v4.h"
#include "hook/abi/profiler_v5.h"
#include "hook/abi/profiler_v6.h"
#include "hook/abi/tuner_v2.h"
#include "hook/abi/tuner_v3.h"
#include "hook/abi/tuner_v4.h"
#include "hook/abi/tuner_v5.h"
#include "hook/abi/tuner_v6.h"

#define FAKE_OPS      24
#define FAKE_CHANNELS 24 /* comm->nChannels */

typedef struct fake_plugin {
    const att_tuner_v5_t *tuner5;
    const att_tuner_v6_t *tuner6;
    const att_profiler_v5_t *profiler5;
    const att_profiler_v6_t *profiler6;
    const att_tuner_v3_t *tuner3;
    const att_tuner_v4_t *tuner4;
    const att_profiler_v4_t *profiler4;
} fake_plugin_t;

/* One collective between enqueue and run. */
typedef struct fake_op {
    int collective;
    size_t count;         /* as the user gave it */
    const char *datatype; /* "ncclFloat32" */
    size_t element;
    bool captured;
    int mask; /* sampled when enqueued */
    void *api;
    void *coll;
    uint8_t coll_channels; /* reported in the Coll event */
    int algorithm, protocol, channels;
    size_t chunk;
} fake_op_t;

typedef struct fake_comm {
    const fake_plugin_t *plugin;
    int abi;
    uint64_t id;
    int ranks, rank;
    void *tuner, *profiler;
    void *group;
    fake_op_t ops[FAKE_OPS];
    int op_count;
    uint64_t sequence[ATT_COLLECTIVE_COUNT];
    float costs[ATT_PAIR_COUNT]; /* the cost table that it fills in; IGNORE = -1 */
    int algorithms;              /* rows of the table */
    bool no_api;                 /* no GroupApi and CollApi events, as a simple library */
    bool aggregate;              /* ask once for all ops of a group */
    bool captured;               /* its GroupApi events say so */
    int root;                    /* of what is enqueued */
    int first_mask;              /* sampled before the GroupApi event, for the first op */
    uint64_t clock;              /* "GPU" time of the next start */
    int result;                  /* of the last getCollInfo */
} fake_comm_t;

/* NCCL's global event mask. */
extern int fake_mask;
/* The plugin linked into this program. */
extern const fake_plugin_t fake_linked;
/* Lines that the hook logged through NCCL, and the last one. */
extern int fake_log_lines;
extern char fake_log_text[512];
void fake_logger(int level, unsigned long subsystems, const char *file, int line,
                 const char *format, ...);

void fake_init(fake_comm_t *comm, const fake_plugin_t *plugin, int abi, uint64_t id, int ranks,
               int rank);
void fake_destroy(fake_comm_t *comm);

void fake_begin(fake_comm_t *comm);
fake_op_t *fake_enqueue(fake_comm_t *comm, int collective, size_t count, bool captured);
int fake_prepare(fake_comm_t *comm);
void fake_launch(fake_comm_t *comm);
void fake_coll(fake_comm_t *comm, fake_op_t *op); /* the Coll event alone */
void fake_end(fake_comm_t *comm);
/* KernelCh events of an op: starts at comm->clock, lasts so many ns. */
void fake_run(fake_comm_t *comm, fake_op_t *op, uint64_t duration_ns);
void *fake_kernel_start(fake_comm_t *comm, void *coll, int channel, uint64_t time_ns);
void fake_kernel_stop(fake_comm_t *comm, void *kernel, uint64_t time_ns);
void fake_stop(fake_comm_t *comm, void *handle);

/* getCollInfo of the communicator's ABI alone. */
int fake_ask(fake_comm_t *comm, int collective, size_t bytes, float *table, int rows,
             int *channels);

/* A lone call from begin to run, float32, `bytes` as the user's buffer (a rank's share for
 * AllGather and ReduceScatter); returns the op as launched. */
fake_op_t fake_call(fake_comm_t *comm, int collective, size_t bytes, uint64_t duration_ns);

#endif
