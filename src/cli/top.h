/*
 * top: `attune top [RUN]`: a live view of a run's groups and tasks: bandwidth now, with NCCL's own
 * choice and with the best setting, trials, coverage, late ranks. Reads tasks.json of the run
 * folder; on another node of a shared file system too.
 */
#ifndef ATT_CLI_TOP_H
#define ATT_CLI_TOP_H

/* argv[0] is "top". Exit status: 0 the run has finished, or the user has seen enough; 128+n when
 * signal n ended it; else the att_status_t of the error, whose line was said. */
int att_top_main(int argc, char **argv);

#endif
