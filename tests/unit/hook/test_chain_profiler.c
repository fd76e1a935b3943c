/* Another profiler behind attune's: what reaches it when many events are open at once. */
#include "hook/abi/profiler_v6.h"
#include "hook/abi/tuner_v6.h"
#include "hook/hook.h"
#include "isolated.h"

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

/* attune's part of NCCL's mask is taken away at once: nothing else may come before NCCL reads it.
 */
ISOLATED(an_end_of_stamps_reaches_nccl)
{
    void *context = NULL, *tuner = NULL;
    static att_tuner_constants_v5_t constants;
    att_nvl_domains_v5_t domains = {1, 2, 2};
    setenv("STUB_MASK", "768", 1); /* GroupApi and CollApi */
    setenv("STUB_LOG", "/dev/null", 1);
    CHECK_EQUAL(ncclProfiler_v6.init(&context, 0xdef, &mask, "", 1, 2, 0, NULL), 0);
    CHECK_EQUAL(ncclTunerPlugin_v6.init(&tuner, 0xdef, 2, 1, NULL, &domains, &constants), 0);
    atomic_store(&att_hook_attached()->process->timing, 1);
    float table[ATT_PAIR_COUNT];
    for (int i = 0; i < ATT_PAIR_COUNT; i++)
        table[i] = i < 6 ? 50.0f : -1.0f;
    int channels = 0;
    CHECK_EQUAL(ncclTunerPlugin_v6.get_coll_info(tuner, ATT_COLLECTIVE_ALL_REDUCE, 4096, 1,
                                                 (float **)(void *)table, ATT_NCCL_ALGORITHMS, 3, 0,
                                                 &channels),
                0);
    CHECK_EQUAL(mask & ATT_EVENT_KERNEL_CH, ATT_EVENT_KERNEL_CH);
    start(context, (att_event_v6_t){.type = ATT_EVENT_GROUP_API});
    for (int root = 0; root < 2; root++) {
        att_event_v6_t event = {.type = ATT_EVENT_COLL_API};
        event.coll_api.function = "Broadcast";
        event.coll_api.root = root;
        start(context, event);
    }
    CHECK_EQUAL(mask & ATT_EVENT_KERNEL_CH, 0);
    ncclTunerPlugin_v6.finalize(tuner);
    ncclProfiler_v6.finalize(context);
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
        cmocka_unit_test(
            an_end_of_stamps_reaches_nccl), /* in a process where nothing was chained yet */
        cmocka_unit_test(what_hangs_below_an_event_of_long_ago_is_left_out),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove(log_file);
    return failed;
}
