/* attune knobs: print the catalogue of knobs (search/knobs.h), and check one combination. */
#ifndef ATT_CLI_KNOBS_H
#define ATT_CLI_KNOBS_H

int att_knobs_main(int argc, char **argv);

#endif
