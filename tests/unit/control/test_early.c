/* Messages that come before the place: kept in order, and bounded. */
#include "control/early.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static void in_order_and_bounded(void **state)
{
    (void)state;
    att_early_t early = {0};
    assert_null(att_early_take(&early));
    for (uint32_t i = 0; i < 2 * ATT_TASKS; i++) {
        att_message_t m = {.type = ATT_MESSAGE_FACTS, .task = {.bytes = i}};
        assert_int_equal(att_early_keep(&early, i % 5, &m), i < ATT_TASKS);
    }
    for (uint32_t i = 0; i < ATT_TASKS / 2; i++) {
        att_early_message_t *e = att_early_take(&early);
        assert_non_null(e);
        assert_int_equal(e->message.task.bytes, i);
        assert_int_equal(e->from, i % 5);
        free(e);
    }
    att_early_clear(&early);
    assert_null(att_early_take(&early));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_order_and_bounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
