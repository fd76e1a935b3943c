/*
 * library: the NCCL that called this hook. A process may hold several copies of libnccl.so, or have
 * it linked in statically: the logger that NCCL passes tells which object it is.
 */
#ifndef ATT_HOOK_LIBRARY_H
#define ATT_HOOK_LIBRARY_H

#include "hook/abi/nccl.h"

/* Address of an exported function of the NCCL that owns `logger`, else of any in the process; NULL
 * when there is none. Nothing is loaded. */
void *att_library_symbol(att_nccl_logger_fn logger, const char *name);

/* NCCL_VERSION_CODE of that NCCL, 0 unknown. */
uint32_t att_library_version(att_nccl_logger_fn logger);

#endif
