#include "base/names.h"
#include "base/nearest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *const words[] = {"run",    "report", "record",       "--strategy", "--samples",
                                    "--seed", "ll",     "PAPI_TOT_CYC", NULL};

static void expect(const char *word, const char *meant)
{
    att_nearest_t nearest;
    att_nearest_of(&nearest, word, words);
    assert_string_equal(nearest.best, meant);
    if (meant[0] == '\0')
        assert_string_equal(nearest.hint, "");
}

static void test_edits(void **state)
{
    expect("reprot", "report");  /* swapped */
    expect("reports", "report"); /* one too many */
    expect("reprt", "report");   /* one missing */
    expect("rebort", "report");  /* another one */
    expect("recrd", "record");   /* the nearer of two */
    expect("rnu", "run");        /* a short word: one edit */
    expect("rnx", "");           /* a short word: not two */
    expect("ll1", "ll");
    expect("lx", ""); /* of two letters nothing would be left */
    expect("rexoxx", "");
    expect("", "");
    expect("frobnicate", "");
}

static void test_options(void **state)
{
    expect("--strategi", "--strategy");
    expect("--strategi=random", "--strategy");
    expect("--sed", "--seed");
    expect("--sample", "--samples");
    expect("--x", "");
    expect("-x", "");
    expect("--", "");
}

static void test_case_and_underscores(void **state)
{
    expect("papi_tot_cyc", "PAPI_TOT_CYC");
    expect("PAPI-TOT-CYC", "PAPI_TOT_CYC");
    expect("Run", "run");
}

static void test_known_word_means_itself(void **state)
{
    att_nearest_t nearest;
    const char *const before[] = {"reports", "report", "repor", NULL};
    expect("report", "");
    assert_string_equal(att_nearest_of(&nearest, "report", before), "");
}

static void test_long_words(void **state)
{
    att_nearest_t nearest;
    char word[200];
    memset(word, 'a', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    const char *const known[] = {word, word + 199 - 63, word + 199 - 64, NULL};
    assert_string_equal(att_nearest_of(&nearest, word, known), "");
    att_nearest_of(&nearest, word + 199 - 62, known);
    assert_string_equal(nearest.best, word + 199 - 63);
}

static void test_hint(void **state)
{
    att_nearest_t nearest;
    assert_string_equal(att_nearest_of(&nearest, "rnu", words), " (did you mean 'run'?)");
    assert_string_equal(att_nearest_choice(&nearest, "warm", "error|warn|info"),
                        " (did you mean 'warn'?)");
    assert_string_equal(att_nearest_choice(&nearest, "inof", "error|warn|info"),
                        " (did you mean 'info'?)");
    assert_string_equal(att_nearest_choice(&nearest, "loud", "error|warn|info"), "");
    assert_string_equal(att_nearest_choice(&nearest, "x", ""), "");
}

static void test_names(void **state)
{
    att_nearest_t nearest;
    assert_string_equal(att_collective_nearest(&nearest, "AllRedcue"),
                        " (did you mean 'allreduce'?)");
    assert_string_equal(att_algorithm_nearest(&nearest, "rign"), " (did you mean 'ring'?)");
    assert_string_equal(att_protocol_nearest(&nearest, "simpel"), " (did you mean 'simple'?)");
    assert_string_equal(att_transport_nearest(&nearest, "p2"), " (did you mean 'p2p'?)");
    assert_string_equal(att_transport_nearest(&nearest, "carrier pigeon"), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edits),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_case_and_underscores),
        cmocka_unit_test(test_known_word_means_itself),
        cmocka_unit_test(test_long_words),
        cmocka_unit_test(test_hint),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
