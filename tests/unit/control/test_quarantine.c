/* --quarantine: what was in force at a bad end, from the lists that stand there. */
#include "control/quarantine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[] = "/tmp/att-quarantine-XXXXXX";
static att_error_t error;
static att_setting_t taken[16];

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static void write_file(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
}

static int remove_folder(void **state)
{
    (void)state;
    char path[128];
    snprintf(path, sizeof path, "%s/lists.jsonl", folder);
    unlink(path);
    return rmdir(folder);
}

#define HEAD "{\"version\":1,\"what\":\"proposed lists\"}\n"
#define SETTING(channels)                                                                          \
    "{\"first_call\":7,\"setting\":{\"algorithm\":\"ring\",\"protocol\":\"ll\",\"transport\":"     \
    "\"keep\",\"channels\":" channels ",\"threads\":0,\"chunk\":0}}"
#define LIST(task, txn, bytes, entries)                                                            \
    "{\"task\":" task ",\"txn\":" txn ",\"nccl_version\":23007,\"device\":\"H200, 132 "            \
    "units\",\"collective\":\"allreduce\",\"bytes\":" bytes                                        \
    ",\"ranks\":4,\"nodes\":1,\"entries\":[" entries "]}\n"
#define OVER(task, txn) "{\"task\":" task ",\"txn\":" txn ",\"over\":true}\n"

static int read_lists(const char *lists, struct att_quarantine **quarantine)
{
    write_file("lists.jsonl", lists);
    error.text[0] = '\0';
    return att_quarantine_read(folder, quarantine, &error);
}

static uint32_t find(const struct att_quarantine *q, uint32_t nccl, const char *device,
                     uint64_t bytes)
{
    att_identity_t task = {.nccl_version = nccl,
                           .collective = ATT_COLLECTIVE_ALL_REDUCE,
                           .ranks = 4,
                           .nodes = 1,
                           .bytes = bytes};
    snprintf(task.device, sizeof task.device, "%s", device);
    return att_quarantine_find(q, &task, taken, 16);
}

static void what_played_out_is_innocent(void **state)
{
    (void)state;
    struct att_quarantine *q;
    const char *lists = HEAD LIST("0", "1", "1024", SETTING("2") "," SETTING("0")) OVER("0", "1")
        LIST("1", "1", "2048", SETTING("3") "," SETTING("4") "," SETTING("9"))
            LIST("0", "2", "1024", SETTING("5") "," SETTING("0"));
    assert_int_equal(read_lists(lists, &q), ATT_OK);
    /* Of the list in force every trial, not the incumbent at its end. */
    assert_int_equal(find(q, 23007, "H200, 132 units", 2048), 2);
    assert_int_equal(taken[0].channels, 3);
    assert_int_equal(taken[1].channels, 4);
    assert_int_equal(find(q, 23007, "H200, 132 units", 1024), 1);
    assert_int_equal(taken[0].channels, 5);
    assert_int_equal(taken[0].protocol, ATT_PROTOCOL_LL);
    /* Another size, NCCL or device: nothing is known. */
    assert_int_equal(find(q, 23007, "H200, 132 units", 4096), 0);
    assert_int_equal(find(q, 22809, "H200, 132 units", 1024), 0);
    assert_int_equal(find(q, 23007, "A40, 84 units", 1024), 0);
    att_quarantine_free(q);
}

static void a_cut_off_end_is_no_error(void **state)
{
    (void)state;
    struct att_quarantine *q;
    assert_int_equal(
        read_lists(HEAD LIST("0", "1", "1024",
                             SETTING("2") "," SETTING("0")) "{\"task\":0,\"txn\":2,\"entr",
                   &q),
        ATT_OK);
    assert_int_equal(find(q, 23007, "H200, 132 units", 1024), 1);
    att_quarantine_free(q);
    assert_int_equal(read_lists("", &q), ATT_OK);
    assert_int_equal(q->count, 0);
    att_quarantine_free(q);
}

static void nonsense_is_refused_with_its_place(void **state)
{
    (void)state;
    struct att_quarantine *q = NULL;
    assert_int_equal(read_lists(HEAD "{\"task\":\"a\",\"txn\":1}\n", &q), -ATT_EINPUT);
    assert_non_null(strstr(error.text, "line 2 of lists.jsonl is malformed"));
    assert_int_equal(read_lists(HEAD "]\n", &q), -ATT_EINPUT);
    assert_int_equal(read_lists("junk\n", &q), -ATT_EINPUT);
    assert_non_null(strstr(error.text, "line 1 of lists.jsonl is malformed"));
    assert_int_equal(read_lists("{\"version\":1,\"what\":\"trials\"}\n", &q), -ATT_EINPUT);
    assert_int_equal(read_lists(HEAD LIST("3", "1", "-5", SETTING("2") "," SETTING("0")), &q),
                     -ATT_EINPUT);
    assert_non_null(strstr(error.text, "the list of task 3 in lists.jsonl is malformed"));
    assert_int_equal(read_lists(HEAD LIST("3", "1", "5", SETTING("\"x\"") "," SETTING("0")), &q),
                     -ATT_EINPUT);
    assert_int_equal(att_quarantine_read("/nowhere", &q, &error), -ATT_ESYSTEM);
    assert_non_null(strstr(error.text, "/nowhere/lists.jsonl"));
    assert_null(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_played_out_is_innocent),
        cmocka_unit_test(a_cut_off_end_is_no_error),
        cmocka_unit_test(nonsense_is_refused_with_its_place),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
