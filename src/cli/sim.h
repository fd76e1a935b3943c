/*
 * sim: `attune sim`: strategies against each other on recorded and modelled surfaces, without a
 * machine, through the optimizer that the sidecar uses.
 */
#ifndef ATT_CLI_SIM_H
#define ATT_CLI_SIM_H

int att_sim_main(int argc, char **argv);

#endif
