/* --apply: what is read, what is refused and with which words. */
#include "control/applied.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[] = "/tmp/att-applied-XXXXXX";
static att_error_t error;

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    char path[128];
    snprintf(path, sizeof path, "%s/tasks.json", folder);
    unlink(path);
    return rmdir(folder);
}

static int read_text(const char *text, struct att_applied **applied)
{
    char path[128];
    snprintf(path, sizeof path, "%s/tasks.json", folder);
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
    error.text[0] = '\0';
    return att_applied_read(folder, applied, &error);
}

#define TASK(kept, tuned)                                                                          \
    "{\"version\":1,\"nccl_version\":23007,\"device\":\"H200, 132 units\",\"tasks\":[{"            \
    "\"collective\":\"allreduce\",\"bytes\":1024,\"ranks\":4,\"nodes\":1,\"kept_default\":" kept   \
    ",\"tuned\":{\"setting\":" tuned "}}]}"
#define RING                                                                                       \
    "{\"algorithm\":\"ring\",\"protocol\":\"ll\",\"transport\":\"keep\",\"channels\":4,"           \
    "\"threads\":0,\"chunk\":8192}"

static int find(const struct att_applied *a, uint32_t nccl, const char *device, uint64_t bytes,
                uint32_t ranks, uint32_t nodes, att_setting_t *setting)
{
    att_identity_t task = {.nccl_version = nccl,
                           .collective = ATT_COLLECTIVE_ALL_REDUCE,
                           .ranks = ranks,
                           .nodes = nodes,
                           .bytes = bytes};
    snprintf(task.device, sizeof task.device, "%s", device);
    return att_applied_find(a, &task, setting, &error);
}

static void finds_the_setting(void **state)
{
    (void)state;
    struct att_applied *a;
    assert_int_equal(read_text(TASK("false", RING), &a), ATT_OK);
    att_setting_t s;
    assert_int_equal(find(a, 23007, "H200, 132 units", 1024, 4, 1, &s), ATT_OK);
    assert_int_equal(s.algorithm, ATT_ALGORITHM_RING);
    assert_int_equal(s.protocol, ATT_PROTOCOL_LL);
    assert_int_equal(s.transport, ATT_TRANSPORT_KEEP);
    assert_int_equal(s.channels, 4);
    assert_int_equal(s.chunk_bytes, 8192);
    att_applied_free(a);
    assert_int_equal(read_text(TASK("true", "{}"), &a), ATT_OK);
    assert_int_equal(find(a, 23007, "H200, 132 units", 1024, 4, 1, &s), ATT_OK);
    assert_true(att_setting_is_keep(s));
    att_applied_free(a);
}

static void refuses_another_machine(void **state)
{
    (void)state;
    struct att_applied *a;
    assert_int_equal(read_text(TASK("false", RING), &a), ATT_OK);
    att_setting_t s;
    const char *device = "H200, 132 units";
    assert_int_equal(find(a, 22809, device, 1024, 4, 1, &s), -ATT_EMISMATCH);
    assert_non_null(strstr(error.text, "23007"));
    assert_int_equal(find(a, 23007, "A40, 84 units", 1024, 4, 1, &s), -ATT_EMISMATCH);
    assert_non_null(strstr(error.text, "A40"));
    assert_int_equal(find(a, 23007, device, 1024, 8, 1, &s), -ATT_EMISMATCH);
    assert_non_null(strstr(error.text, "8 ranks"));
    assert_int_equal(find(a, 23007, device, 2048, 4, 1, &s), -ATT_ENOENT);
    att_applied_free(a);
}

static void malformed_files_are_named(void **state)
{
    (void)state;
    struct att_applied *a;
    const char *bad[] = {"",
                         "[]",
                         "{\"version\":2}",
                         "{\"version\":1}",
                         TASK("false", "{}"),
                         "{\n\"a\": \"b\\\n{ \n\"",
                         TASK("false", "{\"algorithm\":\"rung\"}")};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_true(read_text(bad[i], &a) < 0);
        assert_non_null(strstr(error.text, "tasks.json"));
        assert_null(strchr(error.text, '\n'));
    }
    assert_true(att_applied_read("/nonexistent", &a, &error) < 0);
    assert_non_null(strstr(error.text, "/nonexistent"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_setting),
        cmocka_unit_test(refuses_another_machine),
        cmocka_unit_test(malformed_files_are_named),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
