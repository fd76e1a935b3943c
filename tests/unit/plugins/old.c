/* old: built against a header whose struct ended before the op check; what lies behind it is not
 * an op. */
#include "body.h"

static int no_op(const att_options_t *options, char *why, size_t size)
{
    (void)options, (void)why, (void)size;
    abort();
}

ATT_STRATEGY_EXPORT const att_strategy_t attune_strategy = {
    BODY("old"), .size = offsetof(att_strategy_t, check), .check = no_op};
