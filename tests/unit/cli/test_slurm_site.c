/* What srun, scontrol and attuned print, in the forms of several versions. */
#include "cli/slurm_site.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void version(const char *text, int major, int minor, const char *whole)
{
    att_slurm_site_t site = {0};
    assert_int_equal(att_slurm_read_version(text, strlen(text), &site, NULL), 0);
    assert_int_equal(site.major, major);
    assert_int_equal(site.minor, minor);
    assert_string_equal(site.version, whole);
}

static void test_versions(void **state)
{
    (void)state;
    version("slurm 22.05.8\n", 22, 5, "22.05.8");
    version("slurm-wlm 22.05.8\n", 22, 5, "22.05.8");
    version("slurm 20.11.9-1chaos\n", 20, 11, "20.11.9-1chaos");
    version("slurm 23.11.0-0rc1", 23, 11, "23.11.0-0rc1");
    version("19.05", 19, 5, "19.05");
    att_slurm_site_t site = {0};
    att_error_t error;
    static const char *const wrong[] = {"",       "slurm",   "slurm 22", "slurm 22.",
                                        "a22.05", "99999.1", "."};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(att_slurm_read_version(wrong[i], strlen(wrong[i]), &site, &error),
                         -ATT_EINPUT);
        assert_non_null(strstr(error.text, "is no version of Slurm"));
    }
}

static void overlap(int major, int minor, bool has, bool mutual)
{
    att_slurm_site_t site = {.major = major, .minor = minor};
    assert_int_equal(att_slurm_has_overlap(&site), has);
    assert_int_equal(att_slurm_overlap_is_mutual(&site), mutual);
}

static void test_overlap(void **state)
{
    (void)state;
    overlap(18, 8, false, false);
    overlap(20, 2, false, false);
    overlap(20, 11, true, true);
    overlap(21, 8, true, true);
    overlap(22, 5, true, false);
    overlap(26, 5, true, false);
}

static void test_mpi_lists(void **state)
{
    (void)state;
    static const char now[] =
        "MPI plugin types are...\n\tpmix\n\tnone\n\tcray_shasta\n\tpmi2\nspecific "
        "pmix plugin versions available: pmix_v4\n";
    static const char old[] = "srun: MPI types are...\nsrun: pmix_v3\nsrun: none\n";
    static const char bare[] = "srun: MPI types are...\nsrun: pmi2\nsrun: openmpi\nsrun: none";
    static const char decoy[] = "srun: no pmix here\nsrun: notpmix\n";
    att_slurm_site_t site = {0};
    att_slurm_read_mpi_list(now, strlen(now), &site);
    assert_true(site.pmix && site.pmi2);
    site = (att_slurm_site_t){0};
    att_slurm_read_mpi_list(old, strlen(old), &site);
    assert_true(site.pmix && !site.pmi2);
    site = (att_slurm_site_t){0};
    att_slurm_read_mpi_list(bare, strlen(bare), &site);
    assert_true(!site.pmix && site.pmi2);
    site = (att_slurm_site_t){0};
    att_slurm_read_mpi_list(decoy, strlen(decoy), &site);
    assert_false(site.pmix);
}

static void test_config(void **state)
{
    (void)state;
    static const char text[] =
        "Configuration data as of 2026-11-29T20:00:00\n"
        "KillWait                = 30 sec\nSlurmdTimeout           = 300 sec\n"
        "TaskPlugin              = task/none\n\nMPI Plugins Configuration:\n"
        "PMIxCollFence           = ring\n";
    att_slurm_site_t site = {0};
    att_slurm_read_config(text, strlen(text), &site);
    assert_true(site.has_config && site.ring && site.no_binding);
    assert_int_equal(site.kill_wait_s, 30);
    assert_int_equal(site.node_timeout_s, 300);
    static const char other[] = "TaskPlugin = task/affinity,task/cgroup\nPMIxCollFence = (null)\n";
    site = (att_slurm_site_t){0};
    att_slurm_read_config(other, strlen(other), &site);
    assert_true(site.has_config && !site.ring && !site.no_binding);
    site = (att_slurm_site_t){0};
    att_slurm_read_config("nothing", 7, &site);
    assert_false(site.has_config);
}

static void test_mpi_of_attuned(void **state)
{
    (void)state;
    att_slurm_site_t site = {0};
    att_slurm_read_mpi("attuned 0.1.0 (Open MPI 4.1.4)\n", 31, &site);
    assert_int_equal(site.mpi, ATT_SLURM_MPI_OPEN);
    assert_string_equal(site.mpi_text, "Open MPI 4.1.4");
    att_slurm_read_mpi("attuned 0.1.0 (MPICH 4.0.2)", 27, &site);
    assert_int_equal(site.mpi, ATT_SLURM_MPI_MPICH);
    site = (att_slurm_site_t){0};
    att_slurm_read_mpi("attuned (", 9, &site);
    assert_int_equal(site.mpi, ATT_SLURM_MPI_OTHER);
    assert_string_equal(site.mpi_text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),       cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_mpi_lists),      cmocka_unit_test(test_config),
        cmocka_unit_test(test_mpi_of_attuned),
    };
    return cmocka_run_group_tests_name("cli_slurm_site", tests, NULL, NULL);
}
