/* Drivers that meet, in threads and in a process that inherited the descriptor. */
#include "cli/bench_world.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define DRIVERS 5
#define ROUNDS  200

static struct att_world *world;
static _Atomic int inside, wrong;

struct driver {
    pthread_t thread;
    int index;
    int result;
    double sum, least, most;
    uint64_t word;
};

static void *meet_often(void *argument)
{
    struct driver *d = argument;
    for (int i = 0; i < ROUNDS; i++) {
        atomic_fetch_add(&inside, 1);
        if (att_world_barrier(world) != 0)
            return NULL;
        if (atomic_load(&inside) != DRIVERS * (i + 1))
            atomic_fetch_add(&wrong, 1);
        if (att_world_barrier(world) != 0)
            return NULL;
    }
    att_world_reduce(world, d->index, ATT_WORLD_SUM, d->index + 1, &d->sum);
    att_world_reduce(world, d->index, ATT_WORLD_MIN, 10 - d->index, &d->least);
    att_world_reduce(world, d->index, ATT_WORLD_MAX, d->index * 2, &d->most);
    d->word = d->index == 0 ? 4711 : 1;
    att_world_broadcast(world, d->index, &d->word);
    return NULL;
}

static void *meet_once(void *argument)
{
    struct driver *d = argument;
    d->result = att_world_barrier(world);
    return NULL;
}

static void start(struct driver *drivers, int first, void *(*run)(void *))
{
    memset(drivers, 0, DRIVERS * sizeof *drivers);
    for (int i = first; i < DRIVERS; i++) {
        drivers[i].index = i;
        assert_int_equal(pthread_create(&drivers[i].thread, NULL, run, &drivers[i]), 0);
    }
}

static void join(struct driver *drivers, int first)
{
    for (int i = first; i < DRIVERS; i++)
        pthread_join(drivers[i].thread, NULL);
}

static void test_nobody_leaves_before_all_have_come(void **state)
{
    struct driver drivers[DRIVERS];
    assert_int_equal(att_world_create(DRIVERS, &world, NULL), 0);
    atomic_store(&inside, 0);
    atomic_store(&wrong, 0);
    start(drivers, 0, meet_often);
    join(drivers, 0);
    assert_int_equal(atomic_load(&wrong), 0);
    for (int i = 0; i < DRIVERS; i++) {
        assert_true(drivers[i].sum == 15);
        assert_true(drivers[i].least == 6);
        assert_true(drivers[i].most == 8);
        assert_int_equal(drivers[i].word, 4711);
    }
    att_world_close(world);
}

static void test_a_failure_wakes_those_who_wait_and_the_first_text_stays(void **state)
{
    struct driver drivers[DRIVERS];
    att_error_t error;
    assert_int_equal(att_world_create(DRIVERS, &world, NULL), 0);
    assert_int_equal(att_world_failure(world, NULL), 0);
    start(drivers, 1, meet_once);
    att_world_fail(world, -ATT_ETIMEOUT, "first");
    att_world_fail(world, -ATT_ESYSTEM, "second");
    join(drivers, 1);
    for (int i = 1; i < DRIVERS; i++)
        assert_int_equal(drivers[i].result, -ATT_ETIMEOUT);
    assert_int_equal(att_world_failure(world, &error), -ATT_ETIMEOUT);
    assert_string_equal(error.text, "first");
    att_world_close(world);
}

static void test_a_process_attaches_by_descriptor(void **state)
{
    assert_int_equal(att_world_create(2, &world, NULL), 0);
    pid_t child = fork();
    if (child == 0) {
        struct att_world *mine;
        double sum;
        if (att_world_attach(att_world_descriptor(world), &mine, NULL) != 0 ||
            att_world_drivers(mine) != 2 || att_world_reduce(mine, 1, ATT_WORLD_SUM, 40, &sum) != 0)
            _exit(1);
        _exit(sum == 42 ? 0 : 2);
    }
    double sum;
    int status;
    assert_int_equal(att_world_reduce(world, 0, ATT_WORLD_SUM, 2, &sum), 0);
    assert_true(sum == 42);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    att_world_close(world);
}

static void test_other_descriptors_are_refused(void **state)
{
    struct att_world *none = NULL;
    char path[] = "/tmp/attune-test-XXXXXX";
    int file = mkstemp(path);
    unlink(path);
    assert_int_equal(att_world_attach(file, &none, NULL), -ATT_EINPUT);
    assert_int_equal(att_world_attach(9999, &none, NULL), -ATT_EINPUT);
    assert_int_equal(att_world_create(0, &none, NULL), -ATT_EUSAGE);
    assert_null(none);
    close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_leaves_before_all_have_come),
        cmocka_unit_test(test_a_failure_wakes_those_who_wait_and_the_first_text_stays),
        cmocka_unit_test(test_a_process_attaches_by_descriptor),
        cmocka_unit_test(test_other_descriptors_are_refused),
    };
    return cmocka_run_group_tests_name("cli_bench_world", tests, NULL, NULL);
}
