/* The node's view: entries that are still being filled, device shares, coverage. */
#include "control/node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static att_segment_memory_t *memory;
static struct att_node *node;

static int setup(void **state)
{
    (void)state;
    memory = aligned_alloc(64, (sizeof *memory + 63) / 64 * 64);
    if (memory == NULL)
        return 1;
    memset(memory, 0, sizeof *memory);
    return att_node_create(memory, &node);
}

static int teardown(void **state)
{
    (void)state;
    att_node_destroy(node);
    free(memory);
    return 0;
}

static uint32_t add_member(uint32_t group, uint32_t rank, uint8_t device, uint32_t units)
{
    uint32_t m = att_segment_add_member(memory, group, rank, 0);
    memory->members[m].device_id[0] = device;
    memory->members[m].device_units = units;
    att_segment_publish_member(memory, m);
    return m;
}

static void waits_for_entries_being_filled(void **state)
{
    (void)state;
    uint32_t g = att_segment_group(memory, 1, 2, 1);
    uint32_t slow = att_segment_add_member(memory, g, 0, 0);
    uint32_t fast = att_segment_add_member(memory, g, 1, 0);
    att_segment_publish_member(memory, fast);
    assert_int_equal(att_node_scan(node), 1);
    assert_int_equal(att_node_members(node, g)->count, 1);
    assert_int_equal(att_node_members(node, g)->items[0], fast);
    assert_int_equal(att_node_scan(node), 0);
    att_segment_publish_member(memory, slow);
    assert_int_equal(att_node_scan(node), 1);
    assert_int_equal(att_node_members(node, g)->count, 2);
    assert_int_equal(att_node_scan(node), 0);
}

/* --- draining --- */

enum { RECORDS = 3000 };
static uint64_t last_call[2], farthest, taken[2];

static void note_record(void *context, const att_record_t *record)
{
    (void)context;
    assert_int_equal(record->call, taken[record->process]);
    taken[record->process]++;
    last_call[record->process] = record->call;
    uint64_t distance =
        last_call[0] > last_call[1] ? last_call[0] - last_call[1] : last_call[1] - last_call[0];
    if (distance > farthest)
        farthest = distance;
}

static void fill_rings(void)
{
    memset(taken, 0, sizeof taken);
    memset(last_call, 0, sizeof last_call);
    farthest = 0;
    for (uint32_t p = 0; p < 2; p++) {
        assert_int_equal(att_segment_add_process(memory, "job"), p);
        for (uint64_t call = 0; call < RECORDS; call++) {
            att_record_t record = {.call = call, .process = p};
            assert_true(att_ring_put(&memory->rings[p], &record));
        }
    }
}

static void drains_rings_in_turns(void **state)
{
    (void)state;
    fill_rings();
    assert_int_equal(att_node_drain(node, ATT_RING, note_record, NULL), 2 * RECORDS);
    assert_int_equal(taken[0], RECORDS);
    assert_int_equal(taken[1], RECORDS);
    assert_int_equal(att_node_fullest(node), RECORDS);
    /* Well inside of the window in which the ranks of a call must meet. */
    assert_true(farthest <= 512);
    assert_int_equal(att_node_drain(node, ATT_RING, note_record, NULL), 0);
    assert_int_equal(att_node_fullest(node), 0);
}

static void drains_what_a_process_left_behind(void **state)
{
    (void)state;
    fill_rings();
    atomic_store(&memory->processes[1].state, ATT_ENTRY_RETIRED);
    att_node_drain(node, ATT_RING, note_record, NULL);
    assert_int_equal(taken[1], RECORDS);
}

static uint32_t ten_channels(void *context, uint32_t group)
{
    (void)context;
    (void)group;
    return 10;
}

static void device_is_shared_out(void **state)
{
    (void)state;
    uint32_t a = att_segment_group(memory, 1, 2, 1), b = att_segment_group(memory, 2, 1, 1);
    add_member(a, 0, 7, 100);
    add_member(a, 1, 7, 100);
    att_node_scan(node);
    assert_int_equal(att_node_channel_ceiling(node, a, 4, ten_channels, NULL), 48);
    uint32_t other = add_member(b, 0, 7, 100); /* another group on the same device */
    att_node_scan(node);
    assert_int_equal(att_node_channel_ceiling(node, a, 4, ten_channels, NULL), 43);
    assert_int_equal(att_node_channel_ceiling(node, b, 4, ten_channels, NULL), 76);
    att_segment_retire_member(memory, other);
    assert_int_equal(att_node_channel_ceiling(node, a, 4, ten_channels, NULL), 48);
}

static void unknown_device_has_no_ceiling(void **state)
{
    (void)state;
    uint32_t a = att_segment_group(memory, 1, 1, 1);
    add_member(a, 0, 0, 0);
    att_node_scan(node);
    assert_int_equal(att_node_channel_ceiling(node, a, 4, ten_channels, NULL), 0);
}

static void count_record(void *context, const att_record_t *record)
{
    (void)record;
    ++*(int *)context;
}

static void foreign_indices_are_ignored(void **state)
{
    (void)state;
    uint32_t p = att_segment_add_process(memory, "x");
    att_record_t record = {.task = ATT_TASKS, .member = 0};
    att_ring_put(&memory->rings[p], &record);
    record.task = 1;
    att_ring_put(&memory->rings[p], &record);
    int seen = 0;
    assert_int_equal(att_node_drain(node, 100, count_record, &seen), 2);
    assert_int_equal(seen, 1);
}

static void late_processes_get_the_timing_word(void **state)
{
    (void)state;
    uint32_t p = att_segment_add_process(memory, "x");
    att_node_set_timing(node, 1);
    assert_int_equal(atomic_load(&memory->processes[p].timing), 1);
    uint32_t q = att_segment_add_process(memory, "y");
    att_node_scan(node);
    assert_int_equal(atomic_load(&memory->processes[q].timing), 1);
    att_node_set_timing(node, 0);
    assert_int_equal(atomic_load(&memory->processes[p].timing), 0);
}

/* --- processes that were killed --- */

static uint32_t dead_from; /* processes from here on are gone */

static bool alive(void *context, uint32_t process)
{
    (void)context;
    return process < dead_from;
}

static void ignore_record(void *context, const att_record_t *record)
{
    (void)context;
    (void)record;
}

static void a_killed_process_leaves_nothing_behind(void **state)
{
    (void)state;
    uint32_t keeps = att_segment_add_process(memory, "keeps"),
             g = att_segment_group(memory, 9, 2, 1);
    uint32_t killed = att_segment_add_process(memory, "killed");
    uint32_t first = att_segment_add_member(memory, g, 0, keeps);
    uint32_t second = att_segment_add_member(memory, g, 1, killed);
    att_segment_publish_member(memory, first);
    att_segment_publish_member(memory, second);
    att_node_scan(node);
    att_segment_process_t *p = &memory->processes[killed];
    atomic_store(&p->decisions, 100);
    atomic_store(&p->helper, 1);
    atomic_store(&p->unstamped, 1);
    /* Two records, and one that it was writing when it was killed, with another one behind it. */
    att_ring_t *ring = &memory->rings[killed];
    att_record_t record = {.member = second};
    assert_true(att_ring_put(ring, &record) && att_ring_put(ring, &record));
    atomic_fetch_add(&ring->head, 1);
    assert_true(att_ring_put(ring, &record));

    dead_from = killed;
    assert_int_equal(att_node_bury(node, alive, NULL), 1);
    assert_int_equal(atomic_load(&memory->members[second].state), ATT_ENTRY_RETIRED);
    assert_int_equal(atomic_load(&memory->members[first].state), ATT_ENTRY_LIVE);
    assert_int_equal(atomic_load(&p->state), ATT_ENTRY_RETIRED);
    assert_int_equal(att_node_drain(node, ATT_RING, ignore_record, NULL), 2);
    assert_int_equal(att_node_bury(node, alive, NULL), 0);
    assert_int_equal(atomic_load(&p->state), ATT_ENTRY_EMPTY);
    att_coverage_t coverage;
    att_node_coverage(node, &coverage);
    assert_int_equal(coverage.decisions, 100);
    assert_int_equal(coverage.dropped, 2);
    assert_int_equal(coverage.processes, 2);

    /* The next one takes its place; what was counted stays counted, once. */
    att_node_set_timing(node, 1);
    assert_int_equal(att_segment_add_process(memory, "next"), killed);
    assert_int_equal(atomic_load(&p->state), ATT_ENTRY_LIVE);
    assert_int_equal(atomic_load(&p->timing), 1);
    assert_int_equal(atomic_load(&p->helper) + atomic_load(&p->unstamped), 0);
    atomic_store(&p->decisions, 5);
    assert_true(att_ring_put(ring, &record));
    assert_int_equal(att_node_drain(node, ATT_RING, ignore_record, NULL), 1);
    att_node_coverage(node, &coverage);
    assert_int_equal(coverage.decisions, 105);
    assert_int_equal(coverage.processes, 3);
    assert_int_equal(coverage.dropped, 2);
    dead_from = ATT_PROCESSES;
    assert_int_equal(att_node_bury(node, alive, NULL), 0);
    assert_int_equal(atomic_load(&p->state), ATT_ENTRY_LIVE);
}

static void more_processes_than_entries_one_after_the_other(void **state)
{
    (void)state;
    dead_from = 0;
    for (int restart = 0; restart < 4 * ATT_PROCESSES; restart++) {
        assert_int_not_equal(att_segment_add_process(memory, "worker"), ATT_NONE);
        att_node_bury(node, alive, NULL);
        att_node_bury(node, alive, NULL);
    }
    assert_int_equal(atomic_load(&memory->header.process_count), 1);
    assert_int_equal(atomic_load(&memory->header.full), 0);
    att_coverage_t coverage;
    att_node_coverage(node, &coverage);
    assert_int_equal(coverage.processes, 4 * ATT_PROCESSES);
}

static void an_entry_without_a_lane_is_no_task(void **state)
{
    (void)state;
    static const float costs[ATT_PAIR_COUNT];
    uint32_t process = att_segment_add_process(memory, "job");
    uint32_t group = att_segment_group(memory, 77, 2, 1);
    uint32_t member = att_segment_add_member(memory, group, 0, process);
    att_segment_publish_member(memory, member);
    uint32_t task = att_segment_task(memory, group, 0, 4096, 1, costs);
    uint32_t lost = att_segment_task(memory, group, 0, 8192, 1, costs);
    assert_true(att_node_scan(node));
    assert_false(att_node_has_task(node, task));
    att_segment_add_lane(memory, task, member);
    assert_true(att_node_scan(node));
    assert_true(att_node_has_task(node, task));
    assert_false(att_node_has_task(node, lost)); /* its rank has found that another was faster */
    atomic_store(&memory->tasks[task].state, ATT_ENTRY_RETIRED);
    assert_false(att_node_has_task(node, task));
}

/* A process was killed between claiming an entry of each table and filling it. */
static void an_entry_that_is_never_filled_hides_none_behind_it(void **state)
{
    (void)state;
    static const float costs[ATT_PAIR_COUNT];
    att_segment_header_t *header = &memory->header;
    atomic_store(&header->process_count, 1);
    atomic_store(&header->group_count, 1);
    atomic_store(&header->member_count, 1);
    atomic_store(&header->task_count, 1);
    atomic_store(&header->lane_count, 1);
    uint32_t process = att_segment_add_process(memory, "job");
    uint32_t group = att_segment_group(memory, 77, 1, 1);
    uint32_t member = add_member(group, 0, 7, 100);
    memory->members[member].process = process;
    uint32_t task = att_segment_task(memory, group, 0, 4096, 1, costs);
    att_segment_add_lane(memory, task, member);
    assert_int_equal(process + group + member + task, 4);
    assert_true(att_ring_put(&memory->rings[process], &(att_record_t){.task = task}));

    assert_int_equal(att_node_scan(node), 1);
    assert_int_equal(att_node_group_count(node), 2);
    assert_int_equal(att_node_members(node, group)->count, 1);
    assert_int_equal(att_node_task_count(node), 2);
    assert_true(att_node_has_task(node, task));
    assert_false(att_node_has_task(node, 0));
    assert_int_equal(att_node_drain(node, ATT_RING, ignore_record, NULL), 1);
    att_node_set_timing(node, 1);
    assert_int_equal(atomic_load(&memory->processes[process].timing), 1);
    assert_int_equal(att_node_scan(node), 0);

    /* It was only slow. */
    memory->tasks[0].group = group;
    atomic_store(&memory->tasks[0].state, ATT_ENTRY_LIVE);
    assert_int_equal(att_node_scan(node), 1);
    assert_int_equal(att_node_scan(node), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(waits_for_entries_being_filled, setup, teardown),
        cmocka_unit_test_setup_teardown(device_is_shared_out, setup, teardown),
        cmocka_unit_test_setup_teardown(unknown_device_has_no_ceiling, setup, teardown),
        cmocka_unit_test_setup_teardown(foreign_indices_are_ignored, setup, teardown),
        cmocka_unit_test_setup_teardown(an_entry_without_a_lane_is_no_task, setup, teardown),
        cmocka_unit_test_setup_teardown(an_entry_that_is_never_filled_hides_none_behind_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(late_processes_get_the_timing_word, setup, teardown),
        cmocka_unit_test_setup_teardown(drains_rings_in_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(drains_what_a_process_left_behind, setup, teardown),
        cmocka_unit_test_setup_teardown(a_killed_process_leaves_nothing_behind, setup, teardown),
        cmocka_unit_test_setup_teardown(more_processes_than_entries_one_after_the_other, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
