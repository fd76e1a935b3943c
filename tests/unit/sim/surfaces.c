#include "surfaces.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Kernel Tuner's T4, as docs/surfaces.md has it. */
struct att_surface *surface_of_channels(double (*us)(int channels), int most, int native)
{
    static char text[1 << 17];
    size_t n = (size_t)sprintf(
        text,
        "{\"schema_version\":\"1.0.0\",\"metadata\":{\"version\":1,\"name\":\"made-up\","
        "\"description\":\"made up\",\"source\":\"made up\",\"units\":{\"time\":\"us\","
        "\"runtimes\":\"us\",\"size\":\"bytes\"},\"task\":{\"collective\":\"allreduce\","
        "\"bytes\":1048576,\"load\":\"none\"},\"machine\":{\"device\":\"none\",\"device_units\":64,"
        "\"ranks\":4,\"nodes\":1},\"default\":{\"algorithm\":\"ring\",\"protocol\":\"simple\","
        "\"channels\":%d},\"costs\":[{\"algorithm\":\"ring\",\"protocol\":\"simple\","
        "\"cost_us\":30.0}],\"provenance\":{\"date\":\"2026-11-29\"}},\"results\":[",
        native);
    for (int channels = 0; channels <= most; channels++) {
        char words[160];
        snprintf(words, sizeof words,
                 channels == 0
                     ? "\"algorithm\":\"keep\",\"protocol\":\"keep\",\"channels\":\"keep\""
                     : "\"algorithm\":\"ring\",\"protocol\":\"simple\",\"channels\":%d",
                 channels);
        double time = us(channels == 0 ? native : channels);
        n += (size_t)sprintf(
            text + n,
            "%s{\"timestamp\":\"2026-11-29T00:00:00Z\",\"configuration\":{%s,\"transport\":"
            "\"keep\","
            "\"threads\":\"keep\",\"chunk\":\"keep\"},\"objectives\":[\"time\"],\"times\":{"
            "\"compilation_time\":0,\"runtimes\":[%.6f],\"framework\":0,\"search_algorithm\":0,"
            "\"validation\":0},\"invalidity\":\"correct\",\"correctness\":1,\"measurements\":[{"
            "\"name\":\"time\",\"value\":%.6f,\"unit\":\"us\"}]}",
            channels > 0 ? "," : "", words, time, time);
    }
    n += (size_t)sprintf(text + n, "]}");
    struct att_surface *surface;
    att_error_t error = {""};
    if (att_surface_parse(text, n, &surface, &error) != ATT_OK)
        fail_msg("the surface is refused: %s", error.text);
    return surface;
}

struct att_strategy_host *plugin_host(void)
{
    struct att_strategy_host *host;
    assert_int_equal(att_strategy_host_create(ATTUNE_TEST_STRATEGIES ":" ATTUNE_TEST_PLUGINS,
                                              ATT_HOST_INPROCESS, 0, &host, NULL),
                     0);
    return host;
}

att_sim_run_config_t quiet_run(const char *strategy, uint64_t budget)
{
    att_sim_run_config_t run = {.strategy = strategy,
                                .budget = budget,
                                .lead = 1,
                                .samples = 5,
                                .discard = 1,
                                .max_slowdown = 3};
    run.conditions.count = 1;
    return run;
}
