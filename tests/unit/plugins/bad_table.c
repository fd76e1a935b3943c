#include "body.h"
ATT_STRATEGY_EXPORT const att_strategy_t attune_strategy = {BODY("bad_table"),
                                                            .parameter_count = 2};
