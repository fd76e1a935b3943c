/* variables: what of an environment is a misspelt variable of attune, and what was meant. */
#include "base/config.h"
#include "base/variables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static char told[4096];

static void tell(void *context, const char *name, const char *hint)
{
    size_t used = strlen(told);
    snprintf(told + used, sizeof told - used, "%s%s\n", name, hint);
}

static const char *unknown(const char *variable)
{
    const char *const environment[] = {variable, NULL};
    told[0] = '\0';
    size_t count = att_variables_unknown(environment, tell, NULL);
    assert_int_equal(count, told[0] != '\0');
    return told;
}

static void known_ones_are_not_told(void **state)
{
    for (size_t i = 0; i < att_option_row_count; i++) {
        char variable[100];
        snprintf(variable, sizeof variable, "%s=x", att_option_rows[i].variable);
        assert_string_equal(unknown(variable), "");
    }
    const char *const environment[] = {"ATTUNE_DISABLE=1",
                                       "ATTUNE_FABRIC_NOISE=0.1",
                                       "ATTUNE_TEST_ANYTHING=1",
                                       "ATTUNE_BENCH_ANYTHING=1",
                                       "ATTUNE_BUILD=x",
                                       "ATTUNE_ROOT=/opt/attune",
                                       "ATTUNED=x",
                                       "MY_ATTUNE_STRATEGI=x",
                                       "PATH=/bin",
                                       "ATTUNE_STRATEGI=",
                                       "ATTUNE_STRATEGI",
                                       NULL};
    assert_int_equal(att_variables_unknown(environment, tell, NULL), 0);
}

static void others_are_told_with_what_was_meant(void **state)
{
    assert_string_equal(unknown("ATTUNE_STRATEGI=random"),
                        "ATTUNE_STRATEGI (did you mean 'ATTUNE_STRATEGY'?)\n");
    assert_string_equal(unknown("ATTUNE_FABRIC_NOSE=0"),
                        "ATTUNE_FABRIC_NOSE (did you mean 'ATTUNE_FABRIC_NOISE'?)\n");
    assert_string_equal(unknown("ATTUNE_MAX-COST=1%"),
                        "ATTUNE_MAX-COST (did you mean 'ATTUNE_MAX_COST'?)\n");
    /* The flag's name. */
    assert_string_equal(unknown("ATTUNE_FABRIC=model"),
                        "ATTUNE_FABRIC (did you mean 'ATTUNE_FABRIC_MODE'?)\n");
    assert_string_equal(unknown("ATTUNE_LOAD=light"),
                        "ATTUNE_LOAD (did you mean 'ATTUNE_FABRIC_LOAD'?)\n");
    /* Only what is behind the prefix is compared. */
    assert_string_equal(unknown("ATTUNE_X=1"), "ATTUNE_X\n");
    assert_string_equal(unknown("ATTUNE_=1"), "ATTUNE_\n");
    const char *const several[] = {"ATTUNE_SEDE=1", "HOME=/", "ATTUNE_FROBNICATE=1", NULL};
    told[0] = '\0';
    assert_int_equal(att_variables_unknown(several, tell, NULL), 2);
    assert_string_equal(told, "ATTUNE_SEDE (did you mean 'ATTUNE_SEED'?)\nATTUNE_FROBNICATE\n");
}

static void long_names_are_cut(void **state)
{
    char variable[300] = "ATTUNE_";
    memset(variable + 7, 'X', 200);
    strcpy(variable + 207, "=1");
    unknown(variable);
    assert_int_equal(strlen(told), 81);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_ones_are_not_told),
        cmocka_unit_test(others_are_told_with_what_was_meant),
        cmocka_unit_test(long_names_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
