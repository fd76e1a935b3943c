/* Settings as words. */
#include "base/names.h"
#include "cli/bench_setting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_parsing_is_the_inverse_of_the_text(void **state)
{
    static const char *const texts[] = {"keep", "ring/simple", "tree/ll128 ch=24",
                                        "nvls/simple ch=16 chunk=128K", "ring/ll chunk=1920"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        att_setting_t setting;
        char text[ATT_SETTING_TEXT];
        assert_int_equal(att_bench_setting_parse(texts[i], &setting, NULL), 0);
        assert_string_equal(att_setting_text(setting, text, sizeof text), texts[i]);
    }
    att_setting_t setting;
    assert_int_equal(att_bench_setting_parse("RING/Simple  ch=8", &setting, NULL), 0);
    assert_int_equal(setting.channels, 8);
    /* Resources alone, with NCCL's own algorithm. */
    assert_int_equal(att_bench_setting_parse("ch=4 chunk=64K", &setting, NULL), 0);
    assert_int_equal(setting.algorithm, ATT_ALGORITHM_KEEP);
    assert_int_equal(setting.chunk_bytes, 65536);
}

static void test_nonsense_is_refused_with_the_word(void **state)
{
    static const char *const texts[] = {"",
                                        "ring",
                                        "ring/simple/x",
                                        "ring/blue",
                                        "ring/ll ch",
                                        "ring/ll ch=0",
                                        "ring/ll ch=65",
                                        "keep keep",
                                        "ring/ll thr=64",
                                        "ring/ll chunk=1",
                                        "ring/keep"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        att_setting_t setting = {.channels = 77};
        att_error_t error = {""};
        assert_int_equal(att_bench_setting_parse(texts[i], &setting, &error), -ATT_EUSAGE);
        assert_true(strlen(error.text) > 0);
        assert_int_equal(setting.channels, 77);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parsing_is_the_inverse_of_the_text),
        cmocka_unit_test(test_nonsense_is_refused_with_the_word),
    };
    return cmocka_run_group_tests_name("cli_bench_setting", tests, NULL, NULL);
}
