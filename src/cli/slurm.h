/* slurm: `attune slurm`, the command lines that start a job with attune on the Slurm found here. */
#ifndef ATT_CLI_SLURM_H
#define ATT_CLI_SLURM_H

/* Exit status: 0; 2 wrong usage; else what is missing (status.h). */
int att_slurm_main(int argc, char **argv);

#endif
