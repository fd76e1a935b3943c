#include "body.h"
static const att_parameter_t parameters[] = {
    {"mode", ATT_PARAMETER_CHOICE, 0, "a", NULL, "a choice without choices"}};
ATT_STRATEGY_EXPORT const att_strategy_t attune_strategy = {
    BODY("bad_choice"), .parameters = parameters, .parameter_count = 1};
