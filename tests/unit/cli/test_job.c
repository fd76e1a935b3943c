/* job: exit statuses as shells give them, and what cannot be run. */
#include "cli/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static sigset_t mask;

static int run_to_end(const char *script)
{
    const char *words[] = {"sh", "-c", script, NULL};
    att_job_t job;
    att_error_t e = {""};
    if (att_job_start(&job, (char **)(uintptr_t)words, &mask, &e) != ATT_OK)
        fail_msg("%s", e.text);
    assert_int_equal(job.exit_status, -1);
    while (att_job_running(&job))
        usleep(1000);
    assert_int_equal(job.pid, 0);
    return job.exit_status;
}

static void exit_statuses(void **state)
{
    assert_int_equal(run_to_end("exit 0"), 0);
    assert_int_equal(run_to_end("exit 255"), 255);
    assert_int_equal(run_to_end("kill -TERM $$"), 143);
    assert_int_equal(run_to_end("kill -KILL $$"), 137);
}

static void cannot_run(const char *program, int code, int exit_status)
{
    const char *words[] = {program, NULL};
    att_job_t job;
    att_error_t e = {""};
    assert_int_equal(att_job_start(&job, (char **)(uintptr_t)words, &mask, &e), code);
    assert_int_equal(job.exit_status, exit_status);
    assert_int_equal(job.pid, 0);
    assert_non_null(strstr(e.text, program));
    att_error_t checked = {""};
    assert_int_equal(att_job_check(&job, (char **)(uintptr_t)words, &checked), code);
    assert_int_equal(job.exit_status, exit_status);
    assert_string_equal(checked.text, e.text);
}

static void what_cannot_be_run(void **state)
{
    cannot_run("no-such-program-anywhere", -ATT_ENOENT, 127);
    cannot_run("/etc/passwd", -ATT_EPERMISSION, 126);
    cannot_run("/", -ATT_EPERMISSION, 126);
    cannot_run("", -ATT_ENOENT, 127);
    cannot_run("/etc/passwd/below", -ATT_EPERMISSION, 126);
}

/* PATH as execvp takes it: what may not be executed is passed over for a later one, nothing between
 * two colons is here. */
static void found_in_path(void **state)
{
    const char *words[] = {"sh", NULL};
    att_job_t job;
    att_error_t e = {""};
    char *path = strdup(getenv("PATH"));
    assert_int_equal(chdir("/bin"), 0);
    const char *const good[] = {path, "/nowhere:/bin", "/nowhere::", ""};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        setenv("PATH", good[i], 1);
        if (att_job_check(&job, (char **)(uintptr_t)words, &e) != ATT_OK)
            fail_msg("PATH '%s': %s", good[i], e.text);
    }
    unsetenv("PATH");
    assert_int_equal(att_job_check(&job, (char **)(uintptr_t)words, &e), ATT_OK);
    setenv("PATH", "/etc", 1);
    cannot_run("passwd", -ATT_EPERMISSION, 126);
    cannot_run("sh", -ATT_ENOENT, 127);
    setenv("PATH", path, 1);
    free(path);
    assert_int_equal(chdir("/"), 0);
}

/* kill(2) from a process is passed on; what the terminal sends reached the job as well. */
static void forwarding(void **state)
{
    const char *words[] = {"sleep", "30", NULL};
    att_job_t job;
    att_error_t e = {""};
    assert_int_equal(att_job_start(&job, (char **)(uintptr_t)words, &mask, &e), ATT_OK);
    siginfo_t info = {.si_signo = SIGINT, .si_code = SI_KERNEL};
    att_job_forward(&job, &info);
    assert_true(att_job_running(&job));
    info = (siginfo_t){.si_signo = SIGTERM, .si_code = SI_USER};
    att_job_forward(&job, &info);
    while (att_job_running(&job))
        usleep(1000);
    assert_int_equal(job.exit_status, 143);
    att_job_forward(&job, &info); /* nobody is there */
}

int main(void)
{
    sigprocmask(SIG_SETMASK, NULL, &mask);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_statuses),
        cmocka_unit_test(what_cannot_be_run),
        cmocka_unit_test(found_in_path),
        cmocka_unit_test(forwarding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
