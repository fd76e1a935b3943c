/*
 * options: table, --help, man page and `attune info --json` tell the same: every option with its
 * variable, default, accepted words and help, in the same order, and nothing else.
 */
#include "base/config.h"
#include "cli/info.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *read_all(FILE *file)
{
    char *text = calloc(1, 1 << 20);
    size_t length = fread(text, 1, (1 << 20) - 1, file);
    text[length] = '\0';
    fclose(file);
    return text;
}

/* Find `part` after *at and move there; the order of the rows is the order of the text. */
static void next_part(const char **at, const char *part, const char *flag)
{
    const char *found = strstr(*at, part);
    if (found == NULL)
        fail_msg("--%s: '%s' does not follow", flag, part);
    *at = found + strlen(part);
}

static int occurrences(const char *text, const char *part)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part))
        count++;
    return count;
}

static int rows_for(uint32_t program)
{
    int count = 0;
    for (size_t i = 0; i < att_option_row_count; i++)
        count += (att_option_rows[i].programs & program) != 0;
    return count;
}

static void help_has_the_table(void **state)
{
    const uint32_t programs[] = {ATT_FOR_RUN, ATT_FOR_AGENT};
    for (int p = 0; p < 2; p++) {
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        att_config_print_help(out, programs[p]);
        fclose(out);
        const char *at = text;
        for (size_t i = 0; i < att_option_row_count; i++) {
            const att_option_row_t *row = &att_option_rows[i];
            char part[128];
            if ((row->programs & programs[p]) == 0)
                continue;
            snprintf(part, sizeof part, "  --%s%s%s", row->flag, row->argument ? " " : "",
                     row->argument ? row->argument : "");
            next_part(&at, part, row->flag);
            next_part(&at, row->help, row->flag);
            if (row->accepts != NULL)
                next_part(&at, row->accepts, row->flag);
            snprintf(part, sizeof part, "default %s;", row->fallback[0] ? row->fallback : "empty");
            next_part(&at, part, row->flag);
            next_part(&at, row->variable, row->flag);
        }
        assert_int_equal(occurrences(text, "\n  --"), rows_for(programs[p]));
        free(text);
    }
}

/* `text` with man's escapes taken out. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0';) {
        if (from[0] == '\\' && from[1] == '-') {
            *to++ = '-';
            from += 2;
        } else if (from[0] == '\\' && from[1] == 'f') {
            from += 3;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
}

static void check_man(char *text)
{
    unescape(text);
    const char *at = text;
    for (size_t i = 0; i < att_option_row_count; i++) {
        const att_option_row_t *row = &att_option_rows[i];
        char part[128];
        if ((row->programs & ATT_FOR_RUN) == 0)
            continue;
        snprintf(part, sizeof part, ".TP\n.B --%s%s%s\n", row->flag, row->argument ? " " : "",
                 row->argument ? row->argument : "");
        next_part(&at, part, row->flag);
        next_part(&at, row->help, row->flag);
        if (row->accepts != NULL)
            next_part(&at, row->accepts, row->flag);
        snprintf(part, sizeof part, "Default: %s.", row->fallback[0] ? row->fallback : "empty");
        next_part(&at, part, row->flag);
        next_part(&at, row->variable, row->flag);
    }
    assert_int_equal(occurrences(text, ".TP\n.B --"), rows_for(ATT_FOR_RUN));
}

static void man_source_has_the_table(void **state)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    att_info_man(out);
    fclose(out);
    check_man(text);
    free(text);
}

static void built_man_page_has_the_table(void **state)
{
    FILE *file = fopen(getenv("ATTUNE_TEST_MAN"), "r");
    assert_non_null(file);
    char *text = read_all(file);
    assert_null(strstr(text, "@OPTIONS@"));
    assert_non_null(strstr(text, ".SH OPTIONS"));
    check_man(text);
    free(text);
}

static void expect_text(const json_t *object, const char *key, const char *text)
{
    if (text == NULL)
        assert_true(json_is_null(json_object_get(object, key)));
    else
        assert_string_equal(json_string_value(json_object_get(object, key)), text);
}

static void info_has_the_table(void **state)
{
    att_config_t config;
    att_error_t e = {""};
    for (size_t i = 0; i < att_option_row_count; i++)
        unsetenv(att_option_rows[i].variable);
    setenv("ATTUNE_MAX_COST", "2.5%", 1);
    assert_int_equal(att_config_init(&config, &e), ATT_OK);
    json_t *root = att_info_json(&config), *options = json_object_get(root, "options");
    assert_int_equal(json_integer_value(json_object_get(root, "version")), 1);
    assert_int_equal(json_array_size(options), att_option_row_count);
    for (size_t i = 0; i < att_option_row_count; i++) {
        const att_option_row_t *row = &att_option_rows[i];
        const json_t *option = json_array_get(options, i);
        expect_text(option, "flag", row->flag);
        expect_text(option, "variable", row->variable);
        expect_text(option, "default", row->fallback);
        expect_text(option, "argument", row->argument);
        expect_text(option, "accepts", row->accepts);
        expect_text(option, "section", row->section);
        expect_text(option, "help", row->help);
        expect_text(option, "value", strcmp(row->flag, "max-cost") == 0 ? "2.5%" : row->fallback);
    }
    json_decref(root);
    att_config_free(&config);
    unsetenv("ATTUNE_MAX_COST");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_has_the_table),
        cmocka_unit_test(man_source_has_the_table),
        cmocka_unit_test(built_man_page_has_the_table),
        cmocka_unit_test(info_has_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
