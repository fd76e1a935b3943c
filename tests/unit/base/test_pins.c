/* Which NCCL variables ask for the policy that no tuner lets NCCL follow. */
#include "base/pins.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

typedef struct given {
    const char *policy, *algorithm, *protocol;
} given_t;

static const char *variable(const void *context, const char *name)
{
    const given_t *given = context;
    return strcmp(name, "NCCL_CTA_POLICY") == 0 ? given->policy
           : strcmp(name, "NCCL_ALGO") == 0     ? given->algorithm
           : strcmp(name, "NCCL_PROTO") == 0    ? given->protocol
                                                : NULL;
}

static bool asks(const char *policy, int configured)
{
    given_t given = {.policy = policy};
    return att_pins_efficiency(variable, &given, configured);
}

static void the_policy_efficiency(void **state)
{
    (void)state;
    assert_false(asks(NULL, 0));
    assert_true(asks(NULL, 1));
    assert_false(asks(NULL, 2));
    assert_false(asks(NULL, 3)); /* ZERO wins */
    assert_true(asks("1", 0));
    assert_true(asks("EFFICIENCY", 0));
    assert_true(asks("default|efficiency", 0));
    assert_false(asks("EFFICIENCY|ZERO", 0));
    assert_false(asks("0", 1)); /* the variable wins over the configuration */
    assert_false(asks("DEFAULT", 1));
    assert_false(asks("2", 1));
    /* What NCCL does not know it leaves out. */
    assert_true(asks("7", 1));
    assert_true(asks("EFFICIENT", 1));
    assert_false(asks("EFFICIENCYX", 0));
    assert_false(asks("", 0));
    assert_true(asks("|nonsense||EFFICIENCY", 0));
}

/* Then NCCL's choice is the user's, with a tuner and without. */
static void a_forced_algorithm_leaves_no_choice(void **state)
{
    (void)state;
    given_t algorithm = {.policy = "1", .algorithm = "RING"}, protocol = {"1", NULL, "LL"};
    assert_false(att_pins_efficiency(variable, &algorithm, 1));
    assert_false(att_pins_efficiency(variable, &protocol, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_policy_efficiency),
        cmocka_unit_test(a_forced_algorithm_leaves_no_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
