/*
 * trace request: `attune trace start|stop RUN`: tells the sidecar of a running job to record, and
 * waits until its agents say that they do (control/tracer.h has the other side).
 */
#ifndef ATT_CLI_TRACE_REQUEST_H
#define ATT_CLI_TRACE_REQUEST_H

#include "base/status.h"

/* mode as --trace takes it; "off" to stop. -ATT_ETIMEOUT: no agent has answered. */
int att_trace_request(const char *run, const char *mode, att_error_t *error);

#endif
