#include "member.h"

#include "base/clock.h"
#include "control/way.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* --- in the place of control/way.c: no sockets here, every home is reached --- */

void att_way_of_process(const att_segment_process_t *process, att_home_path_t *path)
{
    *path = (att_home_path_t){.port = 1};
}

void att_way_begin(att_way_t *way, const att_group_key_t *group, const att_home_path_t *path)
{
    way->group = *group;
    way->path = *path;
    way->testing = 1;
}

int att_way_step(att_way_t *way, att_segment_group_t *group, uint64_t now_ns)
{
    if (!way->testing)
        return 0;
    way->testing = 0;
    atomic_store(&group->path, 1);
    return 1;
}

void att_way_stop(att_way_t *way)
{
    way->testing = 0;
}

/* --- life --- */

static void refuse(void *context, uint32_t group, const char *why)
{
    bench_member_t *m = context;
    m->refused++;
}

int bench_member_create(bench_member_t *m, const att_config_t *config,
                        struct att_strategy_host *host, struct att_messenger *messenger,
                        uint64_t now_ns)
{
    memset(m, 0, sizeof *m);
    /* Only touched pages are backed: 27 MiB times thousands. */
    m->memory = mmap(NULL, sizeof *m->memory, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m->memory == MAP_FAILED || att_node_create(m->memory, &m->node) != ATT_OK)
        return -ATT_ENOMEM;
    m->memory->header.wait_ns = (uint64_t)(config->wait_ms * 1e6);
    m->memory->header.in_doubt_ns = (uint64_t)(config->in_doubt_ms * 1e6);
    /* A process without att_segment_add_process: its ring would touch 400 KB. */
    atomic_store(&m->memory->processes[0].state, ATT_ENTRY_LIVE);
    atomic_store(&m->memory->header.process_count, 1);
    m->shared =
        (att_task_shared_t){.node = m->node, .host = host, .config = config, .started_ns = now_ns};
    att_node_turn_init(&m->shared.turn);
    int status = att_peers_create(messenger, &m->shared, refuse, m, &m->peers);
    if (status == ATT_OK)
        m->span = att_peers_span(m->peers);
    return status;
}

void bench_member_destroy(bench_member_t *m)
{
    for (uint32_t i = 0; i < BENCH_SEATS; i++)
        att_task_destroy(m->tasks[i]);
    att_peers_destroy(m->peers);
    att_node_destroy(m->node);
    if (m->memory != NULL && m->memory != MAP_FAILED)
        munmap(m->memory, sizeof *m->memory);
}

uint32_t bench_member_join(bench_member_t *m, uint64_t hash, uint32_t ranks, uint32_t nodes,
                           uint32_t rank)
{
    float costs[ATT_PAIR_COUNT];
    for (int i = 0; i < ATT_PAIR_COUNT; i++)
        costs[i] = i < 6 ? 100.0f : -1.0f;
    uint32_t group = att_segment_group(m->memory, hash, ranks, nodes);
    uint32_t index = att_segment_add_member(m->memory, group, rank, 0);
    att_segment_member_t *member = &m->memory->members[index];
    member->nccl_version = 23007;
    member->tuner_abi = 6;
    member->profiler_abi = 6;
    member->clock_id = 1;
    member->whole_stamps = 1;
    member->all_connected = 1;
    member->device_units = 10000;
    member->device_id[0] = 1;
    atomic_store(&member->channels, 8);
    att_segment_publish_member(m->memory, index);
    bench_seat_t *seat = &m->seats[m->seat_count];
    seat->member = index;
    seat->rank = rank;
    seat->task_index = att_segment_task(m->memory, group, ATT_COLLECTIVE_ALL_REDUCE, 4 << 20,
                                        (1u << 6) - 1, costs);
    seat->lane_index = att_segment_add_lane(m->memory, seat->task_index, index);
    att_lane_init(&seat->lane, m->memory, seat->lane_index, 0);
    return m->seat_count++;
}

/* --- the agent --- */

static bool complete(const bench_member_t *m, uint32_t group)
{
    const att_index_list_t *members = att_node_members(m->node, group);
    uint32_t here = att_span_ranks_here(m->span, group);
    return members->count == (here > 0 ? here : m->memory->groups[group].ranks);
}

static void look_for_tasks(bench_member_t *m)
{
    for (uint32_t i = 0; i < att_node_task_count(m->node) && i < BENCH_SEATS; i++) {
        uint32_t group = m->memory->tasks[i].group;
        const att_task_reach_t *reach = NULL;
        if (m->tasks[i] != NULL || group >= ATT_GROUPS || !att_node_has_task(m->node, i) ||
            !complete(m, group))
            continue;
        if (att_span_ranks_here(m->span, group) > 0 &&
            (reach = att_span_reach(m->span, group)) == NULL)
            continue;
        if (att_task_create(&m->shared, i, reach, &m->tasks[i]) != ATT_OK)
            abort();
        if (reach != NULL)
            att_span_lead(m->span, i, m->tasks[i]);
    }
}

uint32_t bench_member_round(bench_member_t *m, uint64_t now_ns)
{
    if (att_node_scan(m->node) | att_span_changed(m->span))
        look_for_tasks(m);
    uint32_t messages = att_peers_step(m->peers, now_ns, &m->busy);
    for (uint32_t i = 0; i < m->seat_count; i++)
        if (m->tasks[i] != NULL) {
            for (int again = 0; again < 4 && att_task_step(m->tasks[i], now_ns); again++)
                continue;
            m->busy |= att_task_wants_timing(m->tasks[i]);
        }
    return messages;
}

int bench_member_settled(const bench_member_t *m, uint32_t seat)
{
    const struct att_task *task = m->tasks[m->seats[seat].task_index];
    if (task == NULL)
        return -1;
    att_task_report_t report;
    att_task_report(task, &report);
    return report.state >= ATT_TASK_OBSERVED ||
           (report.state == ATT_TASK_TUNING && report.status.phase >= ATT_PHASE_SETTLED);
}

/* --- the ranks --- */

static bool decide(bench_seat_t *seat, uint64_t call)
{
    const att_schedule_entry_t *entry = &seat->lane.schedule.entries[seat->lane.current];
    seat->waiting = false;
    seat->decision =
        (att_decision_t){.call = call, .setting = entry->setting, .txn = seat->lane.schedule.txn};
    return true;
}

bool bench_member_enter(bench_member_t *m, uint32_t number, uint64_t now_ns)
{
    bench_seat_t *seat = &m->seats[number];
    uint64_t old = atomic_fetch_add(&seat->lane.shared->word, 2);
    m->calls++;
    if (((old & 1) | seat->lane.pending_end) != 0 &&
        att_lane_enter(&seat->lane, old >> 1, now_ns, &seat->wait) == ATT_WAIT_AGAIN) {
        seat->waiting = true;
        seat->wait.call = old >> 1;
        m->waited++;
        return false;
    }
    return decide(seat, old >> 1);
}

bool bench_member_wait(bench_member_t *m, uint32_t number, uint64_t now_ns)
{
    bench_seat_t *seat = &m->seats[number];
    switch (att_wait_step(&seat->lane, &seat->wait, now_ns)) {
    case ATT_WAIT_DONE:
        return decide(seat, seat->wait.call);
    case ATT_WAIT_IN_DOUBT:
        m->in_doubt++;
        return false;
    default:
        return false;
    }
}

void bench_member_record(bench_member_t *m, uint32_t number, uint64_t start_ns, uint64_t stop_ns)
{
    const bench_seat_t *seat = &m->seats[number];
    att_setting_t ran = seat->decision.setting;
    if (ran.algorithm < 0) {
        ran.algorithm = ATT_ALGORITHM_RING;
        ran.protocol = ATT_PROTOCOL_SIMPLE;
    }
    if (ran.channels == 0)
        ran.channels = 8;
    att_record_t record = {.call = seat->decision.call,
                           .start_ns = start_ns,
                           .stop_ns = stop_ns,
                           .nccl_seq = seat->decision.call,
                           .bytes = 4 << 20,
                           .task = seat->task_index,
                           .member = seat->member,
                           .txn = seat->decision.txn,
                           .collective = ATT_COLLECTIVE_ALL_REDUCE,
                           .algorithm = ran.algorithm,
                           .protocol = ran.protocol,
                           .source = ATT_TIME_KERNEL,
                           .channels = ran.channels};
    if (m->tasks[seat->task_index] != NULL)
        att_task_record(m->tasks[seat->task_index], &record);
    else
        att_span_record(m->span, &record);
}
