/* Another profiler behind attune's: what reaches it when many events are open at once. */
#include "hook/abi/profiler_v6.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MANY 70000 /* more than the ring of tickets has room for */

static char log_file[] = "/tmp/attune-chain-XXXXXX";
static int mask;

static void *start(void *context, att_event_v6_t event)
{
    void *handle = NULL;
    assert_int_equal(ncclProfiler_v6.start_event(context, &handle, &event), 0);
    return handle;
}

static void *start_kernel(void *context, void *coll)
{
    return start(context, (att_event_v6_t){.type = ATT_EVENT_KERNEL_CH, .parent = coll});
}

/* A profiler takes a parent's handle for a pointer of its own: none is better than a wrong one. */
static void what_hangs_below_an_event_of_long_ago_is_left_out(void **state)
{
    (void)state;
    void *context = NULL;
    assert_int_equal(ncclProfiler_v6.init(&context, 0xabc, &mask, "", 1, 2, 0, NULL), 0);
    void *api_group = start(context, (att_event_v6_t){.type = ATT_EVENT_GROUP_API});
    void *api = start(context, (att_event_v6_t){.type = ATT_EVENT_COLL_API, .parent = api_group});
    void *group = start(context, (att_event_v6_t){.type = 1});
    att_event_v6_t coll_event = {.type = ATT_EVENT_COLL, .parent = api};
    coll_event.coll.group = group;
    void *coll = start(context, coll_event);
    assert_non_null(coll);
    assert_non_null(start_kernel(context, coll));
    for (int i = 0; i < MANY; i++)
        start(context, (att_event_v6_t){.type = ATT_EVENT_GROUP_API});
    assert_null(start_kernel(context, coll));
    assert_int_equal(ncclProfiler_v6.stop_event(coll), 0); /* finds nothing */
    ncclProfiler_v6.finalize(context);
    char line[200] = "";
    FILE *file = fopen(log_file, "re");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    assert_non_null(strstr(line, "colls 1 kernels 1 bad 0 handles 0"));
}

int main(void)
{
    int descriptor = mkstemp(log_file);
    if (descriptor < 0)
        return 1;
    setenv("STUB_LOG", log_file, 1);
    setenv("ATTUNE_CHAIN_PROFILER", STUB, 1);
    setenv("ATTUNE_LOG", "error", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_hangs_below_an_event_of_long_ago_is_left_out),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove(log_file);
    return failed;
}
