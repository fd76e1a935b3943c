/* The segment: names, joining, stale and foreign files, tables, rings. */
#include "base/ring.h"
#include "base/segment.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char directory[] = "/tmp/att-segment-XXXXXX";
static const att_segment_name_t name = {directory, "run1", NULL};

static int make_directory(void **state)
{
    (void)state;
    return mkdtemp(directory) == NULL;
}

static int remove_directory(void **state)
{
    (void)state;
    return rmdir(directory);
}

static void path_is_checked(void **state)
{
    (void)state;
    char path[256];
    att_error_t error;
    assert_int_equal(att_segment_path(&name, path, sizeof path, &error), ATT_OK);
    assert_non_null(strstr(path, "-run1"));
    att_segment_name_t bad = {directory, "../../etc", NULL};
    assert_int_equal(att_segment_path(&bad, path, sizeof path, &error), -ATT_EUSAGE);
    unsetenv("ATTUNE_RUN_ID");
    unsetenv("SLURM_JOB_ID");
    att_segment_name_t none = {directory, NULL, NULL};
    assert_int_equal(att_segment_path(&none, path, sizeof path, &error), -ATT_EUSAGE);
}

/* In a child: attach, say so, wait for the gate to close, go. */
static void attach_and_go(int ready, int gate, int close_it)
{
    struct att_segment *mine;
    char byte = 'r';
    if (att_segment_open(&name, ATT_SEGMENT_HOOK, &mine, NULL) != ATT_OK ||
        write(ready, &byte, 1) != 1 || read(gate, &byte, 1) != 0)
        _exit(1);
    if (close_it)
        att_segment_close(mine);
    else
        att_segment_let_go(mine);
    _exit(0);
}

/* Two who go at the same moment: each could see the other still there, and neither remove the file.
 */
static void two_leave_at_once(void **state)
{
    (void)state;
    char path[256], byte;
    assert_int_equal(att_segment_path(&name, path, sizeof path, NULL), ATT_OK);
    for (int turn = 0; turn < 200; turn++) {
        int gate[2], ready[2], status = 1;
        assert_int_equal(pipe(gate) | pipe(ready), 0);
        for (int c = 0; c < 2; c++)
            if (fork() == 0) {
                close(gate[1]);
                attach_and_go(ready[1], gate[0], turn % 2);
            }
        for (int c = 0; c < 2; c++)
            assert_int_equal(read(ready[0], &byte, 1), 1);
        close(gate[1]);
        for (int c = 0; c < 2; c++) {
            assert_true(wait(&status) > 0);
            assert_int_equal(status, 0);
        }
        close(gate[0]);
        close(ready[0]);
        close(ready[1]);
        assert_int_equal(access(path, F_OK), -1);
    }
}

static void last_close_removes(void **state)
{
    (void)state;
    struct att_segment *a, *b;
    att_error_t error;
    assert_int_equal(att_segment_open(&name, ATT_SEGMENT_HOOK, &a, &error), ATT_OK);
    assert_int_equal(att_segment_open(&name, ATT_SEGMENT_HOOK, &b, &error), ATT_OK);
    assert_ptr_equal(a, b);
    struct stat st;
    assert_int_equal(stat(att_segment_file(a), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    char path[256];
    snprintf(path, sizeof path, "%s", att_segment_file(a));
    att_segment_close(a);
    assert_int_equal(access(path, F_OK), 0);
    att_segment_close(b);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void one_agent_only(void **state)
{
    (void)state;
    struct att_segment *mine;
    att_error_t error;
    assert_int_equal(att_segment_open(&name, ATT_SEGMENT_AGENT, &mine, &error), ATT_OK);
    pid_t child = fork();
    if (child == 0) {
        /* A child is another process: it must see the lock although it inherited the mapping. */
        struct att_segment *other;
        int status = att_segment_open(&name, ATT_SEGMENT_AGENT, &other, &error);
        if (status != -ATT_EBUSY)
            _exit(1);
        if (att_segment_open(&name, ATT_SEGMENT_HOOK, &other, &error) != ATT_OK)
            _exit(2);
        _exit(att_segment_agent_alive(other) ? 0 : 3);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    assert_false(att_segment_agent_alive(mine));
    assert_false(att_segment_hooks_alive(mine));
    att_segment_close(mine);
}

/* A process that dies leaves its file: the next comer replaces it. */
static void stale_is_replaced(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        struct att_segment *s;
        if (att_segment_open(&name, ATT_SEGMENT_AGENT, &s, NULL) != ATT_OK)
            _exit(1);
        att_segment_memory(s)->header.agent_epoch = 77;
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    struct att_segment *s;
    att_error_t error;
    assert_int_equal(att_segment_open(&name, ATT_SEGMENT_HOOK, &s, &error), ATT_OK);
    assert_int_equal(att_segment_memory(s)->header.agent_epoch, 0);
    att_segment_close(s);
}

/* The ranks of a job that is begun again under the same run id come to the leftover together: they
 * must end up in one segment, which none removes under the others. */
static void many_come_to_a_leftover(void **state)
{
    (void)state;
    enum { COMERS = 12 };
    for (int turn = 0; turn < 10; turn++) {
        int start[2], gate[2], told[2], status;
        assert_int_equal(pipe(start) | pipe(gate) | pipe(told), 0);
        pid_t dead = fork();
        if (dead == 0) {
            struct att_segment *s;
            _exit(att_segment_open(&name, ATT_SEGMENT_HOOK, &s, NULL) != ATT_OK);
        }
        waitpid(dead, &status, 0);
        assert_int_equal(status, 0);
        for (int c = 0; c < COMERS; c++)
            if (fork() == 0) {
                struct att_segment *s;
                char byte;
                close(start[1]);
                close(gate[1]);
                if (read(start[0], &byte, 1) != 0 ||
                    att_segment_open(&name, ATT_SEGMENT_HOOK, &s, NULL) != ATT_OK ||
                    write(told[1], att_segment_memory(s)->header.node_id, 16) != 16 ||
                    read(gate[0], &byte, 1) != 0)
                    _exit(1);
                att_segment_close(s);
                _exit(0);
            }
        close(start[1]);
        uint8_t first[16], other[16];
        assert_int_equal(read(told[0], first, 16), 16);
        int apart = 0;
        for (int c = 1; c < COMERS; c++) {
            assert_int_equal(read(told[0], other, 16), 16);
            apart += memcmp(first, other, 16) != 0;
        }
        close(gate[1]);
        for (int c = 0; c < COMERS; c++) {
            assert_true(wait(&status) > 0);
            assert_int_equal(status, 0);
        }
        int ends[] = {start[0], gate[0], told[0], told[1]};
        for (int i = 0; i < 4; i++)
            close(ends[i]);
        assert_int_equal(apart, 0);
    }
}

static void sweep_removes_the_dead_only(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        struct att_segment *s;
        att_segment_name_t dead = {directory, "dead", NULL};
        _exit(att_segment_open(&dead, ATT_SEGMENT_AGENT, &s, NULL) != ATT_OK);
    }
    int status;
    waitpid(child, &status, 0);
    struct att_segment *s;
    assert_int_equal(att_segment_open(&name, ATT_SEGMENT_HOOK, &s, NULL), ATT_OK);
    assert_int_equal(att_segment_sweep(directory), 1);
    assert_int_equal(access(att_segment_file(s), F_OK), 0);
    att_segment_close(s);
}

/* A live segment of another layout is refused with both versions in the text. */
static void other_layout_is_refused(void **state)
{
    (void)state;
    int ready[2], done[2];
    assert_int_equal(pipe(ready) | pipe(done), 0);
    pid_t child = fork();
    if (child == 0) {
        struct att_segment *s;
        if (att_segment_open(&name, ATT_SEGMENT_HOOK, &s, NULL) != ATT_OK)
            _exit(1);
        att_segment_memory(s)->header.layout = 999;
        char byte = 1;
        if (write(ready[1], &byte, 1) != 1 || read(done[0], &byte, 1) != 1)
            _exit(2);
        att_segment_close(s);
        _exit(0);
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    struct att_segment *s;
    att_error_t error;
    assert_int_equal(att_segment_open(&name, ATT_SEGMENT_AGENT, &s, &error), -ATT_EVERSION);
    assert_non_null(strstr(error.text, "layout 999"));
    assert_int_equal(write(done[1], &byte, 1), 1);
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
}

static void no_room_is_an_error(void **state)
{
    (void)state;
    att_segment_name_t full = {"/proc", "run1", NULL};
    struct att_segment *s;
    att_error_t error;
    assert_int_equal(att_segment_open(&full, ATT_SEGMENT_HOOK, &s, &error), -ATT_ESYSTEM);
}

static void tables_find_and_fill(void **state)
{
    (void)state;
    struct att_segment *s;
    assert_int_equal(att_segment_open(&name, ATT_SEGMENT_HOOK, &s, NULL), ATT_OK);
    att_segment_memory_t *m = att_segment_memory(s);
    uint32_t process = att_segment_add_process(m, "/bin/x");
    assert_string_equal(m->processes[process].program, "x");
    uint32_t g = att_segment_group(m, 1, 2, 1);
    assert_int_equal(att_segment_group(m, 1, 2, 1), g);
    assert_int_not_equal(att_segment_group(m, 1, 3, 1), g);
    float cost[ATT_PAIR_COUNT] = {0};
    uint32_t t = att_segment_task(m, g, 4, 100, 7, cost);
    assert_int_equal(att_segment_task(m, g, 4, 100, 7, cost), t);
    assert_int_not_equal(att_segment_task(m, g, 4, 100, 3, cost), t);
    att_segment_publish_member(m, att_segment_add_member(m, g, 0, process));
    assert_int_equal(atomic_load(&m->groups[g].duplicate), 0);
    att_segment_publish_member(m, att_segment_add_member(m, g, 0, process));
    assert_int_equal(atomic_load(&m->groups[g].duplicate), 1);
    for (uint32_t i = 0; i < ATT_GROUPS; i++)
        att_segment_group(m, 1000 + i, 2, 1);
    assert_int_equal(att_segment_group(m, 9999999, 2, 1), ATT_NONE);
    assert_int_equal(atomic_load(&m->header.full), 1);
    assert_int_equal(att_segment_group(m, 1, 2, 1), g);
    att_segment_close(s);
}

static void ring_drops_and_counts(void **state)
{
    (void)state;
    att_ring_t *ring = aligned_alloc(64, (sizeof *ring + 63) / 64 * 64);
    att_ring_init(ring);
    att_record_t record = {0}, out;
    assert_false(att_ring_get(ring, &out));
    for (uint64_t i = 0; i < ATT_RING + 10; i++) {
        record.call = i;
        assert_int_equal(att_ring_put(ring, &record), i < ATT_RING);
    }
    assert_int_equal(atomic_load(&ring->dropped), 10);
    for (uint64_t i = 0; i < ATT_RING; i++) {
        assert_true(att_ring_get(ring, &out));
        assert_int_equal(out.call, i);
    }
    assert_false(att_ring_get(ring, &out));
    assert_true(att_ring_put(ring, &record));
    free(ring);
}

/* The kernel tells of a process's end, however it came. */
static void a_killed_process_is_known_to_be_gone(void **state)
{
    (void)state;
    struct att_segment *mine;
    assert_int_equal(att_segment_open(&name, ATT_SEGMENT_AGENT, &mine, NULL), ATT_OK);
    int ready[2], gate[2];
    assert_int_equal(pipe(ready) + pipe(gate), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct att_segment *its;
        if (att_segment_open(&name, ATT_SEGMENT_HOOK, &its, NULL) != ATT_OK)
            _exit(1);
        uint32_t index = att_segment_add_process(att_segment_memory(its), "killed");
        att_segment_guard(its, index);
        pid_t child = fork(); /* has no part in it */
        if (child == 0) {
            char byte;
            close(gate[1]);
            _exit(read(gate[0], &byte, 1) != 0);
        }
        if (write(ready[1], &index, sizeof index) != sizeof index)
            _exit(1);
        for (;;)
            pause();
    }
    uint32_t index;
    assert_int_equal(read(ready[0], &index, sizeof index), sizeof index);
    assert_true(att_segment_process_alive(mine, index));
    assert_true(att_segment_process_alive(mine, index + 1)); /* not known */
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_false(att_segment_process_alive(mine, index));
    close(ready[0]);
    close(ready[1]);
    close(gate[0]);
    close(gate[1]); /* the grandchild goes */
    att_segment_close(mine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(path_is_checked),
        cmocka_unit_test(two_leave_at_once),
        cmocka_unit_test(last_close_removes),
        cmocka_unit_test(one_agent_only),
        cmocka_unit_test(stale_is_replaced),
        cmocka_unit_test(many_come_to_a_leftover),
        cmocka_unit_test(sweep_removes_the_dead_only),
        cmocka_unit_test(other_layout_is_refused),
        cmocka_unit_test(no_room_is_an_error),
        cmocka_unit_test(tables_find_and_fill),
        cmocka_unit_test(ring_drops_and_counts),
        cmocka_unit_test(a_killed_process_is_known_to_be_gone),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
