/* Refusals of bad plugins, parameters, and the isolation of strategies in a process of their own.
 */
#include "search/strategy_host.h"

#include "base/clock.h"
#include "fixture.h"
#include "search/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/* Long enough for a loaded machine, used where an answer is expected. */
#define PATIENT 60.0
/* Used where none is expected. */
#define SHORT 0.2

static const char *const bad = ATTUNE_TEST_PLUGINS;
static struct att_space_owned *space;

static struct att_strategy_host *host_of(att_host_mode_t mode, double deadline_s)
{
    struct att_strategy_host *host;
    att_error_t error;
    if (att_strategy_host_create(bad, mode, deadline_s, &host, &error) != ATT_OK)
        fail_msg("%s", error.text);
    return host;
}

static void assert_refused(struct att_strategy_host *host, const char *spec, int code,
                           const char *words)
{
    att_error_t error = {""};
    assert_int_equal(att_strategy_host_check(host, spec, &error), -code);
    if (strstr(error.text, words) == NULL || strchr(error.text, '\n') != NULL)
        fail_msg("\"%s\" does not say \"%s\" in one line", error.text, words);
}

static void refusals(struct att_strategy_host *host)
{
    assert_refused(host, "nowhere", ATT_ENOENT, "no strategy \"nowhere\" in ");
    assert_refused(host, "nowhere", ATT_ENOENT, "odd");
    assert_refused(host, "bad_symbol", ATT_EPLUGIN, "no symbol attune_strategy");
    assert_refused(host, "bad_abi", ATT_EVERSION,
                   "speaks strategy ABI 2, this attune understands 1");
    assert_refused(host, "bad_size", ATT_EPLUGIN, "has 40 bytes, ABI 1 needs 104");
    assert_refused(host, "bad_name", ATT_EPLUGIN,
                   "calls itself \"other\", the file says \"bad_name\"");
    assert_refused(host, "bad_op", ATT_EPLUGIN, "lacks the op tell");
    assert_refused(host, "bad_table", ATT_EPLUGIN, "counts 2 parameters but has no table");
    assert_refused(host, "bad_default", ATT_EPLUGIN, "default of parameter steps: \"many\"");
    assert_refused(host, "bad_choice", ATT_EPLUGIN, "parameter mode has no choices");
    assert_refused(host, "bad_twice", ATT_EPLUGIN, "parameter steps is there twice");
    assert_refused(host, "", ATT_EUSAGE, "no strategy named");
    assert_refused(host, ":how=good", ATT_EUSAGE, "no strategy named");
    assert_refused(host, "../odd", ATT_EUSAGE, "a name has only a-z, 0-9 and _");
    assert_refused(host, "odd:colour=red", ATT_EUSAGE,
                   "no parameter \"colour\" (it takes how, place, real, flag, word)");
    assert_refused(host, "odd:how", ATT_EUSAGE, "\"how\" is not key=value");
    assert_refused(host, "odd:", ATT_EUSAGE, "\"\" is not key=value");
    assert_refused(host, "odd:how=good,how=good", ATT_EUSAGE, "how is given twice");
    assert_refused(host, "odd:how=badly", ATT_EUSAGE,
                   "parameter how: \"badly\" is not accepted (one of good|crash|");
    assert_refused(host, "odd:how=", ATT_EUSAGE, "parameter how: \"\" is not accepted");
    assert_refused(host, "odd:real=nan", ATT_EUSAGE,
                   "parameter real: \"nan\" is not accepted (number)");
    assert_refused(host, "odd:real=1x", ATT_EUSAGE, "(number)");
    assert_refused(host, "odd:flag=yes", ATT_EUSAGE, "(0 or 1)");
    assert_refused(host, "odd:real=13", ATT_EUSAGE,
                   "strategy odd: parameter real: \"13\" is not accepted (any?but 13)");
    assert_refused(host, "odd:how=error,place=check", ATT_EPLUGIN,
                   "strategy odd failed in check: it gave up (-3)");
    att_error_t error;
    assert_int_equal(att_strategy_host_check(host, "odd:real=-1.5e3,word=a b,flag=1", &error), 0);
    assert_int_equal(att_strategy_host_check(host, "odd", &error), 0);
    assert_int_equal(att_strategy_host_check(host, "old", &error), 0);
}

static void refusals_in_process(void **state)
{
    (void)state;
    struct att_strategy_host *host = host_of(ATT_HOST_INPROCESS, PATIENT);
    refusals(host);
    att_strategy_host_destroy(host);
}

static void refusals_in_a_child(void **state)
{
    (void)state;
    struct att_strategy_host *host = host_of(ATT_HOST_CHILD, PATIENT);
    refusals(host);
    att_strategy_host_destroy(host);
}

static void a_file_that_is_no_library(void **state)
{
    (void)state;
    char folder[] = "/tmp/attune-test-XXXXXX", file[128];
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/libattune-strategy-text.so", folder);
    FILE *out = fopen(file, "w");
    assert_non_null(out);
    fputs("not a library\n", out);
    fclose(out);
    struct att_strategy_host *host;
    assert_int_equal(att_strategy_host_create(folder, ATT_HOST_INPROCESS, 1, &host, NULL), 0);
    assert_refused(host, "text", ATT_EPLUGIN, "cannot load");
    att_strategy_host_destroy(host);
    unlink(file);
    rmdir(folder);
}

typedef struct counts {
    int accepted, refused, hidden;
} counts_t;

static void count_entry(void *context, const att_plugin_entry_t *entry)
{
    counts_t *counts = context;
    assert_true((entry->strategy == NULL) != (entry->refusal == NULL));
    if (strncmp(entry->path, bad, strlen(bad)) != 0)
        return;
    counts->accepted += entry->strategy != NULL;
    counts->refused += entry->refusal != NULL;
    counts->hidden += entry->refusal != NULL && strstr(entry->refusal, "hidden by") != NULL;
}

static void list_names_all_and_hides_the_second(void **state)
{
    (void)state;
    char twice[1024];
    snprintf(twice, sizeof twice, "%s:%s", bad, bad);
    counts_t counts = {0};
    assert_int_equal(att_strategy_host_list(twice, count_entry, &counts, NULL), 0);
    assert_int_equal(counts.accepted, 3);     /* odd, old, script */
    assert_int_equal(counts.refused, 9 + 12); /* bad ones, and in the second folder... */
    assert_int_equal(counts.hidden, 12);      /* ...all of them */
}

static int search(struct att_strategy_host *host, const char *spec, att_error_t *error)
{
    struct att_search *search_;
    att_setting_t settings[15], best;
    uint32_t count;
    const double sample = 90;
    error->text[0] = '\0';
    int rc = att_search_begin(host, spec, att_space_view(space), 1, &search_, error);
    if (rc != ATT_OK)
        return rc;
    for (;;) {
        rc = att_search_ask(search_, 15, error);
        if (rc == ATT_OK)
            rc = fixture_answer(search_, settings, &count, error);
        if (rc < 0 || count == 0)
            break;
        att_result_t result = fixture_result(&sample);
        for (uint32_t i = 0; i < count && rc >= 0; i++)
            rc = att_search_tell(search_, &settings[i], &result, error);
        if (rc < 0)
            break;
    }
    if (rc > 0)
        rc = att_search_best(search_, &best, error);
    if (rc == ATT_OK && !att_space_contains(att_space_view(space), best))
        rc = -ATT_EFAIL;
    att_search_end(search_);
    return rc;
}

static void assert_ends(struct att_strategy_host *host, const char *spec, int code,
                        const char *words)
{
    att_error_t error;
    int rc = search(host, spec, &error);
    if (rc != -code || strstr(error.text, words) == NULL)
        fail_msg("%s: %d \"%s\", not %d \"%s\"", spec, rc, error.text, -code, words);
}

static void nonsense(struct att_strategy_host *host)
{
    assert_ends(host, "odd", ATT_OK, "");
    assert_ends(host, "odd:how=outside", ATT_EPLUGIN, "ch=5000, which is outside its space");
    assert_ends(host, "odd:how=malformed", ATT_EPLUGIN, "unknown/simple");
    assert_ends(host, "odd:how=many", ATT_EPLUGIN, "gave 16 settings, asked for at most 15");
    assert_ends(host, "odd:how=outside,place=best", ATT_EPLUGIN, "outside its space");
    assert_ends(host, "odd:how=error", ATT_EPLUGIN, "failed in ask: it gave up (-3)");
    assert_ends(host, "odd:how=error,place=create", ATT_EPLUGIN, "failed in create");
    assert_ends(host, "odd:how=error,place=tell", ATT_EPLUGIN, "failed in tell");
    assert_ends(host, "odd:how=error,place=best", ATT_EPLUGIN, "failed in best");
    assert_ends(host, "old", ATT_EFAIL, ""); /* its best is KEEP */
    assert_ends(host, "odd:real=13", ATT_EUSAGE, "parameter real: \"13\" is not accepted");
    assert_ends(host, "random:trials=0", ATT_EUSAGE, "parameter trials: \"0\" is not accepted");
}

static void nonsense_in_process(void **state)
{
    (void)state;
    struct att_strategy_host *host = host_of(ATT_HOST_INPROCESS, PATIENT);
    nonsense(host);
    att_strategy_host_destroy(host);
}

static void nonsense_in_a_child(void **state)
{
    (void)state;
    struct att_strategy_host *host = host_of(ATT_HOST_CHILD, PATIENT);
    nonsense(host);
    att_strategy_host_destroy(host);
}

static void usage_counts_asks_and_offline_samples(void **state)
{
    (void)state;
    struct att_strategy_host *host = host_of(ATT_HOST_INPROCESS, PATIENT);
    att_host_usage_t usage;
    att_strategy_host_usage(host, &usage);
    assert_int_equal(usage.asks, 0);
    assert_ends(host, "odd", ATT_OK, "");
    att_strategy_host_usage(host, &usage);
    assert_int_equal(usage.offline_samples, 0); /* it has no such op */
    uint64_t asks = usage.asks;
    assert_true(asks > 0);
    for (unsigned i = 1; i <= 2; i++) {
        assert_ends(host, "script:play=1/0+2/8192+3/4096", ATT_EFAIL, ""); /* its best is KEEP */
        att_strategy_host_usage(host, &usage);
        assert_int_equal(usage.asks, asks + i * 4); /* three settings and "finished" */
        assert_int_equal(usage.offline_samples, i * 9);
    }
    att_strategy_host_destroy(host);
}

static void a_crash_costs_one_search(void **state)
{
    (void)state;
    struct att_strategy_host *host = host_of(ATT_HOST_CHILD, PATIENT);
    struct att_search *other;
    att_setting_t settings[15];
    uint32_t count;
    assert_int_equal(att_search_begin(host, "odd", att_space_view(space), 1, &other, NULL), 0);
    assert_ends(host, "odd:how=crash", ATT_EPLUGIN, "crashed (signal 6, Aborted)");
    assert_refused(host, "odd:how=crash,place=check", ATT_EPLUGIN, "crashed (signal 6, Aborted)");
    assert_ends(host, "odd:how=crash,place=create", ATT_EPLUGIN, "crashed (signal 6");
    assert_ends(host, "odd:how=crash,place=tell", ATT_EPLUGIN, "crashed (signal 6");
    assert_ends(host, "odd:how=crash,place=best", ATT_EPLUGIN, "crashed (signal 6");
    assert_ends(host, "odd:how=exit", ATT_EPLUGIN, "ended its process (exit status 3)");
    assert_ends(host, "odd:how=crash,place=destroy", ATT_OK, "");
    assert_int_equal(att_search_ask(other, 15, NULL), 0);
    assert_int_equal(fixture_answer(other, settings, &count, NULL), 1);
    assert_int_equal(count, 1);
    att_search_end(other);
    assert_ends(host, "odd", ATT_OK, "");
    att_strategy_host_destroy(host);
}

static void a_hang_costs_one_search(void **state)
{
    (void)state;
    struct att_strategy_host *host = host_of(ATT_HOST_CHILD, SHORT);
    assert_ends(host, "odd:how=hang", ATT_EPLUGIN, "gave no answer within 0.2 s");
    assert_ends(host, "odd:how=hang,place=create", ATT_EPLUGIN, "gave no answer within 0.2 s");
    assert_ends(host, "odd:how=hang,place=tell", ATT_EPLUGIN, "gave no answer within 0.2 s");
    att_strategy_host_destroy(host);
}

static void failure_is_final(void **state)
{
    (void)state;
    struct att_strategy_host *host = host_of(ATT_HOST_CHILD, PATIENT);
    struct att_search *search_;
    att_setting_t settings[15], best;
    uint32_t count;
    att_error_t error;
    assert_int_equal(
        att_search_begin(host, "odd:how=crash", att_space_view(space), 1, &search_, &error), 0);
    assert_int_equal(att_search_poll(search_, settings, &count, &error), 0); /* nothing asked */
    assert_int_equal(att_search_ask(search_, 15, &error), 0);
    assert_int_equal(att_search_ask(search_, 15, &error), -ATT_EBUSY);
    assert_int_equal(fixture_answer(search_, settings, &count, &error), -ATT_EPLUGIN);
    assert_int_equal(att_search_poll(search_, settings, &count, &error), -ATT_EPLUGIN);
    assert_int_equal(att_search_ask(search_, 15, &error), -ATT_EPLUGIN);
    assert_int_equal(att_search_best(search_, &best, &error), -ATT_EPLUGIN);
    assert_non_null(strstr(error.text, "crashed"));
    att_search_end(search_);
    att_strategy_host_destroy(host);
}

static void many_searches_at_once(void **state)
{
    (void)state;
    struct att_strategy_host *host = host_of(ATT_HOST_CHILD, PATIENT);
    struct att_search *searches[ATT_CHILD_WORKERS], *more;
    att_error_t error;
    for (int i = 0; i < ATT_CHILD_WORKERS; i++)
        assert_int_equal(
            att_search_begin(host, "odd", att_space_view(space), 1, &searches[i], &error), 0);
    assert_int_equal(att_search_begin(host, "odd", att_space_view(space), 1, &more, &error),
                     -ATT_EBUSY);
    for (int i = 0; i < ATT_CHILD_WORKERS; i++)
        att_search_end(searches[i]);
    /* The numbers come free when the workers have ended. */
    while (att_search_begin(host, "odd", att_space_view(space), 1, &more, &error) != ATT_OK)
        att_clock_sleep_ns(1000000);
    att_search_end(more);
    att_strategy_host_destroy(host);
}

/* Worker for child.h alone: tells which files it has open, and its signal state. */
static void tell_files(int fd)
{
    char text[64];
    int files = 0;
    DIR *open_files = opendir("/proc/self/fd");
    for (struct dirent *entry; (entry = readdir(open_files)) != NULL;)
        files += entry->d_name[0] != '.' && atoi(entry->d_name) > 2;
    closedir(open_files);
    struct sigaction usr1;
    sigset_t mask;
    sigaction(SIGUSR1, NULL, &usr1);
    sigprocmask(SIG_SETMASK, NULL, &mask);
    int n = snprintf(text, sizeof text, "%d %d %d", files, usr1.sa_handler == SIG_DFL,
                     sigismember(&mask, SIGUSR2));
    if (write(fd, text, (size_t)n) == n)
        while (read(fd, text, sizeof text) > 0)
            ;
}

static void handler(int signal_)
{
    (void)signal_;
}

static void a_worker_keeps_nothing_of_its_parent(void **state)
{
    (void)state;
    int inherited = open("/dev/null", O_RDONLY); /* no CLOEXEC */
    signal(SIGUSR1, handler);
    sigset_t block, before;
    sigemptyset(&block);
    sigaddset(&block, SIGUSR2);
    sigprocmask(SIG_BLOCK, &block, &before);
    struct att_child *child;
    assert_int_equal(att_child_start(tell_files, &child, NULL), 0);
    int number[2], fd[2];
    assert_int_equal(att_child_worker(child, &number[0], &fd[0], NULL), 0);
    assert_int_equal(att_child_worker(child, &number[1], &fd[1], NULL), 0);
    for (int i = 0; i < 2; i++) {
        char text[64] = "";
        ssize_t n;
        while ((n = read(fd[i], text, sizeof text - 1)) < 0 && errno == EAGAIN)
            att_clock_sleep_ns(1000000);
        assert_true(n > 0);
        /* Its socket and the folder it reads. */
        assert_string_equal(text, "2 1 0");
        close(fd[i]);
    }
    int status;
    while (att_child_ended(child, number[0], &status) == 0)
        att_clock_sleep_ns(1000000);
    assert_true(WIFEXITED(status));
    att_child_stop(child);
    sigprocmask(SIG_SETMASK, &before, NULL);
    signal(SIGUSR1, SIG_DFL);
    close(inherited);
}

/* A pipe that the supervisor and its hung worker keep through standard error: end of file tells
 * that all of them are gone. */
static void children_die_with_the_parent(void **state)
{
    (void)state;
    int alive[2];
    assert_int_equal(pipe(alive), 0);
    pid_t parent = fork();
    if (parent == 0) {
        close(alive[0]);
        dup2(alive[1], 2);
        close(alive[1]);
        struct att_strategy_host *host;
        struct att_search *search_;
        if (att_strategy_host_create(bad, ATT_HOST_CHILD, PATIENT, &host, NULL) != ATT_OK ||
            att_search_begin(host, "odd:how=hang,place=create", att_space_view(space), 1, &search_,
                             NULL) != ATT_OK)
            _exit(1);
        att_clock_sleep_ns(50000000);
        kill(getpid(), SIGKILL);
    }
    close(alive[1]);
    int status;
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_true(WIFSIGNALED(status));
    char byte;
    while (read(alive[0], &byte, 1) > 0)
        ;
    close(alive[0]);
}

static void a_child_that_is_stopped_ends_with_its_host(void **state)
{
    (void)state;
    struct att_strategy_host *host = host_of(ATT_HOST_CHILD, PATIENT);
    FILE *children = fopen("/proc/thread-self/children", "r");
    int pid;
    if (children == NULL) {
        att_strategy_host_destroy(host);
        print_message("skip: this kernel lists no children in /proc\n");
        skip();
    }
    assert_int_equal(fscanf(children, "%d", &pid), 1);
    fclose(children);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    alarm(20);
    att_strategy_host_destroy(host);
    alarm(0);
}

static int setup(void **state)
{
    (void)state;
    space = fixture_space(0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    att_space_destroy(space);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_in_process),
        cmocka_unit_test(refusals_in_a_child),
        cmocka_unit_test(a_file_that_is_no_library),
        cmocka_unit_test(list_names_all_and_hides_the_second),
        cmocka_unit_test(nonsense_in_process),
        cmocka_unit_test(nonsense_in_a_child),
        cmocka_unit_test(usage_counts_asks_and_offline_samples),
        cmocka_unit_test(a_crash_costs_one_search),
        cmocka_unit_test(a_hang_costs_one_search),
        cmocka_unit_test(failure_is_final),
        cmocka_unit_test(many_searches_at_once),
        cmocka_unit_test(a_worker_keeps_nothing_of_its_parent),
        cmocka_unit_test(children_die_with_the_parent),
        cmocka_unit_test(a_child_that_is_stopped_ends_with_its_host),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
