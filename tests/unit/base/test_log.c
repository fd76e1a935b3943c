/* log: a storm of messages is one line a second and site, and none is lost to the count. */
#include "base/clock.h"
#include "base/log.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define THREADS 4
#define CALLS   4000

static att_log_site_t slots;

static void *fail_to_allocate(void *context)
{
    (void)context;
    for (int i = 0; i < CALLS; i++)
        att_log_limited(&slots, ATT_LOG_WARN, "no slot for an event");
    return NULL;
}

/* Lines about `what` in the file, and how many more they say that there were. */
static long lines_about(const char *path, const char *what, long *left_out)
{
    char line[512];
    long lines = 0;
    *left_out = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strstr(line, what) == NULL)
            continue;
        lines++;
        const char *more = strstr(line, " (");
        if (more != NULL)
            *left_out += strtol(more + 2, NULL, 10);
    }
    fclose(file);
    return lines;
}

static void a_storm_of_messages(void **state)
{
    char path[] = "/tmp/att-log-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(att_log_set_file(path), 0);
    static att_log_site_t quiet;
    pthread_t threads[THREADS];
    uint64_t begin_ns = att_clock_ns();
    att_log_limited(&quiet, ATT_LOG_WARN, "another site");
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, fail_to_allocate, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    long seconds = (long)((att_clock_ns() - begin_ns) / 1000000000u), left_out;
    long lines = lines_about(path, "no slot", &left_out);
    assert_in_range(lines, 1, seconds + 1);
    att_log_finish();
    lines = lines_about(path, "no slot", &left_out);
    assert_in_range(lines, 2, seconds + 2);
    /* The line at the end repeats the last one: it is none of the storm's. */
    assert_int_equal(lines - 1 + left_out, THREADS * CALLS);
    assert_int_equal(lines_about(path, "another site", &left_out), 1);
    assert_int_equal(left_out, 0);
    att_log_finish(); /* nothing is left to say */
    assert_int_equal(lines_about(path, "no slot", &left_out), lines);
    att_log_set_file(NULL);
    unlink(path);
}

int main(void)
{
    att_log_set_level(ATT_LOG_ERROR); /* into the file alone */
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_storm_of_messages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
