/* The shared memory that NCCL makes at the first stamped call of a communicator: no stamps where it
 * would not get it. */
#include "fake_nccl.h"
#include "hook/stamps.h"
#include "isolated.h"

#include <dlfcn.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <cmocka.h>

#define STAMPS (ATT_EVENT_COLL | ATT_EVENT_KERNEL_CH)

static att_segment_process_t *process(void)
{
    return att_hook_attached()->process;
}

ISOLATED(room_is_looked_for)
{
    CHECK(att_stamps_have_room("/", 0));
    CHECK(!att_stamps_have_room("/", 1ull << 40));
    CHECK(!att_stamps_have_room("/nowhere", 0));
}

/* In a mount namespace of its own, where that may be made. */
static bool small_shared_memory(const char *size)
{
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", "/dev/shm", "tmpfs", 0, size) == 0;
}

/* Two ranks, each with two communicators, 33 MiB for each of the four. */
static void two_communicators(const char *size, uint32_t first, uint32_t second)
{
    fake_comm_t comms[2];
    CHECK(dlopen(STUB_CUDA, RTLD_NOW | RTLD_LOCAL) != NULL);
    setenv("ATTUNE_GRAPHS", "no", 1);
    if (!small_shared_memory(size))
        return;
    fake_init(&comms[0], &fake_linked, 6, 0xabc, 2, 0);
    CHECK_EQUAL(atomic_load(&process()->unstamped), first);
    fake_init(&comms[1], &fake_linked, 6, 0xdef, 2, 0);
    CHECK_EQUAL(atomic_load(&process()->unstamped), second);
    atomic_store(&process()->timing, 1);
    fake_call(&comms[0], ATT_COLLECTIVE_ALL_REDUCE, 4096, 100);
    CHECK_EQUAL(fake_mask & STAMPS, second == 0 ? STAMPS : 0);
    fake_destroy(&comms[0]);
    fake_destroy(&comms[1]);
}

ISOLATED(no_stamps_without_room)
{
    two_communicators("size=64m", ATT_UNSTAMPED_ROOM, ATT_UNSTAMPED_ROOM);
}

ISOLATED(a_second_communicator_needs_as_much)
{
    two_communicators("size=90m", 0, ATT_UNSTAMPED_ROOM);
}

ISOLATED(room_for_all)
{
    two_communicators("size=140m", 0, 0);
}

/* What was made is not asked for again. */
ISOLATED(what_was_stamped_has_its_room)
{
    fake_comm_t comms[2];
    CHECK(dlopen(STUB_CUDA, RTLD_NOW | RTLD_LOCAL) != NULL);
    setenv("ATTUNE_GRAPHS", "no", 1);
    if (!small_shared_memory("size=90m"))
        return;
    fake_init(&comms[0], &fake_linked, 6, 0xabc, 2, 0);
    atomic_store(&process()->timing, 1);
    for (int i = 0; i < 3; i++)
        fake_call(&comms[0], ATT_COLLECTIVE_ALL_REDUCE, 4096, 100);
    fake_init(&comms[1], &fake_linked, 6, 0xdef, 2, 0);
    CHECK_EQUAL(atomic_load(&process()->unstamped), 0);
    fake_destroy(&comms[0]);
    fake_destroy(&comms[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(room_is_looked_for),
        cmocka_unit_test(no_stamps_without_room),
        cmocka_unit_test(a_second_communicator_needs_as_much),
        cmocka_unit_test(room_for_all),
        cmocka_unit_test(what_was_stamped_has_its_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
