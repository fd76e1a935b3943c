#include "body.h"
static const att_parameter_t parameters[] = {
    {"steps", ATT_PARAMETER_INT, 0, "many", NULL, "a default that is no integer"}};
ATT_STRATEGY_EXPORT const att_strategy_t attune_strategy = {
    BODY("bad_default"), .parameters = parameters, .parameter_count = 1};
