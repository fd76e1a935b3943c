/*
 * bench_setting: settings that the workload driver fixes, without a search.
 *
 * The driver writes the setting in force into a memory file; the tuner plugin
 * libattune-bench-tuner.so (bench/gpu/fixed_tuner.c), loaded by NCCL, reads it at every decision
 * and notes what it saw. The driver writes only while no call is in flight on any rank, with a
 * barrier after it, so the words need no lock.
 */
#ifndef ATT_CLI_BENCH_SETTING_H
#define ATT_CLI_BENCH_SETTING_H

#include "attune/setting.h"
#include "base/status.h"

#include <stdatomic.h>
#include <stdint.h>

/* Variable that names the memory file. */
#define ATT_BENCH_SETTING_VARIABLE "ATTUNE_BENCH_SETTING"
#define ATT_BENCH_SETTING_ABI      2u

typedef struct att_bench_setting_table {
    uint32_t abi;          /* ATT_BENCH_SETTING_ABI */
    uint32_t size;         /* sizeof(att_bench_setting_table_t) */
    att_setting_t setting; /* in force; KEEP leaves everything to NCCL */
    /* Since the driver last cleared them: */
    _Atomic uint32_t decisions;   /* getCollInfo calls, all ranks */
    _Atomic uint32_t refused;     /* of these, the pair was not available: NCCL's choice was left */
    _Atomic uint32_t legal_pairs; /* ATT_PAIR_BIT, AND over the decisions */
    _Atomic int32_t native_pair;  /* the cheapest pair of NCCL's own table, of the last decision */
    _Atomic uint32_t chunk_calls; /* getChunkSize calls that changed the value */
    uint32_t reserved;
    _Atomic float cost_us[ATT_PAIR_COUNT]; /* NCCL's estimates, of the last decision */
    uint32_t padding;
} att_bench_setting_table_t;
_Static_assert(sizeof(att_bench_setting_table_t) == 136, "bench setting ABI 2");

struct att_bench_setting;

/* Create the memory file, or attach to an inherited one (descriptor >= 0), and set the variables
 * that make NCCL load the plugin. -ATT_EBUSY when NCCL_TUNER_PLUGIN names another plugin. */
int att_bench_setting_open(int descriptor, struct att_bench_setting **setting, att_error_t *error);
void att_bench_setting_close(struct att_bench_setting *setting); /* NULL is fine */
int att_bench_setting_descriptor(const struct att_bench_setting *setting);
att_bench_setting_table_t *att_bench_setting_table(struct att_bench_setting *setting);
/* Put `setting` in force and clear what was noted. */
void att_bench_setting_apply(struct att_bench_setting *setting, att_setting_t value);

/* The inverse of att_setting_text: "ring/simple ch=8 chunk=128K", "keep". */
int att_bench_setting_parse(const char *text, att_setting_t *setting, att_error_t *error);

#endif
