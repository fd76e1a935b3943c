#include "world.h"

#include "base/clock.h"
#include "base/home.h"
#include "base/ring.h"
#include "search/strategy_host.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

static att_config_t config;
static struct att_strategy_host *host;
static int listener = -1;
static int listener_port;

/* The home's helper, as far as the agents' test needs it. */
static void *answer_tests(void *unused)
{
    (void)unused;
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        att_home_request_t request;
        if (fd < 0)
            continue;
        if (recv(fd, &request, sizeof request, MSG_WAITALL) == (ssize_t)sizeof request &&
            request.verb == ATT_HOME_TEST) {
            att_home_reply_t reply = {.magic = ATT_HOME_MAGIC, .txn = request.txn};
            (void)!send(fd, &reply, sizeof reply, MSG_NOSIGNAL);
        }
        close(fd);
    }
    return NULL;
}

static void prepare_once(void)
{
    if (listener >= 0)
        return;
    att_error_t error;
    assert_int_equal(att_config_init(&config, &error), ATT_OK);
    assert_int_equal(att_config_set(&config, "strategy", "random:trials=30", "test", &error), 0);
    assert_int_equal(att_config_set(&config, "max-cost", "0", "test", &error), 0);
    assert_int_equal(att_config_set(&config, "log", "error", "test", &error), 0);
    assert_int_equal(att_strategy_host_create("", ATT_HOST_INPROCESS, 10, &host, &error), ATT_OK);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof here;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&here, size), 0);
    assert_int_equal(listen(listener, 64), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&here, &size), 0);
    listener_port = ntohs(here.sin_port);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, answer_tests, NULL), 0);
    pthread_detach(thread);
}

static void post(void *context, uint32_t to, const att_message_t *message)
{
    world_node_t *n = context;
    mail_t *mail = malloc(sizeof *mail);
    assert_non_null(mail);
    assert_true(to < n->world->node_count);
    *mail = (mail_t){.from = n->self, .to = to};
    /* Only what travels. */
    assert_int_equal(att_message_read(message, att_message_bytes(message), &mail->message), ATT_OK);
    *n->world->mail_end = mail;
    n->world->mail_end = &mail->next;
    n->world->sent++;
}

static void refuse(void *context, uint32_t group, const char *why)
{
    (void)group;
    world_node_t *n = context;
    n->refused++;
    strncpy(n->why, why, sizeof n->why - 1);
}

static void grant(void *context, uint32_t leader, const att_group_key_t *group)
{
    att_message_t m = {.type = ATT_MESSAGE_GRANT, .group = *group};
    post(context, leader, &m);
}

static const att_registry_ops_t registry_ops = {.send = post};
static const att_turn_ops_t turn_ops = {grant};
static const att_span_ops_t span_ops = {.send = post, .refuse = refuse};

world_t *world_create(uint32_t nodes)
{
    prepare_once();
    world_t *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->node_count = nodes;
    w->mail_end = &w->mail;
    w->seed = 1;
    for (uint32_t i = 0; i < nodes; i++) {
        world_node_t *n = &w->nodes[i];
        n->world = w;
        n->self = i;
        /* Untouched pages cost nothing. */
        assert_int_equal(posix_memalign((void **)&n->memory, 4096, sizeof *n->memory), 0);
        memset(&n->memory->header, 0, sizeof n->memory->header);
        memset(n->memory, 0, offsetof(att_segment_memory_t, rings));
        n->memory->header.wait_ns = 60000000000u;
        n->memory->header.in_doubt_ns = 600000000000u;
        n->process = att_segment_add_process(n->memory, "test");
        att_segment_process_t *p = &n->memory->processes[n->process];
        p->helper_port = (uint32_t)listener_port;
        strcpy(p->helper_address[0], "127.0.0.1");
        atomic_store(&p->helper, 1);
        assert_int_equal(att_node_create(n->memory, &n->node), ATT_OK);
        n->shared = (att_task_shared_t){.node = n->node, .host = host, .config = &config};
        n->shared.started_ns = att_clock_ns();
        att_node_turn_init(&n->shared.turn);
        assert_int_equal(att_registry_create(&registry_ops, n, nodes, &n->registry), ATT_OK);
        if (i == ATT_KEEPER)
            assert_int_equal(att_turn_keeper_create(&turn_ops, n, nodes, &n->keeper), ATT_OK);
        assert_int_equal(att_span_create(&n->shared, i, nodes, &span_ops, n, &n->span), ATT_OK);
    }
    return w;
}

void world_destroy(world_t *w)
{
    while (w->mail != NULL) {
        mail_t *mail = w->mail;
        w->mail = mail->next;
        free(mail);
    }
    for (uint32_t i = 0; i < w->node_count; i++) {
        world_node_t *n = &w->nodes[i];
        att_task_destroy(n->task);
        att_span_destroy(n->span);
        att_registry_destroy(n->registry);
        att_turn_keeper_destroy(n->keeper);
        att_node_destroy(n->node);
        free(n->memory);
    }
    free(w);
}

void world_group(world_t *w, uint64_t hash, uint32_t ranks, const uint32_t *node_of)
{
    bool first = w->rank_count == 0;
    for (uint32_t r = 0; r < ranks; r++) {
        att_segment_memory_t *m = w->nodes[node_of[r]].memory;
        uint32_t group = att_segment_group(m, hash, ranks, w->node_count);
        uint32_t member = att_segment_add_member(m, group, r, w->nodes[node_of[r]].process);
        assert_int_not_equal(member, ATT_NONE);
        m->members[member].tuner_abi = 6;
        m->members[member].profiler_abi = 6;
        m->members[member].all_connected = 1;
        m->members[member].whole_stamps = 1;
        m->members[member].clock_id = 1;
        m->members[member].device_units = 132;
        atomic_store(&m->members[member].channels, 8); /* what NCCL's own choice uses */
        m->members[member].device_id[0] = (uint8_t)(r + 1);
        att_segment_publish_member(m, member);
        if (first)
            w->ranks[r] = (world_rank_t){.node = &w->nodes[node_of[r]], .member = member};
    }
    if (first)
        w->rank_count = ranks;
}

void world_call_task(world_t *w, uint64_t bytes)
{
    float cost[ATT_PAIR_COUNT] = {0};
    for (uint32_t r = 0; r < w->rank_count; r++) {
        world_rank_t *rank = &w->ranks[r];
        att_segment_memory_t *m = rank->node->memory;
        uint32_t task = att_segment_task(m, m->members[rank->member].group,
                                         ATT_COLLECTIVE_ALL_REDUCE, bytes, 0x3f, cost);
        rank->lane_index = att_segment_add_lane(m, task, rank->member);
        assert_int_not_equal(rank->lane_index, ATT_NONE);
        att_lane_init(&rank->lane, m, rank->lane_index, rank->node->process);
    }
}

/* --- agents ----------------------------------------------------------------------------------- */

static void deliver(world_t *w)
{
    mail_t *mail = w->mail;
    w->mail = NULL;
    w->mail_end = &w->mail;
    while (mail != NULL) {
        world_node_t *n = &w->nodes[mail->to];
        const att_message_t *m = &mail->message;
        if (m->type == ATT_MESSAGE_REGISTER || m->type == ATT_MESSAGE_RETIRE)
            att_registry_message(n->registry, mail->from, m);
        else if (m->type == ATT_MESSAGE_NODES || m->type == ATT_MESSAGE_ASK ||
                 m->type == ATT_MESSAGE_RETURN)
            att_turn_message(n->keeper, mail->from, m);
        else {
            if (m->type == ATT_MESSAGE_ENDED && n->keeper != NULL)
                att_turn_message(n->keeper, mail->from, m);
            att_span_message(n->span, mail->from, m);
        }
        mail_t *next = mail->next;
        free(mail);
        mail = next;
    }
}

static void take_record(void *context, const att_record_t *record)
{
    world_node_t *n = context;
    if (n->task != NULL)
        att_task_record(n->task, record);
    else
        att_span_record(n->span, record);
}

static void lead(world_node_t *n)
{
    if (n->task != NULL || att_node_task_count(n->node) == 0)
        return;
    const att_task_reach_t *reach = att_span_reach(n->span, 0);
    uint32_t here = att_span_ranks_here(n->span, 0);
    if (reach == NULL &&
        (here > 0 || att_node_members(n->node, 0)->count < n->memory->groups[0].ranks))
        return;
    assert_int_equal(att_task_create(&n->shared, 0, reach, &n->task), ATT_OK);
    if (reach != NULL)
        att_span_lead(n->span, 0, n->task);
}

void world_round(world_t *w)
{
    deliver(w);
    for (uint32_t i = 0; i < w->node_count; i++) {
        world_node_t *n = &w->nodes[i];
        uint64_t now_ns = att_clock_ns();
        att_node_scan(n->node);
        att_node_drain(n->node, ATT_RING, take_record, n);
        if (w->node_count > 1)
            att_span_step(n->span, now_ns);
        lead(n);
        if (n->task != NULL)
            att_task_step(n->task, now_ns);
    }
}

void world_meet(world_t *w)
{
    for (int i = 0; i < 20000; i++) {
        for (uint32_t n = 0; n < w->node_count; n++)
            if (w->nodes[n].task != NULL)
                return;
        world_round(w);
        att_clock_sleep_ns(500000); /* the test of the way home takes real time */
    }
    fail_msg("no agent leads the group");
}

/* --- ranks ------------------------------------------------------------------------------------ */

static void note(world_t *w, world_rank_t *rank, uint64_t call)
{
    const att_lane_t *lane = &rank->lane;
    const att_setting_t *setting = &lane->schedule.entries[lane->current].setting;
    uint16_t mine = (uint16_t)(setting->channels + 1u);
    assert_true(call < WORLD_CALLS);
    if (w->decided[call] == 0) {
        w->decided[call] = mine;
        w->trials += lane->current + 1 < lane->schedule.count;
    }
    w->mismatches += w->decided[call] != mine;
    int channels = setting->channels == 0 ? 8 : setting->channels;
    int away = channels > 5 ? channels - 5 : 5 - channels;
    att_record_t record = {.call = call,
                           .start_ns = 1000000 * (call + 1),
                           .nccl_seq = call + rank->seq_shift,
                           .task = lane->shared->task,
                           .member = rank->member,
                           .process = rank->node->process,
                           .txn = lane->schedule.txn,
                           .collective = ATT_COLLECTIVE_ALL_REDUCE,
                           .algorithm = ATT_ALGORITHM_RING,
                           .protocol = ATT_PROTOCOL_SIMPLE,
                           .source = ATT_TIME_KERNEL,
                           .channels = (uint16_t)channels};
    record.stop_ns = record.start_ns + 100000 + 20000u * (uint64_t)away;
    assert_true(att_ring_put(&rank->node->memory->rings[rank->node->process], &record));
    rank->call = call + 1;
}

/* As a process's helper does for a rank that waited too long (base/home.h): the home is another
 * node of this world, the one on which the word is no copy. */
static void ask_home(world_t *w, world_rank_t *rank, uint64_t now_ns)
{
    att_home_state_t state = ATT_HOME_NONE;
    for (uint32_t n = 0; n < w->node_count; n++) {
        att_segment_task_t *task = &w->nodes[n].memory->tasks[rank->lane.task->home_task];
        if (atomic_load(&task->copied) == 0 &&
            ATT_HOME_TXN(atomic_load(&task->home)) == rank->wait.txn)
            state = att_home_decide(task, rank->wait.txn, ATT_HOME_ABORTED);
    }
    att_wait_answer(&rank->lane, &rank->wait, state, now_ns);
}

/* One step of a rank: 1 when it decided a call. */
static int step_rank(world_t *w, world_rank_t *rank)
{
    uint64_t now_ns = att_clock_ns();
    if (rank->waiting) {
        att_wait_action_t action = att_wait_step(&rank->lane, &rank->wait, now_ns);
        if (action == ATT_WAIT_ASK)
            ask_home(w, rank, now_ns);
        if (action != ATT_WAIT_DONE)
            return 0;
        rank->waiting = 0;
        note(w, rank, rank->call);
        return 1;
    }
    uint64_t old = atomic_fetch_add(&rank->lane.shared->word, 2);
    if (((old & 1) || rank->lane.pending_end) &&
        att_lane_enter(&rank->lane, old >> 1, now_ns, &rank->wait) != ATT_WAIT_DONE) {
        rank->waiting = 1;
        return 0;
    }
    note(w, rank, old >> 1);
    return 1;
}

static uint64_t slowest(const world_t *w)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t r = 0; r < w->rank_count; r++)
        if (w->ranks[r].call < least)
            least = w->ranks[r].call;
    return least;
}

void world_run(world_t *w, uint64_t calls, uint32_t skew)
{
    uint64_t end = slowest(w) + calls;
    while (slowest(w) < end) {
        uint64_t least = slowest(w);
        for (uint32_t r = 0; r < w->rank_count; r++) {
            world_rank_t *rank = &w->ranks[r];
            if (rank->call < end && rank->call <= least + skew && rand_r(&w->seed) % 3 != 0)
                step_rank(w, rank);
        }
        world_round(w);
    }
}
