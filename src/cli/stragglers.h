/*
 * stragglers: `attune stragglers RUN`: which ranks arrive late at collectives, since when, how
 * often, and what that costs; by rank, node and communicator.
 */
#ifndef ATT_CLI_STRAGGLERS_H
#define ATT_CLI_STRAGGLERS_H

/* argv[0] is "stragglers". Exit status: 0 whether or not somebody is named; else the
 * att_status_t of the error, whose line was said. */
int att_stragglers_main(int argc, char **argv);

#endif
