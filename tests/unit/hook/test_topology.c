/* The topology file of variants over shared memory. That NCCL then finds no P2P between two GPUs is
 * measured where there are two (bench/gpu/multi.sh variants). */
#include "hook/topology.h"
#include "isolated.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static void text_of_a_gpu(void **state)
{
    char text[ATT_TOPOLOGY_TEXT];
    int length = att_topology_text("0000:3B:00.0", 1, text, sizeof text);
    assert_int_equal(length, (int)strlen(text));
    assert_non_null(strstr(text, "<cpu numaid=\"1\" vendor=\"GenuineIntel\">"));
    assert_non_null(
        strstr(text, "<pci busid=\"0000:3b:00.0\" class=\"0x030200\">")); /* NCCL's case */
    assert_non_null(
        strstr(text, "<nvlink target=\"0000:00:00.0\" count=\"1\" tclass=\"0x030000\"/>"));
    assert_true(att_topology_text("00000001:06:00.0", -1, text, sizeof text) > 0);
    assert_non_null(strstr(text, "numaid=\"-1\""));
    assert_non_null(strstr(text, "busid=\"0001:06:00.0\""));
}

static void names_that_are_none(void **state)
{
    static const char *const names[] = {"",
                                        "GPU-1",
                                        "0000:06:00",
                                        "0000:06:00.0x",
                                        "0000:06:20.0",
                                        "0000:106:00.0",
                                        "0000:06:00.8",
                                        "0000:06:00.\"/>"};
    char text[ATT_TOPOLOGY_TEXT], small[64];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_int_equal(att_topology_text(names[i], 0, text, sizeof text), -1);
    assert_int_equal(att_topology_text("0000:06:00.0", 0, small, sizeof small), -1);
}

ISOLATED(file_of_the_current_gpu)
{
    char path[32], text[ATT_TOPOLOGY_TEXT] = "";
    CHECK_EQUAL(att_topology_open(path, sizeof path), -1); /* no driver */
    CHECK(dlopen(STUB_CUDA, RTLD_NOW | RTLD_LOCAL) != NULL);
    CHECK_EQUAL(att_topology_open(path, 5), -1);
    int file = att_topology_open(path, sizeof path);
    CHECK(file >= 0);
    int again = open(path, O_RDONLY); /* by its name, from its start, as NCCL does */
    CHECK(again >= 0);
    CHECK(read(again, text, sizeof text - 1) > 0);
    CHECK(strstr(text, "busid=\"0000:3b:00.0\"") != NULL);
    CHECK(strstr(text, "</system>") != NULL);
    close(again);
    close(file);
    CHECK(open(path, O_RDONLY) < 0); /* nothing stays */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_of_a_gpu),
        cmocka_unit_test(names_that_are_none),
        cmocka_unit_test(file_of_the_current_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
