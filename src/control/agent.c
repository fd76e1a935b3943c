#include "control/agent.h"

#include "base/clock.h"
#include "base/log.h"
#include "control/applied.h"
#include "control/counting.h"
#include "control/device.h"
#include "control/exporter.h"
#include "control/node.h"
#include "control/notes.h"
#include "control/pace.h"
#include "control/peers.h"
#include "control/pinning.h"
#include "control/quarantine.h"
#include "control/rows.h"
#include "control/run_folder.h"
#include "control/task.h"
#include "control/timeline.h"
#include "control/messenger.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define REPORT_NS       1000000000ull
#define TIMING_COST_US  10.0
#define WATCH_LENGTH_NS 20000000ull /* how long stamps are on in a watch window, at least */
#define WATCH_SHARE     4           /* of the time, at most a fourth */
#define WATCH_SPANNING_NS                                                                          \
    100000000ull                   /* the same for groups over nodes, whose windows begin apart */
#define FAREWELL_NS 500000000ull   /* for the others' last reports; mpirun kills after a second */
#define TELLING_NS  400000000ull   /* for one's own, elsewhere than on agent 0 */
#define ALONE_NS    10000000000ull /* a group with missing ranks is reported after this time */

typedef struct group {
    uint64_t hash;
    uint64_t seen_ns;
    int complete; /* every rank once on this node, equal versions */
    int reported; /* the one line on why it is not tuned was printed */
    uint32_t members_seen;
} group_t;

struct att_agent {
    const att_config_t *config;
    struct att_segment *segment;
    att_segment_memory_t *memory;
    struct att_node *node;
    struct att_peers *peers;
    struct att_span *span; /* of peers */
    struct att_timeline *timeline;
    struct att_run_folder *folder;
    struct att_writer *writer; /* NULL: not the first agent */
    att_notes_t notes;
    struct att_counting *counting; /* NULL: --counters off */
    struct att_exporter *exporter; /* of the first agent */
    struct att_applied *applied;
    struct att_quarantine *quarantine;
    att_task_shared_t shared;
    att_pinning_t pinning;
    uint32_t pinning_version; /* that all tasks follow */
    group_t groups[ATT_GROUPS];
    struct att_task *tasks[ATT_TASKS];
    uint32_t task_count;
    att_task_report_t *rows; /* of the last report */
    uint32_t row_capacity;
    uint64_t records, polls;
    uint64_t last_report_ns;
    att_pace_t pace;
    uint64_t watch_from_ns;
    int timing;
};

static void report_group(struct att_agent *agent, uint32_t index, const char *why)
{
    group_t *group = &agent->groups[index];
    if (group->reported)
        return;
    group->reported = 1;
    att_log(ATT_LOG_WARN, "group 0x%" PRIx64 " (%u ranks) is not tuned: %s",
            agent->memory->groups[index].hash, agent->memory->groups[index].ranks, why);
}

static void refuse_group(void *context, uint32_t group, const char *why)
{
    report_group(context, group, why);
}

int att_agent_create(const att_config_t *config, struct att_strategy_host *host,
                     struct att_messenger *messenger, struct att_pinger *pinger,
                     struct att_agent **out, att_error_t *error)
{
    struct att_agent *agent = calloc(1, sizeof *agent);
    if (agent == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory");
    agent->config = config;
    int status = ATT_OK;
    if (config->apply[0] != '\0')
        status = att_applied_read(config->apply, &agent->applied, error);
    if (status == ATT_OK && config->quarantine[0] != '\0')
        status = att_quarantine_read(config->quarantine, &agent->quarantine, error);
    /* With several agents only the first writes the folder. */
    bool first = att_messenger_self(messenger) == 0;
    if (status == ATT_OK && first)
        status = att_writer_create(&agent->writer, error);
    if (status == ATT_OK && first && config->run_dir[0] != '\0')
        status = att_run_folder_open(config->run_dir, agent->writer, &agent->folder, error);
    if (status == ATT_OK && first)
        status = att_exporter_create(config, agent->writer, &agent->exporter, error);
    att_segment_name_t name = {config->shm_dir, config->run_id, config->node};
    if (status == ATT_OK)
        status = att_segment_open(&name, ATT_SEGMENT_AGENT, &agent->segment, error);
    if (status == ATT_OK) {
        agent->memory = att_segment_memory(agent->segment);
        status = att_node_create(agent->memory, &agent->node);
    }
    if (status == ATT_OK)
        status = att_timeline_create(config, agent->node, pinger, att_messenger_self(messenger),
                                     att_messenger_count(messenger), &agent->timeline, error);
    if (status == ATT_OK)
        status = att_counting_create(config, agent->node, att_segment_file(agent->segment),
                                     att_messenger_self(messenger), &agent->counting, error);
    if (status != ATT_OK) {
        att_agent_destroy(agent);
        return status;
    }
    att_segment_header_t *header = &agent->memory->header;
    header->wait_ns = (uint64_t)(config->wait_ms * 1e6);
    header->in_doubt_ns = (uint64_t)(config->in_doubt_ms * 1e6);
    atomic_fetch_add(&header->agent_epoch, 1);
    atomic_store(&header->agent_pid, (uint32_t)getpid());
    atomic_store(&header->agent_tuning, 1);
    agent->shared = (att_task_shared_t){.node = agent->node,
                                        .host = host,
                                        .config = config,
                                        .notes = &agent->notes,
                                        .counting = agent->counting,
                                        .applied = agent->applied,
                                        .quarantine = agent->quarantine,
                                        .started_ns = att_clock_ns()};
    att_node_turn_init(&agent->shared.turn);
    agent->watch_from_ns = agent->shared.started_ns;
    status = att_peers_create(messenger, &agent->shared, refuse_group, agent, &agent->peers);
    if (status != ATT_OK) {
        att_agent_destroy(agent);
        return att_fail(error, ATT_ENOMEM, "no memory");
    }
    agent->span = att_peers_span(agent->peers);
    agent->notes = (att_notes_t){.folder = agent->folder, .context = agent->peers};
    if (agent->folder == NULL && config->run_dir[0] != '\0') {
        agent->notes.send = att_peers_note;
        agent->notes.is_full = att_peers_notes_full;
    }
    *out = agent;
    return ATT_OK;
}

/* --- groups ----------------------------------------------------------------------------------- */

/* Identity, not hash alone: ranks 0..n-1, each once, of one hash, with equal versions. Of a group
 * over several nodes this node's share; the registry counts the rest. */
static int complete(struct att_agent *agent, uint32_t index, char *why, size_t size)
{
    const att_segment_memory_t *m = agent->memory;
    const att_segment_group_t *group = &m->groups[index];
    const att_index_list_t *members = att_node_members(agent->node, index);
    const att_segment_member_t *first = NULL;
    uint32_t live = 0;
    why[0] = '\0';
    if (atomic_load(&group->duplicate)) {
        snprintf(why, size, "two communicators carry its hash");
        return 0;
    }
    for (uint32_t i = 0; i < members->count; i++) {
        const att_segment_member_t *member = &m->members[members->items[i]];
        if (atomic_load(&member->state) != ATT_ENTRY_LIVE)
            continue;
        live++;
        if (first == NULL)
            first = member;
        if (member->nccl_version != first->nccl_version || member->tuner_abi != first->tuner_abi ||
            memcmp(member->hook_version, first->hook_version, sizeof first->hook_version) != 0) {
            snprintf(why, size,
                     "rank %u has NCCL %u and hook %.*s, rank %u has NCCL %u and hook %.*s",
                     first->rank, first->nccl_version, (int)sizeof first->hook_version,
                     first->hook_version, member->rank, member->nccl_version,
                     (int)sizeof member->hook_version, member->hook_version);
            return 0;
        }
        if (member->profiler_abi == 0 && member->event_timing == 0) {
            snprintf(why, size, "rank %u has no profiler: set NCCL_PROFILER_PLUGIN to the hook",
                     member->rank);
            return 0;
        }
    }
    uint32_t here = att_span_ranks_here(agent->span, index);
    return live == (here > 0 ? here : group->ranks);
}

static void look_at_group(struct att_agent *agent, uint32_t index, uint64_t now_ns)
{
    group_t *group = &agent->groups[index];
    const att_segment_group_t *shared = &agent->memory->groups[index];
    if (atomic_load(&shared->state) != ATT_ENTRY_LIVE)
        return;
    if (group->seen_ns == 0) {
        group->seen_ns = now_ns;
        group->hash = shared->hash;
    }
    char why[200];
    int was = group->complete;
    group->complete = complete(agent, index, why, sizeof why);
    if (was && !group->complete) {
        for (uint32_t i = 0; i < agent->task_count; i++)
            if (agent->tasks[i] != NULL && agent->memory->tasks[i].group == index)
                att_task_refuse(agent->tasks[i], ATT_TASK_ENDED, "its communicator is gone");
        if (why[0] == '\0')
            group->reported = 1; /* an ordinary end */
    }
    if (why[0] != '\0') {
        report_group(agent, index, why);
        att_span_end(agent->span, index, why);
    }
    if (!group->complete && why[0] == '\0' && !group->reported) {
        if (att_span_agents(agent->span, index) == 0 && now_ns - group->seen_ns > ALONE_NS)
            report_group(agent, index, "not all of its ranks are visible to this sidecar");
    }
}

/* --- tasks ------------------------------------------------------------------------------------ */

/* What it costs a rank that NCCL stamps a call, and reads the stamps (bench/gpu/launches.sh: 8 to
 * 14 us on an H200, of any size). */
static double timing_cost_us(const struct att_agent *agent, const att_record_t *record)
{
    if (agent->config->timing_us >= 0)
        return agent->config->timing_us;
    const att_segment_member_t *member = &agent->memory->members[record->member % ATT_MEMBERS];
    return member->clock_kind == ATT_CLOCK_DEVICE ? TIMING_COST_US : 0;
}

static void take_record(void *context, const att_record_t *record)
{
    struct att_agent *agent = context;
    att_timeline_record(agent->timeline, record);
    if (record->source == ATT_TIME_MARK) {
        att_counting_mark(agent->counting, record, att_clock_ns());
        return;
    }
    agent->records++;
    agent->shared.timing_us += timing_cost_us(agent, record) / att_node_ranks(agent->node);
    struct att_task *task = agent->tasks[record->task];
    if (task != NULL)
        att_task_record(task, record);
    else
        att_span_record(agent->span, record);
}

static void follow_pins(struct att_agent *agent, uint32_t index)
{
    const att_segment_task_t *task = &agent->memory->tasks[index];
    att_task_pin(agent->tasks[index],
                 att_pinning_has(&agent->pinning,
                                 agent->memory->groups[task->group % ATT_GROUPS].hash,
                                 (int)task->collective, task->bytes));
}

/* Thousands of tasks are not looked up in each round. */
static void look_at_pins(struct att_agent *agent, uint64_t now_ns)
{
    att_pinning_step(&agent->pinning, agent->config->run_dir, now_ns);
    if (agent->pinning_version == agent->pinning.version)
        return;
    agent->pinning_version = agent->pinning.version;
    for (uint32_t i = 0; i < agent->task_count; i++)
        if (agent->tasks[i] != NULL)
            follow_pins(agent, i);
}

/* Tasks get their leader's side once their group is complete here. */
static void look_for_tasks(struct att_agent *agent)
{
    uint32_t count = att_node_task_count(agent->node);
    for (uint32_t i = 0; i < count; i++) {
        const att_segment_task_t *task = &agent->memory->tasks[i];
        if (agent->tasks[i] != NULL || task->group >= ATT_GROUPS ||
            !agent->groups[task->group % ATT_GROUPS].complete || !att_node_has_task(agent->node, i))
            continue;
        const att_task_reach_t *reach = NULL;
        if (att_span_ranks_here(agent->span, task->group) > 0 &&
            (reach = att_span_reach(agent->span, task->group)) == NULL)
            continue;
        if (att_task_create(&agent->shared, i, reach, &agent->tasks[i]) != ATT_OK) {
            att_log(ATT_LOG_ERROR, "no memory for task %u: it is not tuned", i);
            continue;
        }
        follow_pins(agent, i);
        if (reach != NULL)
            att_span_lead(agent->span, i, agent->tasks[i]);
    }
    agent->task_count = count;
}

/* Of a watch window: the longest step that is to be sampled has room in it. */
static uint64_t watch_length(const struct att_agent *agent, int spanning, uint64_t interval_ns)
{
    uint64_t length = spanning ? WATCH_SPANNING_NS : WATCH_LENGTH_NS;
    uint64_t most = interval_ns / WATCH_SHARE;
    for (uint32_t i = 0; i < agent->task_count; i++) {
        uint64_t sample = agent->tasks[i] != NULL ? att_task_sample_ns(agent->tasks[i]) : 0;
        sample = sample < most ? sample : most;
        length = length > sample ? length : sample;
    }
    return length;
}

/* `wanted` by tasks that this agent leads, `others`: by leaders elsewhere or the record stream. */
static void set_timing(struct att_agent *agent, int wanted, int others, uint64_t now_ns)
{
    int on = wanted, spanning = 0;
    for (uint32_t g = 0; g < att_node_group_count(agent->node); g++)
        spanning |= att_span_agents(agent->span, g) > 0;
    /* The drift watch: a short window of stamps now and then, once nothing is searched. */
    if (!wanted && !others && agent->config->watch_s > 0) {
        uint64_t interval = (uint64_t)(agent->config->watch_s * 1e9);
        if (now_ns - agent->watch_from_ns >= interval)
            agent->watch_from_ns = now_ns;
        on = now_ns - agent->watch_from_ns < watch_length(agent, spanning, interval);
    } else {
        agent->watch_from_ns = now_ns;
    }
    for (uint32_t g = 0; g < att_node_group_count(agent->node) && spanning; g++)
        att_span_want(agent->span, g, on);
    on |= others;
    if (on != agent->timing) {
        agent->timing = on;
        att_node_set_timing(agent->node, on);
    }
}

/* --- reports ---------------------------------------------------------------------------------- */

static double cpu_seconds(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

static const att_segment_member_t *any_member(const att_segment_memory_t *memory)
{
    uint32_t count = att_segment_count(&memory->header.member_count, ATT_MEMBERS);
    for (uint32_t i = 0; i < count; i++)
        if (att_segment_is_filled(&memory->members[i].state))
            return &memory->members[i];
    return NULL;
}

/* How many rows there is room for: `count`, or fewer without memory. */
static uint32_t room_for(struct att_agent *agent, uint32_t count)
{
    static att_log_site_t site;
    if (count > agent->row_capacity) {
        att_task_report_t *rows = realloc(agent->rows, count * sizeof *rows);
        if (rows == NULL) {
            att_log_limited(&site, ATT_LOG_ERROR, "no memory to report more than %u of %u tasks",
                            agent->row_capacity, count);
            return agent->row_capacity;
        }
        agent->rows = rows;
        agent->row_capacity = count;
    }
    return count;
}

static void step_until(struct att_agent *agent, int (*over)(const struct att_peers *peers),
                       uint64_t patience_ns)
{
    uint64_t until_ns = att_clock_ns() + patience_ns;
    int busy;
    while (!over(agent->peers) && att_clock_ns() < until_ns)
        if (att_peers_step(agent->peers, att_clock_ns(), &busy) == 0)
            att_clock_sleep_ns(1000000);
}

static void report(struct att_agent *agent, const char *state, int last, uint64_t now_ns)
{
    agent->last_report_ns = now_ns;
    const struct att_rows *others = att_peers_rows(agent->peers);
    uint32_t other_count = others != NULL ? att_rows_count(others) : 0, count = 0;
    uint32_t room = room_for(agent, agent->task_count + other_count);
    double lost_us = 0;
    att_coverage_t coverage;
    att_node_coverage(agent->node, &coverage);
    for (uint32_t i = 0; i < agent->task_count; i++) {
        if (agent->tasks[i] == NULL)
            continue;
        att_task_report_t spare, *row = count < room ? &agent->rows[count++] : &spare;
        att_task_report(agent->tasks[i], row); /* in its place: its reason points into it */
        lost_us += row->lost_us;
        att_task_coverage(agent->tasks[i], &coverage);
    }
    agent->shared.lost_us = lost_us;
    att_peers_fates(agent->peers, &coverage);
    att_peers_report(agent->peers, agent->rows, count);
    if (last)
        step_until(agent, att_peers_told, TELLING_NS);
    att_peers_account(agent->peers, &coverage, agent->records, last);
    if (agent->exporter == NULL)
        return;
    uint64_t records = agent->records;
    for (uint32_t i = 0; i < other_count; i++) {
        const att_task_report_t *row = att_rows_get(others, i);
        lost_us += row->lost_us;
        if (count == room)
            continue;
        agent->rows[count] = *row;
        agent->rows[count++].now_age_s += att_rows_age_s(others, i, now_ns);
    }
    att_peers_coverage(agent->peers, &coverage, &records);
    char device[ATT_DEVICE_TEXT] = "";
    uint32_t nccl_version = 0;
    const att_segment_member_t *member = any_member(agent->memory);
    if (member != NULL) {
        nccl_version = member->nccl_version;
        att_device_text(member, device, sizeof device);
    }
    double run_s = (double)(now_ns - agent->shared.started_ns) * 1e-9;
    att_run_totals_t totals = {.state = state,
                               .device = device,
                               .nccl_version = nccl_version,
                               .cpu_share = run_s > 0 ? cpu_seconds() / run_s : 0,
                               .records = records,
                               .polls = agent->polls,
                               .lost_us = lost_us,
                               .timing_us = agent->shared.timing_us,
                               .run_us = run_s * 1e6,
                               .coverage = coverage};
    static att_log_site_t site;
    /* First, as what counts most when the end has little time left. */
    if (agent->folder != NULL &&
        att_run_folder_tasks(agent->folder, &totals, agent->rows, count, last) != ATT_OK)
        att_log_limited(&site, ATT_LOG_ERROR, "no memory for %s/tasks.json",
                        agent->config->run_dir);
    att_exporter_report(agent->exporter, &totals, agent->rows, count, last);
}

static void note_ends(struct att_agent *agent)
{
    for (uint32_t i = 0; i < agent->task_count; i++)
        if (agent->tasks[i] != NULL)
            att_task_note_end(agent->tasks[i]);
}

static bool is_alive(void *context, uint32_t process)
{
    struct att_agent *agent = context;
    return att_segment_process_alive(agent->segment, process);
}

/* --- loop ------------------------------------------------------------------------------------- */

uint64_t att_agent_round(struct att_agent *agent)
{
    uint64_t now_ns = att_clock_ns();
    agent->polls++;
    if (att_node_scan(agent->node) | att_span_changed(agent->span)) {
        for (uint32_t g = 0; g < att_node_group_count(agent->node); g++)
            look_at_group(agent, g, now_ns);
        look_for_tasks(agent);
    }
    att_node_drain(agent->node, ATT_RING, take_record, agent);
    int under_way;
    uint32_t messages = att_peers_step(agent->peers, now_ns, &under_way);
    int wanted = agent->config->observe, moved = 0;
    look_at_pins(agent, now_ns);
    for (uint32_t i = 0; i < agent->task_count; i++) {
        if (agent->tasks[i] == NULL)
            continue;
        moved |= att_task_step(agent->tasks[i], now_ns);
        wanted |= att_task_wants_timing(agent->tasks[i]);
    }
    int others = att_span_wants_timing(agent->span);
    set_timing(agent, wanted, others | att_timeline_recording(agent->timeline), now_ns);
    wanted |= under_way | others;
    att_exporter_step(agent->exporter, now_ns);
    att_counting_step(agent->counting, now_ns);
    uint64_t patience_ns = att_timeline_step(agent->timeline, now_ns);
    if (now_ns - agent->last_report_ns >= REPORT_NS) {
        /* A trace names processes by their entries: they stay while one is recorded. */
        if (!att_timeline_recording(agent->timeline) &&
            att_node_bury(agent->node, is_alive, agent) > 0)
            att_log(ATT_LOG_INFO,
                    "a process of the job is gone without a word: its ranks have left");
        /* Retired members do not show as new entries: look at the groups now and then. */
        for (uint32_t g = 0; g < att_node_group_count(agent->node); g++)
            look_at_group(agent, g, now_ns);
        look_for_tasks(agent);
        note_ends(agent);
        report(agent, "running", 0, now_ns);
    }
    att_pace_round_t round = {.now_ns = now_ns,
                              .fullest = att_node_fullest(agent->node),
                              .messages = messages,
                              .searching = wanted && !agent->config->observe,
                              .moved = moved};
    uint64_t sleep_ns = att_pace_sleep_ns(&agent->pace, &round, ATT_RING);
    return sleep_ns < patience_ns ? sleep_ns : patience_ns;
}

void att_agent_finish(struct att_agent *agent)
{
    uint64_t now_ns = att_clock_ns();
    att_node_drain(agent->node, ATT_RING, take_record, agent);
    att_node_set_timing(agent->node, 0);
    atomic_store(&agent->memory->header.agent_tuning, 0);
    note_ends(agent); /* the job's last calls may be a moment ago */
    /* The others' last reports: they were told to end when we were. */
    if (agent->folder != NULL) {
        step_until(agent, att_peers_all_gone, FAREWELL_NS);
        if (!att_peers_all_gone(agent->peers))
            att_log(ATT_LOG_WARN, "another agent sent no last report: what its tasks and calls "
                                  "came to in the end is not in the run folder");
    }
    report(agent, "finished", 1, now_ns);
    att_writer_flush(agent->writer);
}

void att_agent_destroy(struct att_agent *agent)
{
    if (agent == NULL)
        return;
    for (uint32_t i = 0; i < ATT_TASKS; i++)
        att_task_destroy(agent->tasks[i]);
    free(agent->rows);
    att_pinning_clear(&agent->pinning);
    att_timeline_destroy(agent->timeline);
    att_counting_destroy(agent->counting);
    att_peers_destroy(agent->peers);
    att_node_destroy(agent->node);
    att_segment_close(agent->segment);
    att_writer_destroy(agent->writer); /* which may be making files of the folder's */
    att_run_folder_close(agent->folder);
    att_exporter_destroy(agent->exporter);
    att_applied_free(agent->applied);
    att_quarantine_free(agent->quarantine);
    free(agent);
}
