/* one line: control characters are shown, and a text that is cut is cut between characters. */
#include "base/one_line.h"

#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void control_characters_are_shown(void **state)
{
    char line[64];
    assert_string_equal(att_one_line("plain \xc3\xa9 \\n", line, sizeof line),
                        "plain \xc3\xa9 \\n");
    assert_string_equal(att_one_line("a\nb\tc\rd", line, sizeof line), "a\\nb\\tc\\rd");
    assert_string_equal(att_one_line("\x1b[2J\x01\x7f", line, sizeof line), "\\x1b[2J\\x01\\x7f");
    assert_string_equal(att_one_line("", line, sizeof line), "");
}

static void nothing_is_shown_in_part(void **state)
{
    char line[6];
    assert_string_equal(att_one_line("ab\ncd", line, sizeof line), "ab\\nc");
    assert_string_equal(att_one_line("abcd\n", line, sizeof line), "abcd");
    assert_string_equal(att_one_line("ab\x1b", line, sizeof line), "ab");
    assert_string_equal(att_one_line("abc", line, 1), "");
}

static void a_message_of_the_log_is_one_line(void **state)
{
    char path[] = "/tmp/att-one-line-XXXXXX", text[4096] = "", name[2000];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(att_log_set_file(path), 0);
    memset(name, '\n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    att_log(ATT_LOG_ERROR, "no folder %s here", "x\ny");
    att_log(ATT_LOG_ERROR, "%s", name);
    att_log_set_file(NULL);
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    unlink(path);
    assert_true(length > 0 && length < 2200);
    char *end = strchr(text, '\n');
    assert_non_null(end);
    *end = '\0';
    assert_non_null(strstr(text, " attune: error: no folder x\\ny here"));
    assert_ptr_equal(strchr(end + 1, '\n'), text + length - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_characters_are_shown),
        cmocka_unit_test(nothing_is_shown_in_part),
        cmocka_unit_test(a_message_of_the_log_is_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
