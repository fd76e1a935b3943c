/* job folder: made, taken when empty, refused when not; ids are checked; the manifest's form. */
#include "cli/job_folder.h"
#include "folder.h"

#include <ctype.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const char *inside(const char *name)
{
    static char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", test_folder, name);
    return path;
}

static void made_with_those_above(void **state)
{
    att_job_folder_t f;
    att_error_t e = {""};
    assert_int_equal(att_job_folder_create(inside("a/b/c//"), "my-run.1", &f, &e), ATT_OK);
    assert_string_equal(f.path, inside("a/b/c"));
    assert_string_equal(f.name, "c");
    assert_string_equal(f.run_id, "my-run.1");
    assert_int_equal(access(inside("a/b/c/manifest.json"), F_OK), 0);
}

static void made_up_ids_differ(void **state)
{
    att_job_folder_t f, g;
    att_error_t e = {""};
    assert_int_equal(chdir(test_folder), 0);
    assert_int_equal(att_job_folder_create("", "", &f, &e), ATT_OK);
    for (const char *c = f.run_id; *c != '\0'; c++)
        assert_true(isalnum((unsigned char)*c) || *c == '-');
    assert_int_equal(strncmp(f.name, "attune-", 7), 0);
    assert_string_equal(f.name + 7, f.run_id);
    assert_int_equal(att_job_folder_create(inside("second"), "", &g, &e), ATT_OK);
    assert_string_not_equal(f.run_id, g.run_id);
    assert_int_equal(chdir("/"), 0);
}

static void refused(const char *path, const char *id, int code, const char *part)
{
    att_job_folder_t f;
    att_error_t e = {""};
    int rc = att_job_folder_create(path, id, &f, &e);
    if (rc != code || strstr(e.text, part) == NULL)
        fail_msg("%d '%s'", rc, e.text);
}

static void what_is_refused(void **state)
{
    write_test_file("file", "x");
    refused(test_folder, "", -ATT_EUSAGE, "not empty");
    refused(inside("file"), "", -ATT_ESYSTEM, "file");
    refused(inside("file/below"), "", -ATT_ESYSTEM, "cannot be made");
    refused("/proc/attune-run", "", -ATT_ESYSTEM, "cannot be made");
    refused(inside("x"), "a/b", -ATT_EUSAGE, "'a/b'");
    refused(inside("x"), "a b", -ATT_EUSAGE, "'a b'");
    char id[100];
    memset(id, 'i', sizeof id);
    id[99] = '\0';
    refused(inside("x"), id, -ATT_EUSAGE, "longer");
    assert_int_not_equal(access(inside("x"), F_OK), 0); /* nothing is made before the check */
}

static void manifest_form(void **state)
{
    att_job_folder_t f;
    att_config_t config;
    att_error_t e = {""};
    const char *argv[] = {"run", "--", "cmd", NULL}, *command[] = {"cmd", "na\xefve", NULL};
    const char *environment[] = {"NCCL_DEBUG=WARN", "HOME=/root", "ATTUNE_LOG=info", "broken",
                                 NULL};
    assert_int_equal(att_config_init(&config, &e), ATT_OK);
    assert_int_equal(att_job_folder_create(inside("m"), "id", &f, &e), ATT_OK);
    att_manifest_t m = {.argv = (char **)(uintptr_t)argv,
                        .command = (char **)(uintptr_t)command,
                        .environment = (char **)(uintptr_t)environment,
                        .config = &config,
                        .sidecar = "/x/attuned",
                        .exit_status = -1};
    if (att_job_folder_manifest(&f, &m, &e) != ATT_OK)
        fail_msg("%s", e.text);
    json_t *root = json_load_file(inside("m/manifest.json"), 0, NULL);
    assert_true(json_is_null(json_object_get(root, "exit_status")));
    assert_true(json_is_null(json_object_get(root, "ended")));
    json_t *kept = json_object_get(root, "environment");
    assert_int_equal(json_object_size(kept), 2);
    assert_string_equal(json_string_value(json_object_get(kept, "NCCL_DEBUG")), "WARN");
    assert_string_equal(json_string_value(json_array_get(json_object_get(root, "command"), 1)),
                        "na?ve");
    json_decref(root);
    m.exit_status = 137;
    m.sidecar_end = "exit status 0";
    assert_int_equal(att_job_folder_manifest(&f, &m, &e), ATT_OK);
    root = json_load_file(inside("m/manifest.json"), 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(root, "exit_status")), 137);
    assert_true(json_real_value(json_object_get(root, "duration_s")) >= 0);
    json_decref(root);
    att_config_free(&config);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_test_folder, remove_test_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(made_with_those_above),
        IN_FOLDER(made_up_ids_differ),
        IN_FOLDER(what_is_refused),
        IN_FOLDER(manifest_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
