/*
 * helper: the thread that serves the home words of this process's groups to ranks of other nodes.
 *
 * One a process, started when the process gets a rank 0 of a group over several nodes; it ends with
 * the process. It sleeps in poll() and calls neither NCCL nor CUDA nor MPI; every signal is masked,
 * its stack is small, a forked child has neither the thread nor its socket. So a home word can be
 * resolved while the sidecar is dead and the application's threads are blocked.
 *
 * Connections are bounded in number and time; what is malformed or has the wrong key is closed
 * without a word.
 */
#ifndef ATT_HOOK_HELPER_H
#define ATT_HOOK_HELPER_H

#include "base/segment.h"

#define ATT_HELPER_CONNECTIONS 64
#define ATT_HELPER_IDLE_MS     5000 /* a connection that sends nothing whole for so long is closed */

/* Start it unless it runs, and publish its address in the process's entry of the segment. Not from
 * several threads at once. -ATT_ESYSTEM with a line in the log: groups over several nodes whose
 * rank 0 is here are then not tuned. */
int att_helper_start(att_segment_memory_t *memory, att_segment_process_t *process);
/* In a forked child: let go of the socket. Async-signal-safe. */
void att_helper_forget(void);

#endif
