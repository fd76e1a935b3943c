/* In a process with closed standard streams, what attune opens keeps clear of descriptors 0, 1
 * and 2. */
#include "base/descriptor.h"
#include "base/log.h"
#include "base/segment.h"
#include "base/status.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/att-descriptor-XXXXXX";

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) != -1;
}

/* Run in a child without standard streams; its exit status says where it failed, 0 nowhere. */
static void without_streams(int (*check)(void))
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        for (int fd = 0; fd <= 2; fd++)
            close(fd);
        _exit(check());
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static int keep(void)
{
    int fd = att_descriptor_keep(open("/dev/null", O_RDWR));
    if (fd < 3 || (fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0)
        return 1;
    if (is_open(0) || is_open(1) || is_open(2))
        return 2;
    if (att_descriptor_keep(fd) != fd || !is_open(fd))
        return 3;
    return att_descriptor_keep(-1) == -1 ? 0 : 4;
}

static void test_keep(void **state)
{
    (void)state;
    without_streams(keep);
}

static int hold(int flags)
{
    if (open("/dev/zero", O_RDONLY) != 0) /* the one that is open stays what it is */
        return 1;
    att_descriptor_hold_standard(flags);
    char byte = 1;
    if (!is_open(0) || !is_open(1) || !is_open(2))
        return 2;
    bool goes_nowhere = write(1, &byte, 1) == 1, ours = flags == O_CLOEXEC;
    if (read(0, &byte, 1) != 1 || byte != 0 || goes_nowhere == ours || write(2, &byte, 1) != 1)
        return 3;
    bool kept_from_children = (fcntl(1, F_GETFD) & FD_CLOEXEC) != 0;
    return kept_from_children == ours ? 0 : 4;
}

static int hold_for_children(void)
{
    return hold(0);
}

static int hold_for_us(void)
{
    return hold(O_CLOEXEC);
}

static void test_hold(void **state)
{
    (void)state;
    without_streams(hold_for_children);
    without_streams(hold_for_us);
}

static int finish_output(void)
{
    if (att_descriptor_finish_output(3) != 3)
        return 1;
    att_descriptor_hold_standard(O_CLOEXEC);
    if (att_descriptor_finish_output(0) != 0) /* nothing was printed: nothing is lost */
        return 2;
    printf("a result\n");
    if (att_descriptor_finish_output(0) != ATT_ESYSTEM)
        return 3;
    return att_descriptor_finish_output(1) == 1 ? 0 : 4;
}

static void test_finish_output(void **state)
{
    (void)state;
    without_streams(finish_output);
}

static int open_files(void)
{
    char path[256];
    struct att_segment *made, *joined;
    const att_segment_name_t name = {.directory = folder, .run_id = "closed"};
    if (att_segment_open(&name, ATT_SEGMENT_AGENT, &made, NULL) != ATT_OK)
        return 1;
    pid_t pid = fork();
    if (pid == 0)
        _exit(att_segment_open(&name, ATT_SEGMENT_HOOK, &joined, NULL) != ATT_OK || is_open(0) ||
              is_open(1) || is_open(2));
    int status = -1;
    if (waitpid(pid, &status, 0) != pid || status != 0)
        return 2;
    snprintf(path, sizeof path, "%s/log", folder);
    if (att_log_set_file(path) != ATT_OK)
        return 3;
    if (is_open(0) || is_open(1) || is_open(2))
        return 4;
    att_segment_close(made);
    return 0;
}

static void test_open_files(void **state)
{
    (void)state;
    without_streams(open_files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keep),
        cmocka_unit_test(test_hold),
        cmocka_unit_test(test_finish_output),
        cmocka_unit_test(test_open_files),
    };
    if (mkdtemp(folder) == NULL)
        return 1;
    int failed = cmocka_run_group_tests_name("descriptor", tests, NULL, NULL);
    char path[256];
    snprintf(path, sizeof path, "%s/log", folder);
    unlink(path);
    rmdir(folder);
    return failed;
}
