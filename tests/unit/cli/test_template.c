/* Templates: values, sections, files; everything from the value is escaped; faults have their line.
 */
#include "cli/template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void write_twice(const json_t *value, char *text, size_t size)
{
    snprintf(text, size, "%s", value == NULL ? "<none>" : "");
    if (json_is_integer(value))
        snprintf(text, size, "%d", 2 * (int)json_integer_value(value));
}

static const att_template_format_t formats[] = {{"twice", write_twice}};

/* The text, or the error with "! " before it. */
static const char *rendered(const char *text, const char *partial, const char *json)
{
    static char result[4096];
    static att_out_t out;
    char path[] = "/tmp/att-template-XXXXXX";
    att_template_file_t files[] = {{"main", text, strlen(text)},
                                   {"part", partial, strlen(partial)}};
    att_template_set_t set = {files, 2, formats, 1};
    att_error_t error = {""};
    json_t *value = json_loads(json, JSON_DECODE_ANY, NULL);
    int fd = mkstemp(path);
    assert_true(fd >= 0 && value != NULL);
    close(fd);
    assert_int_equal(att_out_open(&out, path, &error), ATT_OK);
    int status = att_template_render(&set, "main", value, &out, &error);
    json_decref(value);
    if (status == ATT_OK) {
        assert_int_equal(att_out_close(&out, &error), ATT_OK);
        FILE *file = fopen(path, "r");
        result[fread(result, 1, sizeof result - 1, file)] = '\0';
        fclose(file);
    } else {
        assert_int_equal(status, -ATT_EINPUT);
        att_out_discard(&out);
        snprintf(result, sizeof result, "! %s", error.text);
    }
    unlink(path);
    return result;
}

static void values_are_found_and_escaped(void **state)
{
    assert_string_equal(
        rendered("a {{x}} {{y.z}} {{no}}.", "", "{\"x\":\"<&>\\\"'\",\"y\":{\"z\":7}}"),
        "a &lt;&amp;&gt;&quot;&#39; 7 .");
    assert_string_equal(rendered("{{t}} {{r}}", "", "{\"t\":true,\"r\":1.5}"), "yes 1.5");
    assert_string_equal(rendered("{{x|twice}} {{no|twice}}", "", "{\"x\":4}"), "8 &lt;none&gt;");
    assert_string_equal(rendered("{{x}}", "", "{\"x\":\"a\\u0001b{{x}}\"}"), "a\xef\xbf\xbd"
                                                                             "b{{x}}");
}

static void sections_repeat_and_invert(void **state)
{
    const char *json = "{\"l\":[{\"n\":1},{\"n\":2}],\"e\":[],\"z\":0,\"s\":\"x\",\"n\":9}";
    assert_string_equal(rendered("{{#l}}<{{n}}>{{/l}}", "", json), "<1><2>");
    assert_string_equal(rendered("{{#e}}no{{/e}}{{^e}}empty{{/e}}", "", json), "empty");
    assert_string_equal(rendered("{{#z}}no{{/z}}{{#s}}[{{.}} {{n}}]{{/s}}", "", json), "[x 9]");
    assert_string_equal(rendered("{{#l}}{{#l}}{{n}}{{/l}},{{/l}}", "", json), "12,12,");
    assert_string_equal(rendered("{{#l}}\n{{n}}\n{{/l}}\nend\n", "", json), "1\n2\nend\n");
}

static void files_are_put_in(void **state)
{
    assert_string_equal(rendered("{{#l}}{{>part}}{{/l}}", "({{.}})", "{\"l\":[1,2]}"), "(1)(2)");
    assert_string_equal(rendered("{{<part}}", "{{x}} <b>", "{}"), "{{x}} <b>");
    assert_string_equal(rendered("a{{! b }}c", "", "{}"), "ac");
}

static void faults_have_file_and_line(void **state)
{
    assert_string_equal(rendered("\n{{#x}}", "", "{}"),
                        "! template main, line 2: a section without its end: x");
    assert_string_equal(rendered("{{/x}}", "", "{}"),
                        "! template main, line 1: an end without its section: x");
    assert_string_equal(rendered("\n\n{{#x}}{{/y}}", "", "{}"),
                        "! template main, line 3: the section that ends here has another name: x");
    assert_string_equal(rendered("{{x", "", "{}"),
                        "! template main, line 1: a tag without its end");
    assert_string_equal(rendered("{{>none}}", "", "{}"),
                        "! template main, line 1: there is no file none");
    assert_string_equal(rendered("{{x|none}}", "", "{}"),
                        "! template main, line 1: there is no format none");
    assert_string_equal(rendered("{{>part}}", "\n{{>part}}", "{}"),
                        "! template part, line 2: files include each other: part");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_found_and_escaped),
        cmocka_unit_test(sections_repeat_and_invert),
        cmocka_unit_test(files_are_put_in),
        cmocka_unit_test(faults_have_file_and_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
