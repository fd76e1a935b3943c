/* Why hook and sidecar do not meet: each reason from what lies in the folder. */
#include "base/segment.h"
#include "base/visibility.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/att-visible-XXXXXX";
static char path[256]; /* what this process wants */

static const char *why(void)
{
    static char text[512];
    att_visibility_text(path, text, sizeof text);
    return text;
}

/* An agent of another process serves `run` (and `node`) while the check runs. */
static void with_agent(const char *run, const char *node, const char *expected)
{
    int ready[2], gate[2];
    char byte = 'r';
    assert_int_equal(pipe(ready) | pipe(gate), 0);
    pid_t agent = fork();
    if (agent == 0) {
        close(gate[1]);
        att_segment_name_t name = {folder, run, node};
        struct att_segment *segment;
        if (att_segment_open(&name, ATT_SEGMENT_AGENT, &segment, NULL) != ATT_OK ||
            write(ready[1], &byte, 1) != 1 || read(gate[0], &byte, 1) != 0)
            _exit(1);
        att_segment_close(segment);
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    const char *text = why();
    close(gate[1]);
    int status = 1;
    waitpid(agent, &status, 0);
    assert_int_equal(status, 0);
    if (strstr(text, expected) == NULL)
        fail_msg("'%s' does not say '%s'", text, expected);
    close(gate[0]);
    close(ready[0]);
    close(ready[1]);
}

static void test_nothing_there(void **state)
{
    (void)state;
    assert_non_null(strstr(why(), "it has not started, or it is in another mount namespace"));
    assert_non_null(strstr(why(), "mnt:["));
    assert_non_null(strstr(why(), folder));
    setenv("APPTAINER_CONTAINER", "/images/train.sif", 1);
    assert_string_equal(att_visibility_container(), "Apptainer");
    assert_non_null(strstr(why(), ", Apptainer)"));
    unsetenv("APPTAINER_CONTAINER");
}

static void test_other_run(void **state)
{
    (void)state;
    with_agent("other", NULL, "the run ids (ATTUNE_RUN_ID, else SLURM_JOB_ID) differ");
}

static void test_other_node(void **state)
{
    (void)state;
    with_agent("mine", "n7", "the node names (ATTUNE_NODE) differ");
}

static void test_dead_neighbour_says_nothing(void **state)
{
    (void)state;
    char other[300];
    snprintf(other, sizeof other, "%s/attune-%u-other", folder, (unsigned)geteuid());
    close(open(other, O_CREAT | O_RDWR, 0600));
    assert_non_null(strstr(why(), "has not started"));
    unlink(other);
}

static void test_other_user(void **state)
{
    (void)state;
    char other[300], expected[64];
    snprintf(other, sizeof other, "%s/attune-%u-mine", folder, (unsigned)geteuid() + 7);
    snprintf(expected, sizeof expected, "but this process runs as user %u", (unsigned)geteuid());
    close(open(other, O_CREAT | O_RDWR, 0600));
    assert_non_null(strstr(why(), expected));
    unlink(other);
}

static void test_odd_names(void **state)
{
    (void)state;
    char text[512];
    static const char *const odd[] = {"",  "x", "/", "/nonexistent/attune-0-x", "/tmp/attune-",
                                      NULL};
    for (int i = 0; odd[i] != NULL; i++) {
        att_visibility_text(odd[i], text, sizeof text);
        assert_non_null(strstr(text, "no sidecar"));
    }
}

static int clean_up(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    unsetenv("ATTUNE_NODE");
    if (mkdtemp(folder) == NULL)
        return 1;
    snprintf(path, sizeof path, "%s/attune-%u-mine", folder, (unsigned)geteuid());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_there), cmocka_unit_test(test_other_run),
        cmocka_unit_test(test_other_node),    cmocka_unit_test(test_dead_neighbour_says_nothing),
        cmocka_unit_test(test_other_user),    cmocka_unit_test(test_odd_names),
    };
    return cmocka_run_group_tests_name("base_visibility", tests, NULL, clean_up);
}
