/* Counters within a budget: what a slow component costs is measured before it is used, and it is
 * switched off; real software events of this and of another process. */
#include "base/clock.h"
#include "profile/counters.h"
#include "profile/counters_process.h"
#include "profile/papi.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define US 1000ull
#define MS 1000000ull

/* --- fake components: their own clock, so that costs are exact -------------------------------- */

static uint64_t clock_ns;

static uint64_t fake_clock(void *context)
{
    (void)context;
    return clock_ns;
}

typedef struct fake {
    uint64_t cost_ns;
    int reads, closed, fails;
} fake_t;

static int fake_read(void *context, int64_t *values)
{
    fake_t *fake = context;
    clock_ns += fake->cost_ns;
    values[0] = ++fake->reads;
    return fake->fails ? -ATT_ENOENT : ATT_OK;
}

static void fake_close(void *context)
{
    ((fake_t *)context)->closed++;
}

static int add(struct att_counters *c, fake_t *fake, const char *name)
{
    att_counter_source_t source = {
        .count = 1, .context = fake, .read = fake_read, .close = fake_close};
    snprintf(source.name, sizeof source.name, "%s", name);
    snprintf(source.events[0].name, ATT_COUNTER_NAME, "event");
    return att_counters_add(c, &source);
}

static struct att_counters *create(double budget)
{
    struct att_counters *c;
    clock_ns = 1;
    assert_int_equal(att_counters_create(budget, fake_clock, NULL, &c), ATT_OK);
    return c;
}

static void a_slow_component_is_off_before_it_is_used(void **state)
{
    struct att_counters *c = create(0.001);
    fake_t fast = {.cost_ns = 20 * US}, slow = {.cost_ns = 3 * MS};
    assert_int_equal(add(c, &fast, "fast"), 0);
    assert_int_equal(add(c, &slow, "slow"), 1);
    const att_counter_status_t *status = att_counters_status(c, 1);
    assert_int_equal(status->state, ATT_COUNTER_OFF);
    assert_non_null(strstr(status->reason, "3e+03 us"));
    assert_non_null(strstr(status->reason, "0.1 %"));
    assert_int_equal(slow.closed, 1);
    assert_int_equal(att_counters_changed(c), 1); /* told once */
    assert_int_equal(att_counters_changed(c), -1);
    assert_int_equal(att_counters_status(c, 0)->state, ATT_COUNTER_ON);
    int before = slow.reads;
    for (uint64_t now = 1 * MS; now < 20000 * MS; now += MS)
        att_counters_read(c, now);
    assert_int_equal(slow.reads, before);
    att_counters_destroy(c);
    assert_int_equal(slow.closed, 1);
    assert_int_equal(fast.closed, 1);
}

static void reading_stays_within_the_budget(void **state)
{
    static const double budgets[] = {0.0005, 0.001, 0.01};
    for (size_t b = 0; b < 3; b++) {
        struct att_counters *c = create(budgets[b]);
        fake_t fakes[4] = {{.cost_ns = 70 * US},
                           {.cost_ns = 110 * US},
                           {.cost_ns = 300 * US},
                           {.cost_ns = 900 * US}};
        for (int i = 0; i < 4; i++)
            add(c, &fakes[i], "x");
        double before = att_counters_spent_ns(c);
        const uint64_t run_ns = 60000 * MS;
        for (uint64_t now = 0; now < run_ns; now += 5 * MS)
            att_counters_read(c, now + 1);
        double share = (att_counters_spent_ns(c) - before) / (double)run_ns;
        /* The first read is at the very beginning: one more than the time has intervals. */
        assert_true(share <= budgets[b] * 1.02);
        assert_true(share > budgets[b] / 10); /* and it is made use of */
        assert_int_equal(att_counters_status(c, 0)->state, ATT_COUNTER_ON);
        assert_int_equal(att_counters_status(c, 3)->state,
                         budgets[b] < 0.01 ? ATT_COUNTER_OFF : ATT_COUNTER_ON);
        att_counters_destroy(c);
    }
}

static void a_component_that_becomes_slow_is_switched_off(void **state)
{
    struct att_counters *c = create(0.001);
    fake_t fake = {.cost_ns = 10 * US};
    add(c, &fake, "x");
    uint64_t now = MS;
    for (int i = 0; i < 20; i++)
        assert_int_equal(att_counters_read(c, now += 1000 * MS), 1);
    assert_int_equal(att_counters_changed(c), -1);
    /* An unlucky read is paid for by a longer pause, not more. */
    fake.cost_ns = 3 * MS;
    assert_int_equal(att_counters_read(c, now += 1000 * MS), 1);
    fake.cost_ns = 10 * US;
    assert_int_equal(att_counters_status(c, 0)->state, ATT_COUNTER_ON);
    assert_int_equal(att_counters_read(c, now + 2999 * MS), 0);
    assert_int_equal(att_counters_read(c, now - 1), 0); /* who asks may have an older clock */
    assert_int_equal(att_counters_read(c, now += 3000 * MS), 1);
    fake.cost_ns = 5 * MS;
    for (int i = 0; i < 8 && att_counters_status(c, 0)->state == ATT_COUNTER_ON; i++)
        att_counters_read(c, now += 5000 * MS);
    assert_int_equal(att_counters_status(c, 0)->state, ATT_COUNTER_OFF);
    assert_int_equal(att_counters_changed(c), 0);
    att_counters_destroy(c);
}

static void a_long_step_allows_more_and_no_budget_all(void **state)
{
    struct att_counters *c = create(0.001);
    fake_t fake = {.cost_ns = 3 * MS};
    att_counters_step(c, 10000 * MS);
    add(c, &fake, "x");
    assert_int_equal(att_counters_status(c, 0)->state, ATT_COUNTER_ON);
    assert_int_equal(att_counters_interval_ns(c), 10000 * MS); /* once a step */
    att_counters_step(c, 200 * MS);
    assert_int_equal(att_counters_status(c, 0)->state, ATT_COUNTER_OFF);
    att_counters_destroy(c);
    c = create(0);
    add(c, &fake, "x");
    assert_int_equal(att_counters_status(c, 0)->state, ATT_COUNTER_ON);
    assert_int_equal(att_counters_interval_ns(c), 100 * MS);
    att_counters_destroy(c);
}

static void what_is_gone_is_closed_and_told(void **state)
{
    struct att_counters *c = create(0.001);
    fake_t fake = {.cost_ns = 1 * US}, late = {.cost_ns = 1 * US, .fails = 1};
    add(c, &fake, "x");
    add(c, &late, "y");
    assert_int_equal(att_counters_changed(c), 1);
    assert_int_equal(late.reads, 1);
    fake.fails = 1;
    att_counters_read(c, MS);
    assert_int_equal(att_counters_changed(c), 0);
    assert_int_equal(att_counters_status(c, 0)->state, ATT_COUNTER_GONE);
    assert_int_equal(fake.closed, 1);
    for (int i = 2; i < ATT_COUNTER_SOURCES; i++)
        assert_int_equal(add(c, &late, "z"), i);
    int closed = late.closed;
    assert_int_equal(add(c, &late, "one too many"), -ATT_EFULL);
    assert_int_equal(late.closed, closed + 1);
    att_counters_destroy(c);
}

/* --- real ones -------------------------------------------------------------------------------- */

static char missing_text[4096];

static void note_missing(void *context, const char *name, const char *reason)
{
    size_t used = strlen(missing_text);
    snprintf(missing_text + used, sizeof missing_text - used, "%s: %s\n", name, reason);
    assert_true(reason[0] != '\0');
}

static uint64_t real_clock(void *context)
{
    (void)context;
    return att_clock_ns();
}

static void burn(uint64_t ns)
{
    volatile double x = 1;
    for (uint64_t until = att_clock_ns() + ns; att_clock_ns() < until;)
        for (int i = 0; i < 1000; i++)
            x = x * 1.0000001;
}

static int event_of(const att_counter_source_t *source, const char *name)
{
    for (uint32_t i = 0; i < source->count; i++)
        if (strcmp(source->events[i].name, name) == 0)
            return (int)i;
    return -1;
}

static void another_process_is_counted_from_outside(void **state)
{
    att_counter_source_t source;
    att_error_t error;
    int64_t first[ATT_COUNTER_EVENTS], second[ATT_COUNTER_EVENTS];
    pid_t child = fork();
    if (child == 0) {
        for (;;)
            burn(MS);
    }
    missing_text[0] = '\0';
    int status = att_counters_process(child, 7, &source, note_missing, NULL, &error);
    if (status != ATT_OK) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        assert_int_equal(status, -ATT_EUNSUPPORTED);
        printf("skip: %s\n", error.text);
        skip();
    }
    assert_string_equal(source.name, "process 7");
    int clock = event_of(&source, "task-clock");
    assert_true(clock >= 0);
    assert_int_equal(source.read(source.context, first), ATT_OK);
    do {
        usleep(10000);
        assert_int_equal(source.read(source.context, second), ATT_OK);
    } while (second[clock] - first[clock] < (int64_t)(5 * MS)); /* nanoseconds of processor time */
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(source.read(source.context, second), -ATT_ENOENT);
    source.close(source.context);
    assert_int_equal(att_counters_process(child, 7, &source, note_missing, NULL, &error),
                     -ATT_ENOENT);
}

static void papi_counts_software_events_and_says_what_it_cannot(void **state)
{
    struct att_papi *papi;
    att_error_t error;
    att_counter_source_t sources[8];
    int status = att_papi_open("on,nosuch:::event,perf::NO-SUCH,perf::TASK-CLOKC", &papi, &error);
    if (status != ATT_OK) {
        assert_int_equal(status, -ATT_EUNSUPPORTED);
        printf("skip: %s\n", error.text);
        skip();
    }
    missing_text[0] = '\0';
    uint32_t count = att_papi_sources(papi, sources, 8, note_missing, NULL);
    assert_non_null(strstr(missing_text, "nosuch:::event: this libpapi was built without"));
    assert_non_null(strstr(missing_text, "perf::NO-SUCH: "));
    assert_non_null(strstr(missing_text, "(did you mean 'perf::TASK-CLOCK'?)"));
    assert_non_null(strstr(missing_text, "cuda: "));
    assert_non_null(strstr(missing_text, "infiniband: "));
    if (count == 0) {
        printf("skip: PAPI can count nothing here: %s\n", missing_text);
        att_papi_close(papi);
        skip();
    }
    struct att_counters *c;
    assert_int_equal(att_counters_create(0, real_clock, NULL, &c), ATT_OK);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(att_counters_add(c, &sources[i]), i);
    assert_string_equal(sources[0].name, "perf_event");
    assert_int_equal(sources[0].scope, ATT_COUNTER_AGENT);
    int clock = event_of(&sources[0], "perf::TASK-CLOCK");
    assert_true(clock >= 0);
    const att_counter_status_t *now = att_counters_status(c, 0);
    int64_t before = now->values[clock];
    assert_true(now->cost_ns > 0);
    burn(20 * MS);
    assert_int_equal(att_counters_read(c, att_clock_ns()), 1);
    /* It counts this thread's processor time, which other work on the machine only shortens. */
    assert_true(now->values[clock] > before);
    /* What could be added is not missing, and the other way round. */
    for (uint32_t i = 0; i < sources[0].count; i++) {
        char line[ATT_COUNTER_NAME + 4];
        snprintf(line, sizeof line, "%s: ", sources[0].events[i].name);
        assert_null(strstr(missing_text, line));
    }
    assert_true(event_of(&sources[0], "PAPI_TOT_CYC") >= 0 ||
                strstr(missing_text, "PAPI_TOT_CYC: ") != NULL);
    att_counters_destroy(c);
    att_papi_close(papi);
}

static void lists_that_are_none(void **state)
{
    static const char *const good[] = {"off", "on", "a", "on,a,b", "nvml:::a:b"};
    static const char *const bad[] = {"", ",", ",a", "a,", "a,,b", "on,"};
    att_error_t error;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(att_counters_check(good[i], &error), ATT_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(att_counters_check(bad[i], &error), -ATT_EUSAGE);
        assert_non_null(strstr(error.text, "has an empty name"));
    }
    char name[ATT_COUNTER_NAME + 1] = "";
    memset(name, 'x', ATT_COUNTER_NAME);
    assert_int_equal(att_counters_check(name, &error), -ATT_EUSAGE);
    assert_int_equal(att_counters_check(name + 1, &error), ATT_OK);
}

static void names_that_cannot_be(void **state)
{
    struct att_papi *papi;
    att_error_t error;
    if (att_papi_built_for() == NULL) {
        printf("skip: built without PAPI\n");
        skip();
    }
    assert_int_equal(att_papi_open("on,,x", &papi, &error), -ATT_EUSAGE);
    char *long_name = calloc(1, 1000);
    memset(long_name, 'x', 999);
    assert_int_equal(att_papi_open(long_name, &papi, &error), -ATT_EUSAGE);
    free(long_name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_component_is_off_before_it_is_used),
        cmocka_unit_test(reading_stays_within_the_budget),
        cmocka_unit_test(a_component_that_becomes_slow_is_switched_off),
        cmocka_unit_test(a_long_step_allows_more_and_no_budget_all),
        cmocka_unit_test(what_is_gone_is_closed_and_told),
        cmocka_unit_test(another_process_is_counted_from_outside),
        cmocka_unit_test(papi_counts_software_events_and_says_what_it_cannot),
        cmocka_unit_test(lists_that_are_none),
        cmocka_unit_test(names_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
