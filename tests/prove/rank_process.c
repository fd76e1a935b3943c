/* The simulated training processes: a rank's thread in each, and the helper thread of those that
 * are rank 0 of a group. The calls, waits and answers are the real code's. */
#include "world.h"

#include <string.h>

#define REQUESTS   64
#define REQUEST_NS 2000000000u /* att_resolver_ask blocks for at most so long */
#define KEEP_NS    100000000u  /* and keeps its seat so often */

/* A request on its way to a helper, then its reply on its way back. */
typedef struct exchange {
    bool used, answered;
    bool orphan; /* nobody waits for the reply */
    uint32_t home_rank, asker;
    uint64_t due_ns;
    att_home_request_t request;
    att_home_reply_t reply;
    int status;
} exchange_t;
static exchange_t exchanges[REQUESTS];
static uint32_t helper_of[RANKS]; /* actor, ATT_NONE */
static uint32_t actor_of[RANKS];

/* --- network between ranks and helpers ---------------------------------------------------------
 */

static exchange_t *new_exchange(void)
{
    for (uint32_t i = 0; i < REQUESTS; i++)
        if (!exchanges[i].used)
            return &exchanges[i];
    return NULL;
}

static uint64_t delay(void)
{
    return sim_now() + sim_span(10000, NET_MOST_NS);
}

/* Wait until then, or a little for a seat that has to be kept, as att_resolver_ask does. */
static void wait_a_while(uint64_t until_ns, att_segment_task_t *task, uint64_t *seat)
{
    bool keeps = task != NULL && sim_now() + KEEP_NS < until_ns;
    sim_wait_until(keeps ? sim_now() + KEEP_NS : until_ns);
    if (keeps)
        att_seat_keep(task, seat, sim_clock_ns());
}

att_home_state_t sim_ask(const att_home_request_t *request, uint32_t node, att_segment_task_t *task,
                         uint64_t *seat)
{
    uint32_t home_rank = ATT_NONE;
    for (uint32_t g = 0; g < GROUPS; g++)
        if (request->hash == 0x1000 + g)
            home_rank = world.groups[g].home_rank;
    uint64_t deadline = sim_now() + REQUEST_NS;
    exchange_t *e = new_exchange();
    bool lost = e == NULL || sim_dead(home_rank) || sim_chance(40);
    sim_trace("process %u of node %u asks rank %u's process about %u%s", sim_process(), node,
              home_rank, request->txn, lost ? ": lost" : "");
    if (lost) {
        sim_cut_off(sim_process(), deadline);
        while (sim_now() < deadline)
            wait_a_while(deadline, task, seat);
        return ATT_HOME_NONE;
    }
    *e = (exchange_t){.used = true,
                      .home_rank = home_rank,
                      .asker = sim_current(),
                      .due_ns = delay(),
                      .request = *request};
    sim_wake(helper_of[home_rank], e->due_ns);
    while (sim_now() < deadline && !(e->answered && sim_now() >= e->due_ns))
        wait_a_while(e->answered ? e->due_ns : deadline, task, seat);
    bool good = e->answered && e->status == ATT_OK;
    att_home_state_t state = good ? att_home_read(request, &e->reply) : ATT_HOME_NONE;
    if (e->answered)
        e->used = false;
    else
        e->orphan = true;
    if (!good)
        sim_disturb(sim_process());
    return state;
}

att_home_state_t sim_resolver_ask(const att_segment_memory_t *memory, att_segment_task_t *task,
                                  uint32_t txn, uint64_t *seat, const struct att_lane_gate *gate)
{
    att_home_request_t request;
    att_home_ask(memory, task, txn, &request);
    return sim_ask(&request, world.node_of[sim_process()], task, seat);
}

static void serve(exchange_t *e, uint32_t rank)
{
    att_segment_memory_t *memory = world.memory[world.node_of[rank]];
    sim_step_reached(ATT_STEP_QUERIED, e->request.home_task, e->request.txn, 0);
    uint8_t key[16];
    memset(key, 0x40 + (int)rank, sizeof key);
    e->status = att_home_answer(memory, key, &e->request, &e->reply);
    if (e->status != ATT_OK)
        sim_fail("the helper of rank %u refuses a request: %d", rank, e->status);
    totals.resolves++;
    sim_step_reached(ATT_STEP_RESOLVED, e->request.home_task, e->request.txn, 0);
    /* The network may bring a request twice, the second one long after. */
    exchange_t *again = sim_chance(100) ? new_exchange() : NULL;
    if (again != NULL) {
        *again = *e;
        again->orphan = true;
        again->answered = false;
        again->due_ns = sim_now() + sim_span(1000000, 4000000000u);
    }
    if (e->orphan) {
        e->used = false;
        return;
    }
    e->answered = true;
    e->due_ns = delay();
    sim_wake(e->asker, e->due_ns);
}

static void helper_main(void *argument)
{
    uint32_t rank = (uint32_t)(uintptr_t)argument;
    for (;;) {
        exchange_t *first = NULL;
        for (uint32_t i = 0; i < REQUESTS; i++) {
            exchange_t *e = &exchanges[i];
            if (e->used && !e->answered && e->home_rank == rank &&
                (first == NULL || e->due_ns < first->due_ns))
                first = e;
        }
        if (first == NULL)
            sim_wait_until(SIM_NEVER);
        else if (first->due_ns > sim_now())
            sim_wait_until(first->due_ns);
        else
            serve(first, rank);
    }
}

/* --- ranks -------------------------------------------------------------------------------------
 */

static uint64_t slowest(void)
{
    uint64_t low = UINT64_MAX;
    for (uint32_t r = 0; r < RANKS; r++)
        if (!sim_dead(r) && !world.ended[r] && world.progress[r] < low)
            low = world.progress[r];
    return low;
}

void sim_rank_moved(void)
{
    uint64_t low = slowest();
    for (uint32_t r = 0; r < RANKS; r++)
        if (world.progress[r] < low + world.window)
            sim_wake(actor_of[r], sim_now() + sim_below(500));
}

static bool goes_on(uint32_t rank)
{
    return !world.finished || world.progress[rank] < world.last_call;
}

/* One call of each group. False: it failed in doubt. */
static bool iterate(uint32_t rank, att_lane_t lanes[GROUPS])
{
    for (uint32_t g = 0; g < GROUPS; g++) {
        if (world.groups[g].rank_of[rank] == ATT_NONE)
            continue;
        att_decision_t decision = att_lane_next(&lanes[g]);
        bool in_doubt = decision.trial == ATT_DECISION_IN_DOUBT;
        sim_wait_end(rank, in_doubt);
        if (in_doubt)
            return false;
        sim_launched(g, rank, &decision);
        /* Calls come slower the longer no agent does anything: they would say nothing new. */
        uint32_t doublings = ++world.quiet_calls / 24;
        sim_wait_until(sim_now() + (sim_span(4000, 150000) << (doublings < 14 ? doublings : 14)));
    }
    return true;
}

static void rank_main(void *argument)
{
    uint32_t rank = (uint32_t)(uintptr_t)argument;
    att_lane_t lanes[GROUPS];
    for (uint32_t g = 0; g < GROUPS; g++)
        if (world.groups[g].rank_of[rank] != ATT_NONE)
            att_lane_init(&lanes[g], world.memory[world.node_of[rank]],
                          world.groups[g].lane_of[rank], rank);
    while (goes_on(rank)) {
        /* Collectives couple ranks: none is more than so many calls ahead. */
        if (world.progress[rank] >= slowest() + world.window) {
            sim_wait_until(SIM_NEVER);
            continue;
        }
        if (!iterate(rank, lanes))
            break;
        world.progress[rank]++;
        sim_rank_moved();
    }
    world.ended[rank] = true;
    sim_rank_moved();
}

void sim_ranks_start(void)
{
    memset(exchanges, 0, sizeof exchanges);
    for (uint32_t r = 0; r < RANKS; r++) {
        uint32_t slowness = sim_chance(128) ? 1 + sim_below(12) : 1 + sim_below(2);
        actor_of[r] = sim_spawn(r, slowness, rank_main, (void *)(uintptr_t)r);
        helper_of[r] = ATT_NONE;
    }
    for (uint32_t g = 0; g < GROUPS; g++) {
        uint32_t home = world.groups[g].home_rank;
        if (helper_of[home] == ATT_NONE)
            helper_of[home] = sim_spawn(home, 1, helper_main, (void *)(uintptr_t)home);
    }
}
