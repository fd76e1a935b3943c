#include "control/pinning.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static int parse(const char *text, att_pinned_task_t *tasks, uint32_t *count, att_error_t *error)
{
    return att_pinning_parse(text, strlen(text), tasks, 2, count, error);
}

static void tasks_are_read(void **state)
{
    att_pinned_task_t tasks[2];
    uint32_t count = 9;
    assert_int_equal(parse("", tasks, &count, NULL), ATT_OK);
    assert_int_equal(count, 0);
    assert_int_equal(parse("0x1f allreduce 4096\n\n0x2 allgather 8", tasks, &count, NULL), ATT_OK);
    assert_int_equal(count, 2);
    att_pinning_t pinning = {0};
    att_pinning_clear(&pinning);
    assert_int_equal(pinning.version, 0); /* nothing has changed */
    assert_false(att_pinning_has(&pinning, 2, 2, 8));
    att_pinned_task_t *copy = malloc(sizeof tasks);
    assert_non_null(copy);
    memcpy(copy, tasks, sizeof tasks);
    att_pinning_set(&pinning, copy, count);
    assert_int_equal(pinning.version, 1);
    assert_true(att_pinning_has(&pinning, 0x1f, 4, 4096));
    assert_true(att_pinning_has(&pinning, 2, 2, 8));
    assert_false(att_pinning_has(&pinning, 2, 4, 8));
    assert_false(att_pinning_has(&pinning, 2, 2, 9));
    assert_false(att_pinning_has(&pinning, 3, 2, 8));
    att_pinning_clear(&pinning);
    assert_int_equal(pinning.version, 2);
    assert_false(att_pinning_has(&pinning, 2, 2, 8));
}

/* `attune pin RUN all` in a job of many nodes. */
static void many_tasks_are_followed(void **state)
{
    (void)state;
    char folder[] = "/tmp/att-pinning-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/pinned", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 20000; i++)
        fprintf(file, "0x%x allreduce %d\n", 40000 - i, 4096 + i % 7);
    fclose(file);
    assert_int_equal(chmod(path, 0600), 0);
    att_pinning_t pinning = {0};
    att_pinning_step(&pinning, folder, 1000000000);
    assert_int_equal(pinning.count, 20000);
    for (int i = 0; i < 20000; i++) {
        assert_true(att_pinning_has(&pinning, (uint64_t)(40000 - i), 4, (uint64_t)(4096 + i % 7)));
        assert_false(att_pinning_has(&pinning, (uint64_t)(40000 - i), 4, 4096 + 7));
    }
    unlink(path);
    att_pinning_step(&pinning, folder, 2000000000);
    assert_int_equal(pinning.count, 0);
    assert_int_equal(rmdir(folder), 0);
}

static void what_is_wrong_is_named_by_its_line(void **state)
{
    static const struct {
        const char *text, *message;
    } vectors[] = {
        {"0x1 allreduce", "line 1"},
        {"0x1 allreduce 8\n1f allreduce 8\n", "line 2"},
        {"0x1 alltoall 8\n", "line 1"},
        {"0x1 allreduce 8 9\n", "line 1"},
        {"0x1 reduce 8\n0x1 reduce 9\n0x1 reduce 10\n", "too many"},
        {"0x1 reduce                                                            8\n", "longer"},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        att_pinned_task_t tasks[2];
        uint32_t count = 7;
        att_error_t error = {""};
        assert_int_equal(parse(vectors[i].text, tasks, &count, &error), -ATT_EINPUT);
        assert_non_null(strstr(error.text, vectors[i].message));
        assert_int_equal(count, 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_are_read),
        cmocka_unit_test(many_tasks_are_followed),
        cmocka_unit_test(what_is_wrong_is_named_by_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
