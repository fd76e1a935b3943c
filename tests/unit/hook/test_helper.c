/* The helper thread over real sockets: resolves, hostile and slow peers, forks; and a rank of
 * another node that asks it. */
#include "base/clock.h"
#include "base/resolver.h"
#include "hook/helper.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define HASH 0x77u

static att_segment_memory_t *home, *away; /* two nodes */
static uint64_t no_seat;
static uint32_t lane_index;

static att_segment_memory_t *fresh_node(uint32_t rank)
{
    att_segment_memory_t *memory = aligned_alloc(64, (sizeof *memory + 63) / 64 * 64);
    assert_non_null(memory);
    memset(memory, 0, sizeof *memory);
    memory->header.wait_ns = 1000000;
    memory->header.in_doubt_ns = 60000000000u;
    float cost[ATT_PAIR_COUNT] = {0};
    uint32_t process = att_segment_add_process(memory, "test");
    uint32_t group = att_segment_group(memory, HASH, 2, 2);
    uint32_t member = att_segment_add_member(memory, group, rank, process);
    att_segment_publish_member(memory, member);
    uint32_t task = att_segment_task(memory, group, ATT_COLLECTIVE_ALL_REDUCE, 1024, 7, cost);
    lane_index = att_segment_add_lane(memory, task, member);
    return memory;
}

static int setup(void **state)
{
    (void)state;
    home = fresh_node(0);
    away = fresh_node(1);
    assert_int_equal(att_helper_start(home, &home->processes[0]), ATT_OK);
    assert_int_equal(att_helper_start(home, &home->processes[0]), ATT_OK);
    assert_int_equal(atomic_load(&home->processes[0].helper), 1);
    /* What the agents do before the first vote. */
    const att_segment_process_t *helper = &home->processes[0];
    att_segment_group_t *group = &away->groups[0];
    strcpy(group->home_address, "127.0.0.1");
    group->home_port = helper->helper_port;
    memcpy(group->home_key, helper->helper_key, 16);
    atomic_store(&group->path, 1);
    away->tasks[0].home_task = 0;
    atomic_store(&away->tasks[0].copied, 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(away); /* the helper may still look at `home` */
    return 0;
}

static void resolves_and_keeps_the_outcome(void **state)
{
    (void)state;
    assert_int_equal(att_home_open(&home->tasks[0], 5), ATT_OK);
    assert_int_equal(att_resolver_ask(away, &away->tasks[0], 5, &no_seat, NULL), ATT_HOME_ABORTED);
    assert_int_equal(att_home_decide(&home->tasks[0], 5, ATT_HOME_COMMITTED), ATT_HOME_ABORTED);
    assert_int_equal(att_home_open(&home->tasks[0], 6), ATT_OK);
    assert_int_equal(att_home_decide(&home->tasks[0], 6, ATT_HOME_COMMITTED), ATT_HOME_COMMITTED);
    for (int i = 0; i < 3; i++)
        assert_int_equal(att_resolver_ask(away, &away->tasks[0], 6, &no_seat, NULL),
                         ATT_HOME_COMMITTED);
    assert_int_equal(att_resolver_ask(away, &away->tasks[0], 5, &no_seat, NULL),
                     ATT_HOME_NONE); /* it is beyond */
    assert_int_equal(att_resolver_ask(away, &away->tasks[0], 8, &no_seat, NULL),
                     ATT_HOME_ABORTED); /* unknown */
    assert_int_equal(att_home_open(&home->tasks[0], 8), -ATT_EBUSY);
}

static int ask(att_home_request_t *request, att_home_reply_t *reply)
{
    att_resolver_t resolver;
    int status =
        att_resolver_start("127.0.0.1", home->processes[0].helper_port, request, &resolver);
    while (status == ATT_OK || status == -ATT_EBUSY) {
        status = att_resolver_step(&resolver, 2000);
        if (status == ATT_OK)
            break;
    }
    *reply = resolver.reply;
    return status;
}

static void strangers_get_no_word(void **state)
{
    (void)state;
    att_home_request_t good, bad;
    att_home_reply_t reply;
    att_home_ask(away, &away->tasks[0], 100, &good);
    good.verb = ATT_HOME_TEST;
    assert_int_equal(ask(&good, &reply), ATT_OK);
    uint64_t before = atomic_load(&home->tasks[0].home);
    for (int i = 0; i < 8; i++) {
        bad = good;
        bad.verb = ATT_HOME_RESOLVE;
        bad.magic ^= i == 0;
        bad.key[15] ^= i == 1;
        bad.hash ^= i == 2;
        bad.ranks ^= i == 3;
        bad.bytes ^= i == 4;
        bad.home_task = i == 5 ? UINT32_MAX : i == 6 ? 1 : 0;
        bad.verb = i == 7 ? 77 : bad.verb;
        assert_int_equal(ask(&bad, &reply), -ATT_ESYSTEM);
    }
    assert_int_equal(atomic_load(&home->tasks[0].home), before);
}

static int connect_only(void)
{
    struct sockaddr_in four = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)home->processes[0].helper_port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&four, sizeof four), 0);
    return fd;
}

/* More idle connections than there are places, some with half a request: a rank still gets in. */
static void silent_peers_keep_nobody_out(void **state)
{
    (void)state;
    enum { MANY = 3 * ATT_HELPER_CONNECTIONS };
    static int fds[MANY];
    for (int i = 0; i < MANY; i++) {
        fds[i] = connect_only();
        if (i % 2 == 0)
            assert_int_equal(send(fds[i], "half a request", 14, MSG_NOSIGNAL), 14);
    }
    att_home_open(&home->tasks[0], 200);
    assert_int_equal(att_resolver_ask(away, &away->tasks[0], 200, &no_seat, NULL),
                     ATT_HOME_ABORTED);
    for (int i = 0; i < MANY; i++)
        close(fds[i]);
}

/* A rank whose sidecar is dead: it waits W, asks, and obeys. */
static void rank_obeys_the_home(void **state)
{
    (void)state;
    att_lane_t lane;
    att_lane_init(&lane, away, lane_index, 0);
    for (int committed = 0; committed < 2; committed++) {
        uint32_t txn = 300 + (uint32_t)committed;
        att_schedule_t schedule = {.txn = txn, .count = 1};
        schedule.entries[0] = (att_schedule_entry_t){
            atomic_load(&away->lanes[lane_index].word) >> 1, ATT_SETTING_KEEP};
        schedule.entries[0].setting.channels = 3;
        assert_int_equal(att_home_open(&home->tasks[0], txn), ATT_OK);
        assert_int_equal(att_home_open(&away->tasks[0], txn), ATT_OK);
        assert_int_equal(att_vote_prepare(away, &away->tasks[0], &lane_index, 1, &schedule),
                         ATT_VOTE_YES);
        if (committed)
            att_home_decide(&home->tasks[0], txn, ATT_HOME_COMMITTED);
        att_decision_t d = att_lane_next(&lane);
        assert_int_equal(d.setting.channels, committed ? 3 : 0);
        assert_int_equal(att_home_state(&away->tasks[0], txn),
                         committed ? ATT_HOME_COMMITTED : ATT_HOME_ABORTED);
        assert_true(att_vote_ready(away, &lane_index, 1, &away->tasks[0]));
    }
}

static void no_answer_is_in_doubt(void **state)
{
    (void)state;
    att_lane_t lane;
    att_lane_init(&lane, away, lane_index, 0);
    uint32_t port = away->groups[0].home_port;
    away->groups[0].home_port = 1; /* nobody listens there */
    away->header.in_doubt_ns = 50000000;
    att_schedule_t schedule = {.txn = 400, .count = 1};
    schedule.entries[0] = (att_schedule_entry_t){0, ATT_SETTING_KEEP};
    schedule.entries[0].first_call = atomic_load(&away->lanes[lane_index].word) >> 1;
    assert_int_equal(att_home_open(&away->tasks[0], 400), ATT_OK);
    assert_int_equal(att_vote_prepare(away, &away->tasks[0], &lane_index, 1, &schedule),
                     ATT_VOTE_YES);
    assert_int_equal(att_lane_next(&lane).trial, ATT_DECISION_IN_DOUBT);
    assert_int_equal(atomic_load(&away->processes[0].in_doubt), 1);
    /* That call only: with the home back the next one goes on. */
    away->groups[0].home_port = port;
    assert_int_equal(att_lane_next(&lane).trial, ATT_DECISION_INCUMBENT);
    assert_int_equal(atomic_load(&away->processes[0].in_doubt), 1);
}

static void child_has_no_socket(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        att_helper_forget();
        int fd = dup(0);
        _exit(fd < 0);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    att_home_open(&home->tasks[0], 500);
    assert_int_equal(att_resolver_ask(away, &away->tasks[0], 500, &no_seat, NULL),
                     ATT_HOME_ABORTED);
}

/* Ranks of several threads ask at once while the word is decided. */
static void *asker(void *argument)
{
    uint32_t txn = (uint32_t)(uintptr_t)argument;
    return (void *)(uintptr_t)att_resolver_ask(away, &away->tasks[0], txn, &no_seat, NULL);
}

static void all_hear_the_same(void **state)
{
    (void)state;
    for (uint32_t txn = 600; txn < 620; txn++) {
        pthread_t threads[4];
        att_home_open(&home->tasks[0], txn);
        for (int i = 0; i < 4; i++)
            pthread_create(&threads[i], NULL, asker, (void *)(uintptr_t)txn);
        att_home_state_t mine = att_home_decide(&home->tasks[0], txn, ATT_HOME_COMMITTED);
        for (int i = 0; i < 4; i++) {
            void *heard;
            pthread_join(threads[i], &heard);
            assert_int_equal((uintptr_t)heard, mine);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resolves_and_keeps_the_outcome),
        cmocka_unit_test(strangers_get_no_word),
        cmocka_unit_test(silent_peers_keep_nobody_out),
        cmocka_unit_test(rank_obeys_the_home),
        cmocka_unit_test(no_answer_is_in_doubt),
        cmocka_unit_test(child_has_no_socket),
        cmocka_unit_test(all_hear_the_same),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
