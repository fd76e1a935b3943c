#include "body.h"
ATT_STRATEGY_EXPORT const att_strategy_t attune_strategy = {BODY("bad_size"), .size = 40};
