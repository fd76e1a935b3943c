/* How long the agent sleeps: idle, with records, after messages. Times are made up. */
#include "control/pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { RING = 4096, MS = 1000000 };

static uint64_t look(att_pace_t *pace, uint64_t now_ns, uint32_t fullest, uint32_t messages,
                     bool searching)
{
    att_pace_round_t round = {
        .now_ns = now_ns, .fullest = fullest, .messages = messages, .searching = searching};
    return att_pace_sleep_ns(pace, &round, RING);
}

static void idle_sleeps_long(void **state)
{
    (void)state;
    att_pace_t pace = {0};
    for (uint64_t i = 1; i < 10; i++)
        assert_int_equal(look(&pace, i * 10 * MS, 0, 0, false), ATT_PACE_IDLE_NS);
    /* A message to an idle agent does not make it spin. */
    assert_int_equal(look(&pace, 100 * MS, 0, 3, false), ATT_PACE_IDLE_NS);
}

static void a_search_without_records_is_idle(void **state)
{
    (void)state;
    att_pace_t pace = {0};
    assert_int_equal(look(&pace, 1 * MS, 0, 0, true), ATT_PACE_IDLE_NS);
    assert_int_equal(look(&pace, 11 * MS, 5, 0, true), ATT_PACE_BUSY_NS);
    assert_int_equal(look(&pace, 110 * MS, 0, 0, true), ATT_PACE_BUSY_NS);
    assert_int_equal(look(&pace, 112 * MS, 0, 0, true), ATT_PACE_IDLE_NS);
}

static void spins_after_a_message(void **state)
{
    (void)state;
    att_pace_t pace = {0};
    look(&pace, 1 * MS, 1, 0, true);
    assert_int_equal(look(&pace, 2 * MS, 0, 1, true), 0);
    assert_int_equal(look(&pace, 2 * MS + ATT_PACE_SPIN_NS - 1, 0, 0, true), 0);
    assert_int_equal(look(&pace, 2 * MS + ATT_PACE_SPIN_NS, 0, 0, true), ATT_PACE_BUSY_NS);
    assert_int_equal(look(&pace, 10 * MS, 0, 1, false), ATT_PACE_IDLE_NS);
}

static void something_moved_means_at_once(void **state)
{
    (void)state;
    att_pace_t pace = {0};
    att_pace_round_t round = {.now_ns = MS, .moved = true};
    assert_int_equal(att_pace_sleep_ns(&pace, &round, RING), 0);
}

/* Whatever the rate, a ring that fills steadily never passes its share before the next look. */
static void comes_back_before_a_ring_is_full(void **state)
{
    (void)state;
    for (double rate = 1e-6; rate < 0.02; rate *= 1.7) { /* 1 thousand to 20 million a second */
        att_pace_t pace = {0};
        uint64_t now = 1 * MS, sleep = look(&pace, now, 0, 0, false);
        for (int i = 0; i < 50; i++) {
            double held = rate * (double)sleep;
            if (i > 6) /* from idle: a full ring shows a quarter of the way each time */
                assert_true(held <= RING / 4 + 1 || (sleep == ATT_PACE_BUSY_NS && held < RING));
            now += sleep;
            sleep = look(&pace, now, held < RING ? (uint32_t)held : RING, 0, false);
        }
    }
}

static void a_pause_does_not_fool_it_at_once(void **state)
{
    (void)state;
    att_pace_t pace = {0};
    look(&pace, 1 * MS, 0, 0, false);
    uint64_t fast = look(&pace, 2 * MS, 1024, 0, false);
    assert_true(fast <= 1 * MS);
    uint64_t after = look(&pace, 3 * MS, 0, 0, false);
    assert_true(after <= 2 * fast + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_sleeps_long),
        cmocka_unit_test(a_search_without_records_is_idle),
        cmocka_unit_test(spins_after_a_message),
        cmocka_unit_test(something_moved_means_at_once),
        cmocka_unit_test(comes_back_before_a_ring_is_full),
        cmocka_unit_test(a_pause_does_not_fool_it_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
