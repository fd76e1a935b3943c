/* Clock synchronisation as played: four agents, virtual time, message delays that are not
 * symmetric; no MPI. */
#include "control/clock_sync.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define AGENTS 4
#define QUEUE  64
#define SECOND 1000000000ll

typedef struct mail {
    int64_t at_ns;
    uint32_t from, to;
    att_ping_t ping;
} mail_t;

typedef struct world {
    int64_t now_ns; /* true time */
    mail_t mail[QUEUE];
    uint32_t mails;
    int64_t slow_ns; /* added to every n-th message */
    uint32_t slow_every, sent;
    struct agent *agents;
} world_t;

typedef struct agent {
    world_t *world;
    uint32_t self;
    int64_t offset_ns;
    double drift;
    struct att_clock_sync *sync;
    att_clock_model_t model; /* what a reader would make of the points */
} agent_t;

static int64_t local(const agent_t *a)
{
    return a->world->now_ns + a->offset_ns + (int64_t)(a->drift * (double)a->world->now_ns);
}

static int serving; /* agents inside a burst play the other side */

static void deliver_to(world_t *w, uint32_t to)
{
    agent_t *a = &w->agents[to];
    if (serving < 8) {
        serving++;
        att_clock_sync_step(a->sync, 1);
        serving--;
    }
}

static int send_mail(void *context, uint32_t to, const att_ping_t *ping)
{
    agent_t *a = context;
    world_t *w = a->world;
    assert_true(w->mails < QUEUE);
    int64_t delay = 600 + (++w->sent % 5) * 60;
    if (w->slow_every != 0 && w->sent % w->slow_every == 0)
        delay += w->slow_ns;
    w->mail[w->mails++] = (mail_t){w->now_ns + delay, a->self, to, *ping};
    return 1;
}

/* The oldest mail for this agent that has arrived. Time passes while somebody polls. */
static int receive_mail(void *context, uint32_t *from, att_ping_t *ping)
{
    agent_t *a = context;
    world_t *w = a->world;
    w->now_ns += 200;
    for (uint32_t i = 0; i < w->mails; i++) {
        if (w->mail[i].to != a->self || w->mail[i].at_ns > w->now_ns)
            continue;
        *from = w->mail[i].from;
        *ping = w->mail[i].ping;
        memmove(&w->mail[i], &w->mail[i + 1], (--w->mails - i) * sizeof w->mail[0]);
        return 1;
    }
    /* Whoever waits here lets the others run: one thread plays all agents. */
    for (uint32_t i = 0; i < w->mails; i++)
        if (w->mail[i].to != a->self && w->mail[i].at_ns <= w->now_ns) {
            deliver_to(w, w->mail[i].to);
            break;
        }
    return 0;
}

static int64_t now_of(void *context)
{
    agent_t *a = context;
    a->world->now_ns += 20;
    return local(a);
}

static void take_point(void *context, const att_stream_clock_t *point)
{
    agent_t *a = context;
    assert_int_equal(att_clock_model_add(&a->model, point), ATT_OK);
}

static const att_clock_ops_t ops = {send_mail, receive_mail, now_of, take_point};

static void run_world(world_t *w, agent_t agents[AGENTS], int64_t seconds)
{
    static const int64_t offsets[AGENTS] = {0, 3500000000ll, -2250000000ll, 7000000000ll};
    static const double drifts[AGENTS] = {0, 20e-6, -35e-6, 50e-6};
    w->agents = agents;
    for (uint32_t i = 0; i < AGENTS; i++) {
        agents[i] = (agent_t){.world = w, .self = i, .offset_ns = offsets[i], .drift = drifts[i]};
        assert_int_equal(att_clock_sync_create(i, AGENTS, &ops, &agents[i], &agents[i].sync),
                         ATT_OK);
    }
    while (w->now_ns < seconds * SECOND) {
        for (uint32_t i = 0; i < AGENTS; i++)
            att_clock_sync_step(agents[i].sync, 1);
        w->now_ns += 500000;
    }
}

static void check_world(world_t *w, agent_t agents[AGENTS], int64_t limit_ns)
{
    for (uint32_t i = 1; i < AGENTS; i++) {
        agent_t *a = &agents[i];
        assert_int_equal(att_clock_model_clean(&a->model, 0), ATT_OK);
        assert_in_range(a->model.count, 5, 100);
        int64_t at = w->now_ns;
        for (int k = 1; k < 8; k++) {
            w->now_ns = at / 8 * k;
            att_clock_reading_t r = att_clock_model_read(&a->model, local(a));
            assert_in_range(llabs(r.ns - w->now_ns), 0, limit_ns);
            assert_true(llabs(r.ns - w->now_ns) <= (int64_t)r.uncertainty_ns + 1);
        }
        w->now_ns = at;
        att_clock_model_free(&a->model);
        att_clock_sync_destroy(a->sync);
    }
    att_clock_sync_destroy(agents[0].sync);
}

static void clocks_come_together_along_the_tree(void **state)
{
    world_t w = {.now_ns = 1000};
    agent_t agents[AGENTS];
    run_world(&w, agents, 8);
    check_world(&w, agents, 2000);
}

/* Most round trips are long and lopsided: the best of a burst still counts. */
static void slow_messages_are_sorted_out(void **state)
{
    world_t w = {.now_ns = 1000, .slow_ns = 300000, .slow_every = 3};
    agent_t agents[AGENTS];
    run_world(&w, agents, 8);
    check_world(&w, agents, 5000);
}

static void parents(void **state)
{
    assert_int_equal(att_clock_parent(1), 0);
    assert_int_equal(att_clock_parent(6), 4);
    assert_int_equal(att_clock_parent(7), 6);
    assert_int_equal(att_clock_parent(12), 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parents),
        cmocka_unit_test(clocks_come_together_along_the_tree),
        cmocka_unit_test(slow_messages_are_sorted_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
