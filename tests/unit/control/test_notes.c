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

/* --- lists whose communicator goes ------------------------------------------------------------ */

static seen_t left;
static att_notes_t notes_left = {.send = take, .context = &left};

static world_t *with_a_list_in_force(void)
{
    static const uint32_t node_of[4] = {0, 0, 0, 0};
    left = (seen_t){0};
    world_t *w = world_create(1);
    w->nodes[0].shared.notes = &notes_left;
    world_group(w, 0xabc, 4, node_of);
    world_call_task(w, 1 << 20);
    world_meet(w);
    const att_segment_task_t *task = &w->nodes[0].memory->tasks[0];
    while (left.lists < 3 || left.overs == left.lists || task->schedule.count < 2 ||
           ATT_HOME_STATE(atomic_load(&task->home)) != ATT_HOME_COMMITTED)
        world_run(w, 1, 0);
    assert_int_equal(left.overs + 1, left.lists);
    return w;
}

/* As the agent does with a group that is not complete any more. */
static void end(world_t *w)
{
    world_round(w);
    att_task_refuse(w->nodes[0].task, ATT_TASK_ENDED, "its communicator is gone");
    world_round(w);
    for (int again = 0; again < 2; again++)
        att_task_note_end(w->nodes[0].task);
}

static void retire(world_t *w, uint32_t first)
{
    for (uint32_t r = first; r < w->rank_count; r++)
        att_segment_retire_member(w->nodes[0].memory, w->ranks[r].member);
}

static void a_list_is_over_when_its_communicator_ends_in_order(void **state)
{
    (void)state;
    world_t *w = with_a_list_in_force();
    retire(w, 1);
    end(w);
    assert_int_equal(left.overs + 1, left.lists); /* rank 0 may yet fail */
    retire(w, 0);
    att_task_note_end(w->nodes[0].task);
    assert_int_equal(left.overs, left.lists);
    att_task_note_end(w->nodes[0].task);
    assert_int_equal(left.overs, left.lists);
    world_destroy(w);
}

static bool is_dead(void *context, uint32_t process)
{
    (void)context;
    (void)process;
    return false;
}

static void a_list_stays_when_a_process_died(void **state)
{
    (void)state;
    world_t *w = with_a_list_in_force();
    retire(w, 1); /* they saw that rank 0 is gone */
    assert_int_equal(att_node_bury(w->nodes[0].node, is_dead, NULL), 1);
    end(w);
    assert_int_equal(left.overs + 1, left.lists);
    world_destroy(w);
}

static void a_list_stays_when_a_call_has_not_run(void **state)
{
    (void)state;
    world_t *w = with_a_list_in_force();
    atomic_fetch_add(&w->ranks[2].lane.shared->word, 2); /* it hangs: all abort */
    retire(w, 0);
    end(w);
    assert_int_equal(left.overs + 1, left.lists);
    world_destroy(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_waits_until_it_can_be_noted),
        cmocka_unit_test(a_list_is_over_when_its_communicator_ends_in_order),
        cmocka_unit_test(a_list_stays_when_a_process_died),
        cmocka_unit_test(a_list_stays_when_a_call_has_not_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
