#include "../misbehave.h"
#include "sim/crew.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { JOBS = 200 };

static int square(void *context, uint32_t number, void *result, att_error_t *error)
{
    (void)context, (void)error;
    *(uint64_t *)result = (uint64_t)number * number;
    return ATT_OK;
}

static void results_do_not_depend_on_the_workers(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 5; workers += 2) {
        uint64_t results[JOBS] = {0};
        att_crew_t crew = {.workers = workers, .work = square, .what = "a job"};
        assert_int_equal(att_crew_run(&crew, JOBS, sizeof results[0], results, NULL), 0);
        for (uint64_t i = 0; i < JOBS; i++)
            assert_int_equal(results[i], i * i);
    }
    att_crew_t crew = {.workers = 4, .work = square, .what = "a job"};
    assert_int_equal(att_crew_run(&crew, 0, sizeof(uint64_t), NULL, NULL), 0);
}

static int odd_job(void *context, uint32_t number, void *result, att_error_t *error)
{
    (void)result;
    if (number != 17)
        return ATT_OK;
    misbehave(context);
    return att_fail(error, ATT_EINPUT, "job %u does not like its input", number);
}

static void what_goes_wrong_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *what, *says;
        int status;
    } cases[] = {{"crash", "a run (number 17) crashed: signal 6", ATT_EFAIL},
                 {"hang", "a run (number 17) takes longer than 0.3 s", ATT_EFAIL},
                 {"exit", "a run (number 17) ended its process (exit status 3)", ATT_EFAIL},
                 {"leave", "a run (number 17) ended its process (exit status 0)", ATT_EFAIL},
                 {"fail", "job 17 does not like its input", ATT_EINPUT}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char results[JOBS];
        att_error_t error = {""};
        att_crew_t crew = {.workers = 2,
                           .limit_s = 0.3,
                           .work = odd_job,
                           .context = (void *)(uintptr_t)cases[i].what,
                           .what = "a run"};
        assert_int_equal(att_crew_run(&crew, JOBS, 1, results, &error), -cases[i].status);
        if (strstr(error.text, cases[i].says) == NULL)
            fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].what, error.text, cases[i].says);
    }
}

static void name_odd_job(void *context, uint32_t number, char *text, size_t size)
{
    (void)context;
    snprintf(text, size, "job <%u>", number);
}

static void a_job_is_named_as_its_owner_wants(void **state)
{
    (void)state;
    char results[JOBS];
    memset(results, 7, sizeof results);
    att_error_t error = {""};
    att_crew_t crew = {.workers = 1,
                       .work = odd_job,
                       .context = (char[]){"leave"},
                       .what = "a run",
                       .name = name_odd_job};
    assert_int_equal(att_crew_run(&crew, JOBS, 1, results, &error), -ATT_EFAIL);
    assert_string_equal(error.text, "job <17> ended its process (exit status 0)");
    for (int i = 0; i < JOBS; i++)
        assert_int_equal(results[i], 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(results_do_not_depend_on_the_workers),
                                       cmocka_unit_test(what_goes_wrong_is_named),
                                       cmocka_unit_test(a_job_is_named_as_its_owner_wants)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
