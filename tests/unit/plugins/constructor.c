/* constructor: misbehaves while it is loaded, as ATT_TEST_CONSTRUCTOR says; else as the
 * well-behaved one. */
#include "../misbehave.h"
#include "body.h"

__attribute__((constructor)) static void be_loaded(void)
{
    const char *how = getenv("ATT_TEST_CONSTRUCTOR");
    if (how != NULL)
        misbehave(how);
}

ATT_STRATEGY_EXPORT const att_strategy_t attune_strategy = {BODY("constructor")};
