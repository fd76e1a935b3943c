/*
 * refused option: what getopt_long(3) did not take, in the user's words.
 */
#ifndef ATT_CLI_REFUSED_OPTION_H
#define ATT_CLI_REFUSED_OPTION_H

#include "base/nearest.h"

#include <getopt.h>

#define ATT_REFUSED_OPTION 80

/* After '?' or ':' of getopt_long: "--frob", or "-x" for a letter, also one of "-xyz". Returns
 * text. */
const char *att_refused_option(char **argv, char text[ATT_REFUSED_OPTION]);
/* Of the same, the long option of that table which was meant: as att_nearest_hint. */
const char *att_refused_option_nearest(att_nearest_t *nearest, char **argv,
                                       const struct option *longs);

#endif
