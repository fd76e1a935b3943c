/* Segments that somebody prepared: foreign or shared files, short ones, impossible counts. */
#include "base/fence.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char directory[] = "/tmp/att-hostile-XXXXXX";
static const att_segment_name_t name = {directory, "run1", NULL};
static char path[256];
static pid_t holder;
static int held[2];

static int make_directory(void **state)
{
    (void)state;
    return mkdtemp(directory) == NULL || att_segment_path(&name, path, sizeof path, NULL) != ATT_OK;
}

static int remove_directory(void **state)
{
    (void)state;
    return rmdir(directory);
}

/* A process of this run that holds the segment open until let_go(). */
static void hold(void)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready) | pipe(held), 0);
    holder = fork();
    if (holder == 0) {
        struct att_segment *segment;
        close(held[1]);
        if (att_segment_open(&name, ATT_SEGMENT_HOOK, &segment, NULL) != ATT_OK ||
            write(ready[1], "+", 1) != 1)
            _exit(1);
        while (read(held[0], &byte, 1) > 0)
            continue;
        _exit(0);
    }
    close(held[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
}

static void let_go(void)
{
    close(held[1]);
    assert_int_equal(waitpid(holder, NULL, 0), holder);
    unlink(path);
}

static void expect_refused(int status, const char *words)
{
    struct att_segment *segment;
    att_error_t error = {""};
    assert_int_equal(att_segment_open(&name, ATT_SEGMENT_HOOK, &segment, &error), status);
    if (strstr(error.text, words) == NULL)
        fail_msg("'%s' does not say '%s'", error.text, words);
    assert_null(strchr(error.text, '\n'));
}

static void a_symbolic_link_is_refused(void **state)
{
    (void)state;
    char target[300];
    snprintf(target, sizeof target, "%s/target", directory);
    FILE *file = fopen(target, "w");
    fputs("keep me", file);
    fclose(file);
    assert_int_equal(symlink(target, path), 0);
    struct att_segment *segment;
    att_error_t error = {""};
    assert_int_not_equal(att_segment_open(&name, ATT_SEGMENT_AGENT, &segment, &error), ATT_OK);
    struct stat st;
    assert_int_equal(stat(target, &st), 0);
    assert_int_equal(st.st_size, 7);
    unlink(path);
    unlink(target);
}

static void a_file_that_others_may_open_is_refused(void **state)
{
    (void)state;
    hold();
    assert_int_equal(chmod(path, 0660), 0);
    expect_refused(-ATT_EPERMISSION, "0660");
    assert_int_equal(chmod(path, 0604), 0);
    expect_refused(-ATT_EPERMISSION, "0604");
    let_go();
}

static void a_file_with_two_names_is_refused(void **state)
{
    (void)state;
    char other[300];
    snprintf(other, sizeof other, "%s/other", directory);
    hold();
    assert_int_equal(link(path, other), 0);
    expect_refused(-ATT_EPERMISSION, "names");
    unlink(other);
    let_go();
}

static void a_file_of_another_user_is_refused(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("skip: only root can give a file away\n");
        skip();
    }
    hold();
    assert_int_equal(chown(path, 12345, 12345), 0);
    expect_refused(-ATT_EPERMISSION, "another user");
    let_go();
}

static void no_ordinary_file_is_refused(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_refused(-ATT_EPERMISSION, "no ordinary file");
    unlink(path);
}

/* Mapped beyond its end, a file gives SIGBUS in the training process. */
static void a_short_file_is_refused(void **state)
{
    (void)state;
    hold();
    assert_int_equal(truncate(path, sizeof(att_segment_header_t) + 100), 0);
    expect_refused(-ATT_EVERSION, "bytes");
    let_go();
}

static void sweep_leaves_foreign_files(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("skip: only root can give a file away\n");
        skip();
    }
    int fd = open(path, O_CREAT | O_RDWR, 0666);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(chown(path, 12345, 12345), 0);
    assert_int_equal(att_segment_sweep(directory), 0);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(chown(path, 0, 0), 0);
    assert_int_equal(chmod(path, 0644), 0); /* no segment of ours */
    assert_int_equal(att_segment_sweep(directory), 0);
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(att_segment_sweep(directory), 1);
}

/* --- contents: the memory ends where the segment ends, so that a step beyond it is a crash --- */

static att_segment_memory_t *memory;
static char *mapping;
static size_t mapped;

static int map_memory(void **state)
{
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t pages = (sizeof *memory + page - 1) / page;
    mapped = (pages + 1) * page;
    mapping = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED || mprotect(mapping + pages * page, page, PROT_NONE) != 0)
        return 1;
    memory = (att_segment_memory_t *)(void *)mapping;
    return 0;
}

static int unmap_memory(void **state)
{
    (void)state;
    return munmap(mapping, mapped);
}

static const float costs[ATT_PAIR_COUNT];

static void impossible_counts_do_not_lead_outside(void **state)
{
    (void)state;
    att_segment_header_t *header = &memory->header;
    uint32_t group = att_segment_group(memory, 7, 2, 1);
    uint32_t member = att_segment_add_member(memory, group, 0, 0);
    uint32_t task = att_segment_task(memory, group, 0, 64, 1, costs);
    /* Readers of a full table wait for entries that stay unfinished: finish them. */
    for (uint32_t i = 0; i < ATT_GROUPS; i++)
        atomic_store(&memory->groups[i].state, ATT_ENTRY_RETIRED);
    for (uint32_t i = 0; i < ATT_TASKS; i++)
        atomic_store(&memory->tasks[i].state, ATT_ENTRY_RETIRED);
    atomic_store(&header->process_count, UINT32_MAX);
    atomic_store(&header->group_count, UINT32_MAX);
    atomic_store(&header->member_count, UINT32_MAX);
    atomic_store(&header->task_count, UINT32_MAX);
    atomic_store(&header->lane_count, UINT32_MAX);
    assert_int_equal(att_segment_add_process(memory, "x"), ATT_NONE);
    assert_int_equal(att_segment_group(memory, 8, 2, 1), ATT_NONE);
    assert_int_equal(att_segment_add_member(memory, group, 1, 0), ATT_NONE);
    assert_int_equal(att_segment_task(memory, group, 1, 64, 1, costs), ATT_NONE);
    assert_int_equal(att_segment_add_lane(memory, task, member), ATT_NONE);
    att_segment_publish_member(memory, member);
}

/* Waiting 200 ms for each of them would be seven minutes inside of a training call. */
static void unfinished_entries_cost_patience_once(void **state)
{
    (void)state;
    uint32_t group = att_segment_group(memory, 7, 2, 1);
    atomic_store(&memory->header.task_count, ATT_TASKS);
    atomic_store(&memory->header.group_count, ATT_GROUPS);
    assert_int_equal(att_segment_task(memory, group, 0, 64, 1, costs), ATT_NONE);
    assert_int_equal(att_segment_group(memory, 8, 2, 1), ATT_NONE);
}

/* A list that was agreed and then damaged: the rank must not run beyond it, nor fall back alone. */
static void a_damaged_list_fails_its_calls(void **state)
{
    (void)state;
    uint32_t group = att_segment_group(memory, 7, 2, 1);
    uint32_t member = att_segment_add_member(memory, group, 0, 0);
    uint32_t index = att_segment_task(memory, group, 0, 64, 1, costs);
    uint32_t lane = att_segment_add_lane(memory, index, member);
    att_segment_task_t *task = &memory->tasks[index];
    att_lane_t mine;
    att_lane_init(&mine, memory, lane, 0);
    att_schedule_t schedule = {.txn = 1, .count = 2, .entries = {{1, ATT_SETTING_KEEP}}};
    schedule.entries[1] = (att_schedule_entry_t){2, ATT_SETTING_KEEP};
    assert_int_equal(att_home_open(task, 1), ATT_OK);
    assert_int_equal(att_vote_prepare(memory, task, &lane, 1, &schedule), ATT_VOTE_YES);
    assert_int_equal(att_home_decide(task, 1, ATT_HOME_COMMITTED), ATT_HOME_COMMITTED);
    task->schedule.count = 0x7fffffff;
    for (int call = 0; call < 100; call++) {
        att_decision_t decision = att_lane_next(&mine);
        assert_true(mine.current < ATT_SCHEDULE);
        assert_int_equal(decision.setting.algorithm,
                         call == 0 ? ATT_ALGORITHM_KEEP : ATT_SETTING_NONE.algorithm);
    }
}

static void a_member_of_no_group_is_published_nowhere(void **state)
{
    (void)state;
    uint32_t group = att_segment_group(memory, 7, 2, 1);
    uint32_t a = att_segment_add_member(memory, group, 0, 0);
    uint32_t b = att_segment_add_member(memory, group, 0, 0);
    memory->members[a].group = memory->members[b].group = 0x7fffffff;
    att_segment_publish_member(memory, a);
    att_segment_publish_member(memory, b); /* a duplicate: marks its group */
    assert_int_equal(atomic_load(&memory->groups[group].duplicate), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_symbolic_link_is_refused),
        cmocka_unit_test(a_file_that_others_may_open_is_refused),
        cmocka_unit_test(a_file_with_two_names_is_refused),
        cmocka_unit_test(a_file_of_another_user_is_refused),
        cmocka_unit_test(no_ordinary_file_is_refused),
        cmocka_unit_test(a_short_file_is_refused),
        cmocka_unit_test(sweep_leaves_foreign_files),
        cmocka_unit_test_setup_teardown(impossible_counts_do_not_lead_outside, map_memory,
                                        unmap_memory),
        cmocka_unit_test_setup_teardown(unfinished_entries_cost_patience_once, map_memory,
                                        unmap_memory),
        cmocka_unit_test_setup_teardown(a_damaged_list_fails_its_calls, map_memory, unmap_memory),
        cmocka_unit_test_setup_teardown(a_member_of_no_group_is_published_nowhere, map_memory,
                                        unmap_memory),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
