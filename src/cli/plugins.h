/*
 * plugins: `attune plugins`: the strategies that are there with their parameters, and every file
 * that was refused with its reason.
 */
#ifndef ATT_CLI_PLUGINS_H
#define ATT_CLI_PLUGINS_H

/* argv[0] is "plugins". Exit status: 0; 1 when there is no strategy at all; 2 wrong usage. */
int att_plugins_main(int argc, char **argv);

#endif
