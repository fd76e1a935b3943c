/*
 * options: "NAME[:key=value,...]" as the user writes it, checked against a strategy's parameters.
 */
#ifndef ATT_SEARCH_OPTIONS_H
#define ATT_SEARCH_OPTIONS_H

#include "attune/strategy.h"
#include "base/status.h"

struct att_option_set;

/* Copy the NAME of a spec. -ATT_EUSAGE when it is empty, too long or not [a-z0-9_]+. */
int att_spec_name(const char *spec, char *name, unsigned size, att_error_t *error);

/* Parse the part behind NAME: defaults first, then the user's values. -ATT_EUSAGE with one line
 * that names the parameter, the value and what is accepted. */
int att_option_set_parse(const att_strategy_t *strategy, const char *spec, uint64_t seed,
                         struct att_option_set **set, att_error_t *error);
const att_options_t *att_option_set_view(const struct att_option_set *set);
void att_option_set_free(struct att_option_set *set); /* NULL is fine */

/* Parse one value; used for defaults too. value->text is not touched. */
int att_option_parse(const att_parameter_t *parameter, const char *text, att_option_t *value,
                     att_error_t *error);
/* "integer", "number", "0 or 1", "one of a|b", "text"; returns text. */
const char *att_parameter_accepts(const att_parameter_t *parameter, char *text, unsigned size);

#endif
