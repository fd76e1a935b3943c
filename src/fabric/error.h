/*
 * error: what went wrong, for ncclGetLastError and NCCL_DEBUG, and the logger that plugins get.
 */
#ifndef ATT_FABRIC_ERROR_H
#define ATT_FABRIC_ERROR_H

#include "fabric/nccl_abi.h"

/* Remember the text for ncclGetLastError, print it as an error once, and return `result`. */
ncclResult_t att_fabric_error(ncclResult_t result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Text of the last error of this process, "" if none. Valid until the thread asks again. */
const char *att_fabric_last_error(void);
/* ncclDebugLogger_t: prints to standard error when NCCL_DEBUG allows it. */
void att_fabric_logger(int level, unsigned long flags, const char *file, int line,
                       const char *format, ...);
/* An INFO line of the fabric itself. */
void att_fabric_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
