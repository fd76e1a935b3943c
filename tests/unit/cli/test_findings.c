/* findings: sums over the files that fabric and driver leave; a malformed one is named. */
#include "cli/findings.h"
#include "folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void nothing_there(void **state)
{
    att_findings_t f;
    att_error_t e = {""};
    assert_int_equal(att_findings_read(test_folder, &f, &e), ATT_OK);
    assert_false(f.has_fabric);
    assert_false(f.has_bench);
}

static void sums(void **state)
{
    write_test_file("fabric-1.json", "{\"version\":1,\"fabric\":\"real\",\"surface\":null,"
                                     "\"ranks\":2,\"calls\":10,\"mismatches\":0}");
    write_test_file("fabric-2.json", "{\"version\":1,\"fabric\":\"real\",\"surface\":\"\","
                                     "\"load\":\"none\",\"ranks\":4,\"calls\":5,\"mismatches\":3}");
    write_test_file("bench-1.json", "{\"version\":1,\"result_errors\":2}");
    write_test_file("bench-2.json", "{\"version\":1,\"result_errors\":5}");
    write_test_file("manifest.json", "not for us");
    att_findings_t f;
    att_error_t e = {""};
    assert_int_equal(att_findings_read(test_folder, &f, &e), ATT_OK);
    assert_true(f.has_fabric);
    assert_string_equal(f.fabric, "real");
    assert_string_equal(f.surface, "");
    assert_int_equal(f.ranks, 4);
    assert_int_equal(f.calls, 15);
    assert_int_equal(f.mismatches, 3);
    assert_true(f.has_bench);
    assert_int_equal(f.result_errors, 7);
}

static void refused(const char *name, const char *text, int code)
{
    write_test_file(name, text);
    att_findings_t f;
    att_error_t e = {""};
    assert_int_equal(att_findings_read(test_folder, &f, &e), code);
    assert_non_null(strstr(e.text, name));
}

static void malformed(void **state)
{
    refused("bench-1.json", "{\"version\":1,\"result_errors\":-1}", -ATT_EINPUT);
    refused("bench-1.json", "{\"version\":1}", -ATT_EINPUT);
    refused("bench-1.json", "{\"version\":3,\"result_errors\":0}", -ATT_EVERSION);
    write_test_file("bench-1.json", "{\"version\":1,\"result_errors\":0}");
    refused("fabric-1.json",
            "{\"version\":1,\"fabric\":\"fast\",\"ranks\":1,\"calls\":1,"
            "\"mismatches\":0}",
            -ATT_EINPUT);
    refused("fabric-1.json", "{\"version\":1,", -ATT_EINPUT);
}

/* The folder's name is no pattern. */
static void odd_folder_name(void **state)
{
    char inner[PATH_MAX + 64];
    snprintf(inner, sizeof inner, "mkdir '%s/a[b]*'", test_folder);
    assert_int_equal(system(inner), 0);
    write_test_file("a[b]*/bench-1.json", "{\"version\":1,\"result_errors\":1}");
    snprintf(inner, sizeof inner, "%s/a[b]*", test_folder);
    att_findings_t f;
    att_error_t e = {""};
    assert_int_equal(att_findings_read(inner, &f, &e), ATT_OK);
    assert_int_equal(f.result_errors, 1);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_test_folder, remove_test_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(nothing_there),
        IN_FOLDER(sums),
        IN_FOLDER(malformed),
        IN_FOLDER(odd_folder_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
