/* What a trial is told of a process that came between two reads: its rates are over its own time.
 */
#include "base/clock.h"
#include "control/counting.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

static uint64_t processor_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static void work(double seconds)
{
    for (uint64_t until = att_clock_ns() + (uint64_t)(seconds * 1e9); att_clock_ns() < until;)
        ;
}

/* The rate that the first trial after it is told, of the true one; 0: no counters here. */
static double rate_of_a_new_process(void)
{
    char folder[] = "/tmp/att-XXXXXX", file[64], command[64], on[] = "on";
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/segment", folder);
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(fd, sizeof(att_segment_memory_t)), 0);
    att_segment_memory_t *memory =
        mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    close(fd);
    struct att_node *node;
    assert_int_equal(att_node_create(memory, &node), 0);
    att_config_t config = {.counters = on, .run_dir = folder};
    struct att_counting *counting;
    att_error_t error = {""};
    if (att_counting_create(&config, node, file, 0, &counting, &error) != 0)
        fail_msg("%s", error.text);

    /* Late in the time between two reads, which is 100 ms, a process comes, and works for a fifth
     * of it. */
    att_counting_step(counting, att_clock_ns());
    struct timespec pause = {.tv_nsec = 90000000};
    nanosleep(&pause, NULL);
    assert_int_equal(att_segment_add_process(memory, "job"), 0);
    att_counting_step(counting, att_clock_ns());
    uint64_t began_ns = att_clock_ns(), used_ns = processor_ns();
    work(0.02);
    json_t *counted = att_counting_trial(counting, 0, 1);
    double share = (double)(processor_ns() - used_ns) / (double)(att_clock_ns() - began_ns);
    json_t *rate = json_object_get(counted, "process task-clock");
    double found = rate == NULL ? 0 : json_number_value(rate) * 1e-9 / share;

    json_decref(counted);
    att_counting_destroy(counting);
    att_node_destroy(node);
    munmap(memory, sizeof *memory);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    return found;
}

static void a_new_process_has_its_rates_over_its_own_time(void **state)
{
    (void)state;
    double found = 0;
    for (int i = 0; i < 5; i++) { /* a busy machine may wake us too late */
        found = rate_of_a_new_process();
        if (found == 0)
            skip();
        if (found > 0.5 && found < 2)
            return;
    }
    fail_msg("%g times the true rate", found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_process_has_its_rates_over_its_own_time),
    };
    return cmocka_run_group_tests_name("control_counting", tests, NULL, NULL);
}
