/*
 * run: `attune run [options] -- command...`: starts the sidecar on this node, gives the command
 * what the hook needs, runs it, stops the sidecar, and leaves the run folder.
 */
#ifndef ATT_CLI_RUN_H
#define ATT_CLI_RUN_H

/* attune failed before it started the command. */
#define ATT_RUN_FAILED 125

/* argv[0] is "run". Returns the command's exit status, 128+n when signal n ended it, 126 or 127
 * when it could not be run, ATT_RUN_FAILED. */
int att_run_main(int argc, char **argv);

#endif
