/* constructor: misbehaves while it is loaded, as ATT_TEST_CONSTRUCTOR says; else as the
 * well-behaved one. */
#include "body.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((constructor)) static void misbehave(void)
{
    const char *how = getenv("ATT_TEST_CONSTRUCTOR");
    if (how == NULL)
        return;
    if (strcmp(how, "crash") == 0)
        abort();
    if (strcmp(how, "hang") == 0)
        for (;;)
            pause();
    if (strcmp(how, "leave") == 0)
        exit(0);
}

ATT_STRATEGY_EXPORT const att_strategy_t attune_strategy = {BODY("constructor")};
