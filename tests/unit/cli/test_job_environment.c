/* job environment: what the command gets, and which plugins of the user are refused. */
#include "cli/job_environment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int clear(void **state)
{
    unsetenv("NCCL_TUNER_PLUGIN");
    unsetenv("NCCL_PROFILER_PLUGIN");
    unsetenv("NCCL_RUNTIME_CONNECT");
    unsetenv("LD_LIBRARY_PATH");
    for (size_t i = 0; i < att_option_row_count; i++)
        unsetenv(att_option_rows[i].variable);
    return 0;
}

static void other_plugins_are_seen(void **state)
{
    assert_null(att_job_environment_other("NCCL_TUNER_PLUGIN"));
    setenv("NCCL_TUNER_PLUGIN", "", 1);
    assert_null(att_job_environment_other("NCCL_TUNER_PLUGIN"));
    static const char *const own[] = {"/elsewhere/libattune-nccl.so", "libattune-nccl.so",
                                      "attune"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        setenv("NCCL_TUNER_PLUGIN", own[i], 1);
        assert_null(att_job_environment_other("NCCL_TUNER_PLUGIN"));
    }
    static const char *const others[] = {"inspector", "none", "/a/libattune-nccl.so/other.so"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        setenv("NCCL_TUNER_PLUGIN", others[i], 1);
        assert_string_equal(att_job_environment_other("NCCL_TUNER_PLUGIN"), others[i]);
    }
}

static void apply_to_job(const char *fabric)
{
    att_places_t places = {.hook = "/x/libattune-nccl.so", .fabric = "/x/fabric"};
    att_job_folder_t folder = {.path = "/runs/r", .run_id = "r"};
    att_config_t config;
    att_error_t e = {""};
    assert_int_equal(att_config_init(&config, &e), ATT_OK);
    assert_int_equal(att_config_set(&config, "fabric", fabric, "x", &e), ATT_OK);
    assert_int_equal(att_config_set(&config, "surface", "s", "x", &e), ATT_OK);
    assert_int_equal(att_config_set(&config, "load", "heavy", "x", &e), ATT_OK);
    if (att_job_environment_set(&places, &config, &folder, &e) != ATT_OK)
        fail_msg("%s", e.text);
    att_config_free(&config);
}

static void other_plugins_are_chained(void **state)
{
    unsetenv("ATTUNE_CHAIN_PROFILER");
    setenv("NCCL_TUNER_PLUGIN", "ofi", 1);
    setenv("NCCL_PROFILER_PLUGIN", "attune", 1);
    apply_to_job("none");
    assert_string_equal(getenv("NCCL_TUNER_PLUGIN"), "/x/libattune-nccl.so");
    assert_string_equal(getenv("ATTUNE_CHAIN_TUNER"), "ofi");
    assert_null(getenv("ATTUNE_CHAIN_PROFILER"));
    setenv("NCCL_TUNER_PLUGIN", "other", 1);
    apply_to_job("none"); /* the user's own word stands */
    assert_string_equal(getenv("ATTUNE_CHAIN_TUNER"), "ofi");
    unsetenv("ATTUNE_CHAIN_TUNER");
}

static void a_name_that_leads_to_the_hook_is_kept(void **state)
{
    setenv("NCCL_TUNER_PLUGIN", "libattune-nccl.so", 1);
    setenv("NCCL_PROFILER_PLUGIN", "libattune-nccl.so", 1);
    setenv("LD_LIBRARY_PATH", "/a:/x", 1);
    apply_to_job("none");
    assert_string_equal(getenv("NCCL_TUNER_PLUGIN"), "libattune-nccl.so");
    assert_string_equal(getenv("NCCL_PROFILER_PLUGIN"), "libattune-nccl.so");
    setenv("LD_LIBRARY_PATH", "/a:/x2:/", 1); /* to another one, or to none */
    apply_to_job("none");
    assert_string_equal(getenv("NCCL_TUNER_PLUGIN"), "/x/libattune-nccl.so");
    unsetenv("LD_LIBRARY_PATH");
    setenv("NCCL_TUNER_PLUGIN", "libattune-nccl.so", 1);
    apply_to_job("none");
    assert_string_equal(getenv("NCCL_TUNER_PLUGIN"), "/x/libattune-nccl.so");
}

static const char *graphs = "yes";

static void apply_preload(const char *when, const char *hook, int expected)
{
    att_places_t places;
    att_job_folder_t folder = {.path = "/runs/r", .run_id = "r"};
    att_config_t config;
    att_error_t e = {""};
    memset(&places, 0, sizeof places);
    snprintf(places.hook, sizeof places.hook, "%s", hook);
    assert_int_equal(att_config_init(&config, &e), ATT_OK);
    assert_int_equal(att_config_set(&config, "preload", when, "x", &e), ATT_OK);
    assert_int_equal(att_config_set(&config, "graphs", graphs, "x", &e), ATT_OK);
    assert_int_equal(att_job_environment_set(&places, &config, &folder, &e), expected);
    att_config_free(&config);
}

static void preload_is_asked_for(void **state)
{
    unsetenv("LD_PRELOAD");
    apply_preload("off", "/x/h.so", ATT_OK);
    graphs = "no";
    apply_preload("auto", "/x/h.so", ATT_OK);
    graphs = "yes";
    apply_preload("auto", "/a folder/h.so", ATT_OK); /* warned */
    assert_null(getenv("LD_PRELOAD"));
    apply_preload("auto", "/x/h.so", ATT_OK);
    assert_string_equal(getenv("LD_PRELOAD"), "/x/h.so");
    unsetenv("LD_PRELOAD");
    apply_preload("on", "/x/h.so", ATT_OK);
    assert_string_equal(getenv("LD_PRELOAD"), "/x/h.so");
    setenv("LD_PRELOAD", "/a.so /b.so", 1);
    apply_preload("on", "/x/h.so", ATT_OK);
    assert_string_equal(getenv("LD_PRELOAD"), "/x/h.so:/a.so /b.so");
    apply_preload("on", "/x/h.so", ATT_OK);
    assert_string_equal(getenv("LD_PRELOAD"), "/x/h.so:/a.so /b.so");
    apply_preload("on", "/b.so", ATT_OK);
    assert_string_equal(getenv("LD_PRELOAD"), "/x/h.so:/a.so /b.so");
    apply_preload("on", "/x/h", ATT_OK);
    assert_string_equal(getenv("LD_PRELOAD"), "/x/h:/x/h.so:/a.so /b.so");
    apply_preload("on", "/a folder/h.so", -ATT_EUSAGE);
    unsetenv("LD_PRELOAD");
}

static void without_fabric(void **state)
{
    setenv("LD_LIBRARY_PATH", "/mine", 1);
    apply_to_job("none");
    assert_string_equal(getenv("NCCL_TUNER_PLUGIN"), "/x/libattune-nccl.so");
    assert_string_equal(getenv("NCCL_PROFILER_PLUGIN"), "/x/libattune-nccl.so");
    assert_string_equal(getenv("NCCL_RUNTIME_CONNECT"), "0");
    assert_string_equal(getenv("ATTUNE_RUN_ID"), "r");
    assert_string_equal(getenv("ATTUNE_RUN_DIR"), "/runs/r");
    assert_string_equal(getenv("ATTUNE_SHM_DIR"), "/dev/shm");
    assert_string_equal(getenv("LD_LIBRARY_PATH"), "/mine");
    assert_null(getenv("ATTUNE_NODE"));
    assert_null(getenv("ATTUNE_FABRIC_MODE"));
}

static void with_fabric(void **state)
{
    setenv("NCCL_RUNTIME_CONNECT", "1", 1);
    setenv("LD_LIBRARY_PATH", "/mine:/yours", 1);
    apply_to_job("model");
    assert_string_equal(getenv("LD_LIBRARY_PATH"), "/x/fabric:/mine:/yours");
    assert_string_equal(getenv("ATTUNE_FABRIC_MODE"), "model");
    assert_string_equal(getenv("ATTUNE_FABRIC_SURFACE"), "s");
    assert_string_equal(getenv("ATTUNE_FABRIC_LOAD"), "heavy");
    assert_string_equal(getenv("NCCL_RUNTIME_CONNECT"), "1");
    clear(state);
    apply_to_job("model");
    assert_string_equal(getenv("LD_LIBRARY_PATH"), "/x/fabric");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(other_plugins_are_seen, clear),
        cmocka_unit_test_setup(other_plugins_are_chained, clear),
        cmocka_unit_test_setup(a_name_that_leads_to_the_hook_is_kept, clear),
        cmocka_unit_test_setup(preload_is_asked_for, clear),
        cmocka_unit_test_setup(without_fabric, clear),
        cmocka_unit_test_setup(with_fabric, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
