/* bench_gemm: the products beside the collectives, on a device that only counts. */
#include "cli/bench_gemm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

enum { A_RUN = 16 };

static atomic_int runs;    /* of the device, that have returned */
static atomic_int fail_at; /* the run that fails; 0: none */

static int choose(void *state, int index, att_error_t *error)
{
    (void)state, (void)index, (void)error;
    return ATT_OK;
}

static int create(void *state, att_gemm_shape_t shape, void **gemm, att_error_t *error)
{
    (void)state, (void)shape, (void)error;
    *gemm = NULL;
    return ATT_OK;
}

static void destroy(void *state, void *gemm)
{
    (void)state, (void)gemm;
}

static int run(void *state, void *gemm, unsigned *products, att_error_t *error)
{
    (void)state, (void)gemm;
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    if (atomic_load(&runs) + 1 == atomic_load(&fail_at))
        return att_fail(error, ATT_ESYSTEM, "the device is gone");
    *products = A_RUN;
    atomic_fetch_add(&runs, 1);
    return ATT_OK;
}

static const att_device_ops_t ops = {
    .select = choose, .gemm_create = create, .gemm_destroy = destroy, .gemm_run = run};
static const att_device_t device = {.ops = &ops};

static struct att_bench_gemm *start(int fails)
{
    struct att_bench_gemm *gemm;
    att_error_t error = {""};
    atomic_store(&runs, 0);
    atomic_store(&fail_at, fails);
    assert_int_equal(att_bench_gemm_create(&device, 0, (att_gemm_shape_t){0}, &gemm, &error), 0);
    return gemm;
}

/* What is measured after "on" must not run before the load does. */
static void on_means_at_work_and_off_means_quiet(void **state)
{
    (void)state;
    struct att_bench_gemm *gemm = start(0);
    for (int turn = 0; turn < 3; turn++) {
        int before = atomic_load(&runs);
        att_bench_gemm_switch(gemm, 1);
        assert_true(atomic_load(&runs) >= before + 2);
        att_bench_gemm_switch(gemm, 0);
        int after = atomic_load(&runs);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        assert_int_equal(atomic_load(&runs), after);
        uint64_t products;
        double seconds;
        att_bench_gemm_read(gemm, &products, &seconds);
        assert_int_equal(products, A_RUN * after);
        assert_true(seconds > 0);
    }
    att_bench_gemm_destroy(gemm);
}

static void a_device_that_fails_holds_nobody_up(void **state)
{
    (void)state;
    for (int at = 1; at <= 2; at++) {
        struct att_bench_gemm *gemm = start(at);
        att_error_t error = {""};
        att_bench_gemm_switch(gemm, 1);
        assert_int_equal(att_bench_gemm_failure(gemm, &error), -ATT_ESYSTEM);
        assert_non_null(strstr(error.text, "the device is gone"));
        att_bench_gemm_switch(gemm, 0);
        att_bench_gemm_switch(gemm, 1);
        att_bench_gemm_destroy(gemm);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_means_at_work_and_off_means_quiet),
        cmocka_unit_test(a_device_that_fails_holds_nobody_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
