/* surfaces: `attune surfaces`, see attune-surfaces(1). */
#ifndef ATT_CLI_SURFACES_H
#define ATT_CLI_SURFACES_H

int att_surfaces_main(int argc, char **argv);

#endif
