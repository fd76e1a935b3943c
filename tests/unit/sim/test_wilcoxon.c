#include "sim/wilcoxon.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "near.h"

static att_wilcoxon_t test_of(const double *a, const double *b, uint32_t count)
{
    att_wilcoxon_t result;
    assert_int_equal(att_wilcoxon_test(a, b, count, &result), 0);
    return result;
}

/* Hollander and Wolfe (1973), 29f: Hamilton depression scale of 9 patients before and after; R's
 * wilcox.test(paired = TRUE) gives V = 40, p = 0.03906. */
static void published_values(void **state)
{
    (void)state;
    static const double before[] = {1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30};
    static const double after[] = {0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29};
    att_wilcoxon_t r = test_of(before, after, 9);
    assert_int_equal(r.pairs, 9);
    assert_int_equal(r.losses, 7);
    assert_int_equal(r.wins, 2);
    assert_near(r.rank_sum, 40, 1e-12);
    assert_true(r.exact);
    assert_near(r.p, 0.0390625, 1e-12);
}

static void nothing_to_compare(void **state)
{
    (void)state;
    static const double same[] = {1, 2, 3};
    att_wilcoxon_t r = test_of(same, same, 3);
    assert_int_equal(r.pairs, 0);
    assert_near(r.p, 1, 0);
    r = test_of(NULL, NULL, 0);
    assert_near(r.p, 1, 0);
}

/* n pairs, a always smaller: both tails have one subset of 2^n. */
static void one_sided_pairs(void **state)
{
    (void)state;
    double a[60], b[60];
    for (int i = 0; i < 60; i++) {
        a[i] = i;
        b[i] = i + 1 + 0.01 * i;
    }
    for (uint32_t n = 1; n <= 50; n++) {
        att_wilcoxon_t r = test_of(a, b, n);
        assert_int_equal(r.wins, n);
        assert_true(fabs(r.p / ldexp(2, -(int)n) - 1) < 1e-9 || (n == 1 && r.p == 1));
        att_wilcoxon_t turned = test_of(b, a, n);
        assert_near(turned.p, r.p, 1e-15);
    }
    /* Beyond: mean 915, variance 60 61 121 / 24, half a rank of continuity. */
    att_wilcoxon_t r = test_of(a, b, 60);
    assert_false(r.exact);
    double p = erfc((915 - 0.5) / sqrt(60 * 61 * 121 / 24.0) / sqrt(2));
    assert_true(fabs(r.p / p - 1) < 1e-9);
}

/* Every assignment of signs to the given sizes, by brute force. */
static double brute(const double *differences, uint32_t n, double observed)
{
    double ranks[16];
    for (uint32_t i = 0; i < n; i++) {
        double below = 0, equal = 0;
        for (uint32_t k = 0; k < n; k++) {
            below += fabs(differences[k]) < fabs(differences[i]);
            equal += fabs(differences[k]) == fabs(differences[i]);
        }
        ranks[i] = below + (equal + 1) / 2;
    }
    double most = n * (n + 1) / 2.0, smaller = fmin(observed, most - observed);
    uint32_t count = 0;
    for (uint32_t bits = 0; bits < 1u << n; bits++) {
        double sum = 0;
        for (uint32_t i = 0; i < n; i++)
            sum += bits >> i & 1 ? ranks[i] : 0;
        count += sum <= smaller;
    }
    return fmin(1, 2 * ldexp(count, -(int)n));
}

static void ties_are_exact_too(void **state)
{
    (void)state;
    uint32_t draw = 12345;
    for (int round = 0; round < 200; round++) {
        double a[12], zero[12] = {0}, kept[12];
        uint32_t n = 0;
        for (int i = 0; i < 12; i++) {
            draw = draw * 1664525u + 1013904223u;
            a[i] = (double)(draw >> 24) / 32 < 4 ? -(double)(draw >> 29) : (double)(draw >> 29);
            if (a[i] != 0)
                kept[n++] = a[i];
        }
        att_wilcoxon_t r = test_of(a, zero, 12);
        assert_int_equal(r.pairs, n);
        assert_near(r.p, n > 0 ? brute(kept, n, r.rank_sum) : 1, 1e-9);
    }
}

/* Where the approximation takes over, the exact distribution is already close to it. */
static void approximation_continues_the_exact(void **state)
{
    (void)state;
    double a[51], zero[51] = {0};
    for (int i = 0; i < 51; i++)
        a[i] = (i % 3 == 0 ? -1 : 1) * (i + 1.0);
    for (uint32_t n = 48; n <= 51; n++) {
        att_wilcoxon_t r = test_of(a, zero, n);
        double most = n * (n + 1) / 2.0, smaller = fmin(r.rank_sum, most - r.rank_sum);
        double z = (most / 2 - smaller - 0.5) / sqrt(n * (n + 1.0) * (2 * n + 1) / 24);
        assert_int_equal(r.exact, n <= 50);
        assert_true(r.p > 1e-4 && fabs(r.p / erfc(z / sqrt(2)) - 1) < 0.05);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_values), cmocka_unit_test(nothing_to_compare),
        cmocka_unit_test(one_sided_pairs), cmocka_unit_test(ties_are_exact_too),
        cmocka_unit_test(approximation_continues_the_exact)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
