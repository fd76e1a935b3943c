/*
 * nccl: what all versions of NCCL's plugin ABI share. Declared anew; the numbers are NCCL's
 * (src/include/nccl_common.h, src/include/plugin/nccl_profiler.h, nccl_tuner.h of 2.30.7).
 */
#ifndef ATT_HOOK_ABI_NCCL_H
#define ATT_HOOK_ABI_NCCL_H

#include <stdint.h>

/* ncclResult_t */
enum { ATT_NCCL_SUCCESS = 0, ATT_NCCL_SYSTEM_ERROR = 2, ATT_NCCL_INVALID_USAGE = 5 };

/* Flags of ncclCommShrink. */
enum { ATT_NCCL_SHRINK_ABORT = 0x1 };

/* ncclDebugLogLevel and ncclDebugLogSubSys */
enum { ATT_NCCL_LOG_INFO = 3 };
enum { ATT_NCCL_SUBSYSTEM_INIT = 0x1, ATT_NCCL_SUBSYSTEM_TUNING = 0x40 };

/* ncclDebugLogger_t */
typedef void (*att_nccl_logger_fn)(int level, unsigned long subsystems, const char *file, int line,
                                   const char *format, ...);

/* Event types of the profiler, also the bits of its activation mask. */
enum {
    ATT_EVENT_COLL = 1 << 1,
    ATT_EVENT_P2P = 1 << 2,
    ATT_EVENT_KERNEL_CH = 1 << 6,
    ATT_EVENT_GROUP_API = 1 << 8,
    ATT_EVENT_COLL_API = 1 << 9
};

/* ncclProfilerEventState_t: the stop stamp of a KernelCh event comes with this state. */
enum { ATT_STATE_KERNEL_CH_STOP = 22 };

/* Sizes of the tuner's tables (NCCL_NUM_..._V5). */
enum {
    ATT_NCCL_ALGORITHMS = 7,
    ATT_NCCL_PROTOCOLS = 3,
    ATT_NCCL_HW_LINKS = 3,
    ATT_NCCL_COMPCAPS = 4,
    ATT_NCCL_TUNING_SCALES = 3
};

#endif
