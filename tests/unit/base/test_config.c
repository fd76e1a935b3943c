/* config: defaults, environment, flags, strict values, and the text that hands a value on. */
#include "base/config.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void clear_environment(void)
{
    for (size_t i = 0; i < att_option_row_count; i++)
        unsetenv(att_option_rows[i].variable);
}

static int start(void **state)
{
    clear_environment();
    return 0;
}

static void defaults(void **state)
{
    att_config_t c;
    att_error_t e = {""};
    assert_int_equal(att_config_init(&c, &e), ATT_OK);
    assert_string_equal(c.run_dir, "");
    assert_string_equal(c.shm_dir, "/dev/shm");
    assert_string_equal(c.strategy, "default");
    assert_int_equal(c.samples, 5);
    assert_float_equal(c.max_cost, 0.05, 1e-12);
    assert_float_equal(c.max_slowdown, 3, 1e-12);
    assert_float_equal(c.wait_ms, 1000, 1e-9);
    assert_float_equal(c.in_doubt_ms, 600000, 1e-9);
    assert_false(c.observe);
    assert_string_equal(c.fabric, "none");
    att_config_free(&c);
    att_config_free(NULL);
}

/* Every field is reached by exactly one row: no two rows share an offset, names are unique. */
static void rows_are_distinct(void **state)
{
    for (size_t i = 0; i < att_option_row_count; i++) {
        const att_option_row_t *a = &att_option_rows[i];
        assert_non_null(a->help);
        assert_non_null(a->section);
        assert_true(a->programs != 0);
        assert_true((a->type == ATT_OPTION_BOOL) == (a->argument == NULL));
        assert_true((a->type == ATT_OPTION_CHOICE) == (a->accepts != NULL));
        assert_true(strncmp(a->variable, "ATTUNE_", 7) == 0);
        for (size_t j = 0; j < i; j++) {
            const att_option_row_t *b = &att_option_rows[j];
            assert_string_not_equal(a->flag, b->flag);
            assert_int_not_equal(a->offset, b->offset);
            assert_string_not_equal(a->variable, b->variable);
        }
    }
}

static void flag_beats_variable_beats_default(void **state)
{
    att_config_t c;
    att_error_t e = {""};
    setenv("ATTUNE_SAMPLES", "7", 1);
    setenv("ATTUNE_SEED", "", 1);
    assert_int_equal(att_config_init(&c, &e), ATT_OK);
    assert_int_equal(c.samples, 7);
    assert_int_equal(c.seed, 1);
    char *argv[] = {(char *)"run",       (char *)"--samples=9", (char *)"--seed",    (char *)"42",
                    (char *)"--observe", (char *)"--",          (char *)"--samples", NULL};
    int next = 0;
    assert_int_equal(att_config_parse(&c, ATT_FOR_RUN, 7, argv, &next, &e), ATT_OK);
    assert_int_equal(next, 6);
    assert_int_equal(c.samples, 9);
    assert_int_equal(c.seed, 42);
    assert_true(c.observe);
    char *again[] = {(char *)"run", (char *)"--no-observe", (char *)"true", (char *)"--seed", NULL};
    assert_int_equal(att_config_parse(&c, ATT_FOR_RUN, 4, again, &next, &e), ATT_OK);
    assert_int_equal(next, 2);
    assert_false(c.observe);
    att_config_free(&c);
}

static void bad_variable_is_named(void **state)
{
    att_config_t c;
    att_error_t e = {""};
    setenv("ATTUNE_MAX_COST", "cheap", 1);
    assert_int_equal(att_config_init(&c, &e), -ATT_EUSAGE);
    assert_non_null(strstr(e.text, "ATTUNE_MAX_COST"));
    assert_non_null(strstr(e.text, "'cheap'"));
    assert_non_null(strstr(e.text, "1%"));
    unsetenv("ATTUNE_MAX_COST");
}

static const struct {
    const char *flag, *value;
    double number; /* expected; NAN-free: refused when good is 0 */
    int good;
} values[] = {
    {"samples", "1", 1, 1},
    {"samples", "1000", 1000, 1},
    {"samples", "0", 0, 0},
    {"samples", "1001", 0, 0},
    {"samples", "5 ", 0, 0},
    {"samples", " 5", 0, 0},
    {"samples", "5.0", 0, 0},
    {"samples", "", 0, 0},
    {"samples", "0x5", 0, 0},
    {"samples", "99999999999999999999", 0, 0},
    {"samples", "-1", 0, 0},
    {"max-cost", "1%", 0.01, 1},
    {"max-cost", "0.01", 0.01, 1},
    {"max-cost", "100%", 1, 1},
    {"max-cost", "0", 0, 1},
    {"max-cost", "1.5", 0, 0},
    {"max-cost", "101%", 0, 0},
    {"max-cost", "-1%", 0, 0},
    {"max-cost", "1 %", 0, 0},
    {"max-cost", "%", 0, 0},
    {"max-cost", "nan", 0, 0},
    {"max-cost", "inf", 0, 0},
    {"max-cost", "1%%", 0, 0},
    {"max-slowdown", "3x", 3, 1},
    {"max-slowdown", "2.5", 2.5, 1},
    {"max-slowdown", "x", 0, 0},
    {"max-slowdown", "0.5x", 0, 0},
    {"max-slowdown", "3xx", 0, 0},
    {"max-slowdown", "0x3", 0, 0},
    {"min-bytes", "64K", 65536, 1},
    {"min-bytes", "16m", 16777216, 1},
    {"min-bytes", "1G", 1073741824, 1},
    {"min-bytes", "12", 12, 1},
    {"min-bytes", "1.5M", 0, 0},
    {"min-bytes", "64KB", 0, 0},
    {"min-bytes", "-1", 0, 0},
    {"min-bytes", "inf", 0, 0},
    {"watch", "0.25", 0.25, 1},
    {"watch", "-1", 0, 0},
    {"watch", "1s", 0, 0},
    {"watch", "1e999", 0, 0},
    {"observe", "yes", 1, 1},
    {"observe", "0", 0, 1},
    {"observe", "maybe", 0, 0},
    {"log", "debug", 0, 1},
    {"log", "INFO", 0, 1},
    {"log", "war", 0, 0},
    {"log", "warn|info", 0, 0},
    {"log", "", 0, 0},
    {"objective", "step", 0, 1},
    {"objective", "steps", 0, 0},
    {"load", "windy", 0, 1}, /* any word: the surface has its own */
};

static const att_option_row_t *row_of(const char *flag)
{
    for (size_t i = 0; i < att_option_row_count; i++)
        if (strcmp(att_option_rows[i].flag, flag) == 0)
            return &att_option_rows[i];
    fail_msg("no row %s", flag);
    return NULL;
}

static double number_of(const att_config_t *c, const att_option_row_t *row)
{
    const void *field = (const char *)c + row->offset;
    switch (row->type) {
    case ATT_OPTION_INT:
    case ATT_OPTION_BYTES:
        return (double)*(const int64_t *)field;
    case ATT_OPTION_BOOL:
        return *(const bool *)field;
    case ATT_OPTION_STRING:
    case ATT_OPTION_CHOICE:
        return 0;
    default:
        return *(const double *)field;
    }
}

static void values_are_strict(void **state)
{
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        att_config_t c;
        att_error_t e = {""};
        assert_int_equal(att_config_init(&c, &e), ATT_OK);
        const att_option_row_t *row = row_of(values[i].flag);
        double before = number_of(&c, row);
        int rc = att_config_set(&c, values[i].flag, values[i].value, "--it", &e);
        if (rc != (values[i].good ? ATT_OK : -ATT_EUSAGE))
            fail_msg("--%s %s gives %d (%s)", values[i].flag, values[i].value, rc, e.text);
        assert_float_equal(number_of(&c, row), values[i].good ? values[i].number : before, 1e-12);
        if (!values[i].good) {
            assert_non_null(strstr(e.text, "--it"));
            assert_null(strchr(e.text, '\n'));
        }
        att_config_free(&c);
    }
}

static void expect_refusal(int argc, char **argv, const char *part)
{
    att_config_t c;
    att_error_t e = {""};
    int next = -7;
    assert_int_equal(att_config_init(&c, &e), ATT_OK);
    assert_int_equal(att_config_parse(&c, ATT_FOR_RUN, argc, argv, &next, &e), -ATT_EUSAGE);
    assert_int_equal(next, -7);
    if (part == NULL)
        assert_string_equal(e.text, "");
    else if (strstr(e.text, part) == NULL)
        fail_msg("'%s' is not in '%s'", part, e.text);
    att_config_free(&c);
}

#define REFUSED(part, ...)                                                                         \
    do {                                                                                           \
        const char *words[] = {"run", __VA_ARGS__, NULL};                                          \
        expect_refusal((int)(sizeof words / sizeof words[0]) - 1, (char **)(uintptr_t)words,       \
                       part);                                                                      \
    } while (0)

static void wrong_flags(void **state)
{
    REFUSED("--frobnicate", "--frobnicate");
    REFUSED("--sample", "--sample", "3");
    REFUSED("--samples needs a value", "--samples");
    REFUSED("--run-dir needs a value: DIR", "--run-dir", "--", "true");
    REFUSED("--no-samples", "--no-samples");
    REFUSED("-n", "-n", "3");
    REFUSED("--observe", "--observe=perhaps");
    REFUSED(NULL, "--help");
    REFUSED(NULL, "--seed", "2", "-h");
}

/* Whatever is set is read back the same from its text: attune hands options to attuned so. */
static void text_reads_back(void **state)
{
    static const struct {
        const char *flag, *value, *text;
    } cases[] = {{"max-cost", "0.0123", "1.23%"},
                 {"max-slowdown", "2.5", "2.5x"},
                 {"min-bytes", "65536", "64K"},
                 {"observe", "on", "yes"},
                 {"watch", "0.1", "0.1"},
                 {"watch", "0.12345678901234567", NULL},
                 {"log", "debug", "debug"},
                 {"strategy", "random:n=5,x=y", "random:n=5,x=y"},
                 {"seed", "4611686018427387905", "4611686018427387905"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        att_config_t c, d;
        att_error_t e = {""};
        char text[PATH_MAX], back[PATH_MAX];
        const att_option_row_t *row = row_of(cases[i].flag);
        assert_int_equal(att_config_init(&c, &e), ATT_OK);
        assert_int_equal(att_config_init(&d, &e), ATT_OK);
        assert_int_equal(att_config_set(&c, row->flag, cases[i].value, "x", &e), ATT_OK);
        att_config_text(&c, row, text, sizeof text);
        if (cases[i].text != NULL)
            assert_string_equal(text, cases[i].text);
        assert_int_equal(att_config_set(&d, row->flag, text, "x", &e), ATT_OK);
        assert_string_equal(att_config_text(&d, row, back, sizeof back), text);
        assert_float_equal(number_of(&c, row), number_of(&d, row), 0);
        att_config_free(&c);
        att_config_free(&d);
    }
}

static void agent_takes_its_rows(void **state)
{
    att_config_t c;
    att_error_t e = {""};
    assert_int_equal(att_config_init(&c, &e), ATT_OK);
    char *argv[] = {(char *)"attuned", (char *)"--samples=8", (char *)"--max-cost=2%", NULL};
    int next = 0;
    assert_int_equal(att_config_parse(&c, ATT_FOR_AGENT, 3, argv, &next, &e), ATT_OK);
    assert_int_equal(next, 3);
    assert_int_equal(c.samples, 8);
    char *quiet[] = {(char *)"attuned", (char *)"--quiet", NULL};
    assert_int_equal(att_config_parse(&c, ATT_FOR_AGENT, 2, quiet, &next, &e), -ATT_EUSAGE);
    att_config_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(defaults, start),
        cmocka_unit_test_setup(rows_are_distinct, start),
        cmocka_unit_test_setup(flag_beats_variable_beats_default, start),
        cmocka_unit_test_setup(bad_variable_is_named, start),
        cmocka_unit_test_setup(values_are_strict, start),
        cmocka_unit_test_setup(wrong_flags, start),
        cmocka_unit_test_setup(text_reads_back, start),
        cmocka_unit_test_setup(agent_takes_its_rows, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
