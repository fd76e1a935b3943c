/*
 * trace: `attune trace RUN`: what was recorded of a run, as Chrome JSON, CSV or JSON lines, or told
 * in a few lines; `attune trace start|stop RUN` for a running job.
 */
#ifndef ATT_CLI_TRACE_H
#define ATT_CLI_TRACE_H

/* argv[0] is "trace". Exit status: 0, or the att_status_t of the error, whose line was said. */
int att_trace_main(int argc, char **argv);

#endif
