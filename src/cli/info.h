/*
 * info: `attune info`: version, ABI versions, where things lie, and every option with its variable,
 * default and value here and now; and the OPTIONS section of attune-run(1).
 */
#ifndef ATT_CLI_INFO_H
#define ATT_CLI_INFO_H

#include "base/config.h"

#include <jansson.h>
#include <stdio.h>

/* argv[0] is "info". Exit status: 0; 2 wrong usage or a variable that does not parse. */
int att_info_main(int argc, char **argv);

/* {"version","attune","abi":{},"paths":{},"options":[...]}; the caller owns it. NULL: no memory. */
json_t *att_info_json(const att_config_t *config);
/* The options of `attune run` as man(7) source, section by section. */
void att_info_man(FILE *out);

#endif
