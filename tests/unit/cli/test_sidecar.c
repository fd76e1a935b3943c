/* sidecar: every answer that it can give, and how it is ended; played by small shell scripts. */
#include "cli/sidecar.h"
#include "folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>

#include <cmocka.h>

static att_config_t config;
static att_sidecar_t sidecar;
static sigset_t mask, wake;

static int start_config(void **state)
{
    sigprocmask(SIG_SETMASK, NULL, &mask);
    sigemptyset(&wake);
    sigaddset(&wake, SIGUSR1);
    sigprocmask(SIG_BLOCK, &wake, NULL);
    return make_test_folder(state) != 0 || att_config_init(&config, NULL) != ATT_OK;
}

static int end_config(void **state)
{
    att_sidecar_stop(&sidecar, 100);
    att_config_free(&config);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    return remove_test_folder(state);
}

static void play(const char *body)
{
    char text[PATH_MAX + 1024], program[PATH_MAX + 32], log[PATH_MAX + 32];
    att_error_t e = {""};
    snprintf(text, sizeof text,
             "#!/bin/sh\nfor a in \"$@\"; do [ \"$last\" = --ready-fd ] && fd=$a; last=$a; done\n"
             "here=%s\n%s\n",
             test_folder, body);
    write_test_file("program", text);
    snprintf(program, sizeof program, "%s/program", test_folder);
    snprintf(log, sizeof log, "%s/log", test_folder);
    assert_int_equal(chmod(program, 0755), 0);
    if (att_sidecar_start(&sidecar, program, &config, log, &mask, &e) != ATT_OK)
        fail_msg("%s", e.text);
}

static void expect_answer(int limit_ms, int code, const char *text)
{
    att_error_t e = {""};
    int rc = att_sidecar_wait_ready(&sidecar, &wake, limit_ms, &e);
    if (rc != code || (text != NULL && strstr(e.text, text) == NULL))
        fail_msg("%d '%s'", rc, e.text);
    assert_null(strchr(e.text, '\n'));
}

static void ready_and_stopped(void **state)
{
    play("trap 'exit 3' TERM; eval \"printf + >&$fd\"; while :; do sleep 0.02; done");
    expect_answer(20000, ATT_OK, NULL);
    assert_true(att_sidecar_running(&sidecar));
    att_sidecar_stop(&sidecar, 20000);
    assert_string_equal(sidecar.end, "exit status 3");
    assert_false(att_sidecar_running(&sidecar));
}

static void says_why_not(void **state)
{
    play("eval \"echo 'no space' >&$fd\"; exit 5");
    expect_answer(20000, -ATT_EFAIL, "no space");
}

static void ends_without_a_word(void **state)
{
    play("exit 5");
    expect_answer(20000, -ATT_EFAIL, "it ended before it was ready");
}

/* A child of it that keeps the descriptor open does not hide its end. */
static void ends_with_the_descriptor_open(void **state)
{
    play("sleep 30 & echo $! >$here/left; exit 5");
    expect_answer(20000, -ATT_EFAIL, "exit status 5");
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/left", test_folder);
    FILE *file = fopen(path, "r");
    int left = 0;
    assert_true(file != NULL && fscanf(file, "%d", &left) == 1 && left > 1);
    fclose(file);
    kill(left, SIGKILL);
}

static void never_ready(void **state)
{
    play("exec sleep 30");
    expect_answer(50, -ATT_ETIMEOUT, "not ready");
}

static void woken_by_a_signal(void **state)
{
    play("exec sleep 30");
    raise(SIGUSR1);
    expect_answer(20000, -ATT_EBUSY, NULL);
    const struct timespec now = {0, 0};
    assert_int_equal(sigtimedwait(&wake, NULL, &now), SIGUSR1);
}

static void killed_when_deaf(void **state)
{
    play("trap '' TERM; eval \"printf + >&$fd\"; while :; do sleep 0.02; done");
    expect_answer(20000, ATT_OK, NULL);
    att_sidecar_stop(&sidecar, 50);
    assert_non_null(strstr(sidecar.end, "killed by signal 9"));
}

static void paused_one_ends_well(void **state)
{
    play("trap 'exit 0' TERM; eval \"printf + >&$fd\"; while :; do sleep 0.02; done");
    expect_answer(20000, ATT_OK, NULL);
    kill(sidecar.pid, SIGSTOP);
    att_sidecar_stop(&sidecar, 20000);
    assert_string_equal(sidecar.end, "exit status 0");
}

static void no_such_program(void **state)
{
    char log[PATH_MAX + 32];
    att_error_t e = {""};
    snprintf(log, sizeof log, "%s/log", test_folder);
    assert_int_equal(att_sidecar_start(&sidecar, "/nonexistent/attuned", &config, log, &mask, &e),
                     ATT_OK);
    expect_answer(20000, -ATT_EFAIL, "/nonexistent/attuned: No such file");
}

#define PLAYED(test) cmocka_unit_test_setup_teardown(test, start_config, end_config)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAYED(ready_and_stopped),   PLAYED(says_why_not),
        PLAYED(ends_without_a_word), PLAYED(ends_with_the_descriptor_open),
        PLAYED(never_ready),         PLAYED(woken_by_a_signal),
        PLAYED(killed_when_deaf),    PLAYED(paused_one_ends_well),
        PLAYED(no_such_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
