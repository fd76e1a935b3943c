#include "sim/quantile.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "near.h"

static void nearest_ranks(void **state)
{
    (void)state;
    double values[100];
    for (int i = 0; i < 100; i++)
        values[i] = 100 - i; /* 1..100, falling */
    assert_near(att_quantile(values, 100, 0.5), 50, 0);
    assert_near(att_quantile(values, 100, 0.9), 90, 0);
    assert_near(att_quantile(values, 100, 0.99), 99, 0);
    assert_near(att_quantile(values, 100, 1), 100, 0);
    assert_near(att_quantile(values, 100, 0), 1, 0);
    assert_near(att_quantile(values, 10, 0.99), 100, 0); /* few values: the largest */
    assert_near(values[0], 100, 0);                      /* left as they were */
}

static void never_counts_as_the_largest(void **state)
{
    (void)state;
    const double values[] = {INFINITY, 7, INFINITY, 5, 6};
    assert_near(att_quantile(values, 5, 0.5), 7, 0);
    assert_true(isinf(att_quantile(values, 5, 0.8)));
    assert_true(isnan(att_quantile(values, 0, 0.5)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nearest_ranks),
                                       cmocka_unit_test(never_counts_as_the_largest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
