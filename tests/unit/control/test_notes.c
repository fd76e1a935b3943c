/* The notes of an agent whose agent 0 takes none: no list of trials begins, none is lost. */
#include "control/notes.h"
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

typedef struct seen {
    uint32_t lists, overs, trials, while_full;
    bool full;
} seen_t;

static void take(void *context, const att_message_t *m)
{
    seen_t *seen = context;
    bool list = m->type == ATT_MESSAGE_LIST;
    seen->lists += list;
    seen->overs += m->type == ATT_MESSAGE_OVER;
    seen->trials += m->type == ATT_MESSAGE_TRIAL;
    seen->while_full += list && seen->full && m->body.list.schedule.count > 1;
}

static bool is_full(void *context)
{
    return ((seen_t *)context)->full;
}

static void a_list_waits_until_it_can_be_noted(void **state)
{
    (void)state;
    static const uint32_t node_of[4] = {0, 0, 0, 0};
    seen_t seen = {0};
    att_notes_t notes = {.send = take, .is_full = is_full, .context = &seen};
    world_t *w = world_create(1);
    w->nodes[0].shared.notes = &notes;
    world_group(w, 0xabc, 4, node_of);
    world_call_task(w, 1 << 20);
    world_meet(w);
    while (seen.lists < 3)
        world_run(w, 5, 1);
    seen.full = true;
    world_run(w, 300, 1);
    /* The list that was out has played out, and said so. */
    assert_int_equal(seen.while_full, 0);
    assert_int_equal(seen.overs, seen.lists);
    uint32_t before = seen.lists, trials = seen.trials;
    world_run(w, 300, 1);
    assert_int_equal(seen.lists, before);
    assert_int_equal(seen.trials, trials);
    seen.full = false;
    world_run(w, 600, 1);
    assert_true(seen.lists > before);
    assert_true(seen.trials > trials);
    assert_int_equal(w->mismatches, 0);
    world_destroy(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_list_waits_until_it_can_be_noted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
