#include "body.h"
static const att_parameter_t parameters[] = {
    {"steps", ATT_PARAMETER_INT, 0, "1", NULL, "one"},
    {"steps", ATT_PARAMETER_INT, 0, "2", NULL, "the same name again"}};
ATT_STRATEGY_EXPORT const att_strategy_t attune_strategy = {
    BODY("bad_twice"), .parameters = parameters, .parameter_count = 2};
