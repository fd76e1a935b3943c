#include "control/clock_sync.h"

#include <limits.h>
#include <stdlib.h>

#define MS              1000000ll
#define PINGS           60u
#define ANSWER_NS       (2 * MS)   /* a ping that is not answered by then is given up */
#define BURST_NS        (10 * MS)  /* longest burst of the child */
#define SILENCE_NS      (10 * MS)  /* the parent waits so long for the next ping */
#define SERVE_NS        (20 * MS)  /* longest burst of the parent */
#define INVITE_NS       (100 * MS) /* an invitation that is not answered by then is given up */
#define STALE_NS        (60 * MS)  /* an acceptance that took longer has run out */
#define POLL_NS         1000000ull /* while invited */
#define RETRY_NS        (50 * MS)
#define INTERVAL_NS     (1000 * MS)
#define WANTED_NS       (10000 * MS) /* a child's wish holds so long */
#define RETRIES         8u           /* bursts for one point, when the machine is busy */
#define ONLINE_POINTS   32u
#define READY_UNCERTAIN 1000000u /* a parent worse than a millisecond is no reference */

struct att_clock_sync {
    uint32_t self, agents;
    const att_clock_ops_t *ops;
    void *context;
    att_clock_model_t model;
    att_clock_counts_t counts;
    int invited;
    uint32_t burst, tries;
    att_stream_clock_t best; /* of these tries */
    int64_t invited_ns, due_ns, wanted_until_ns;
};

uint32_t att_clock_parent(uint32_t self)
{
    return self & (self - 1);
}

int att_clock_sync_create(uint32_t self, uint32_t agents, const att_clock_ops_t *ops, void *context,
                          struct att_clock_sync **out)
{
    struct att_clock_sync *s = calloc(1, sizeof *s);
    if (s == NULL)
        return -ATT_ENOMEM;
    s->self = self;
    s->agents = agents;
    s->ops = ops;
    s->context = context;
    s->counts.lowest_ns = UINT32_MAX;
    s->due_ns = INT64_MIN;
    s->wanted_until_ns = INT64_MIN;
    *out = s;
    return ATT_OK;
}

void att_clock_sync_destroy(struct att_clock_sync *s)
{
    if (s == NULL)
        return;
    att_clock_model_free(&s->model);
    free(s);
}

void att_clock_sync_counts(const struct att_clock_sync *s, att_clock_counts_t *counts)
{
    *counts = s->counts;
}

static int64_t now_of(const struct att_clock_sync *s)
{
    return s->ops->now(s->context);
}

/* This agent's clock as the reference has it. */
static att_clock_reading_t reference(const struct att_clock_sync *s, int64_t ns)
{
    if (s->self == 0)
        return (att_clock_reading_t){ns, 0};
    return att_clock_model_read(&s->model, ns);
}

/* --- parent -------------------------------------------------------------------------------------
 */

static void answer(struct att_clock_sync *s, uint32_t to, uint32_t type, uint32_t burst)
{
    att_ping_t ping = {.type = type, .burst = burst};
    s->ops->send(s->context, to, &ping);
}

static void pong(struct att_clock_sync *s, uint32_t to, const att_ping_t *ping)
{
    att_clock_reading_t received = reference(s, now_of(s));
    att_ping_t out = *ping;
    out.type = ATT_PING_PONG;
    out.received_ns = received.ns;
    out.uncertainty_ns = received.uncertainty_ns;
    out.answered_ns = reference(s, now_of(s)).ns;
    s->ops->send(s->context, to, &out);
}

/* Answer one child without delay until it says that it has enough. */
static void serve(struct att_clock_sync *s, uint32_t child, uint32_t burst)
{
    answer(s, child, ATT_PING_ACCEPT, burst);
    int64_t begun = now_of(s), heard = begun;
    for (int64_t now = begun; now - heard < SILENCE_NS && now - begun < SERVE_NS; now = now_of(s)) {
        uint32_t from;
        att_ping_t ping;
        if (!s->ops->receive(s->context, &from, &ping))
            continue;
        if (from == child && ping.type == ATT_PING_PING) {
            pong(s, from, &ping);
            heard = now;
        } else if (from == child && ping.type == ATT_PING_END) {
            return;
        } else if (ping.type == ATT_PING_INVITE) {
            answer(s, from, ATT_PING_LATER, ping.burst);
        }
    }
}

static void on_invite(struct att_clock_sync *s, uint32_t from, const att_ping_t *ping)
{
    int64_t now = now_of(s);
    s->wanted_until_ns = now + WANTED_NS;
    if (reference(s, now).uncertainty_ns > READY_UNCERTAIN) {
        s->counts.refused++;
        answer(s, from, ATT_PING_LATER, ping->burst);
        return;
    }
    serve(s, from, ping->burst);
}

/* --- child --------------------------------------------------------------------------------------
 */

/* One ping; 1 and its point, or 0. Only the pong with its number counts. */
static int ping_once(struct att_clock_sync *s, uint32_t sequence, att_stream_clock_t *point)
{
    uint32_t parent = att_clock_parent(s->self), from;
    att_ping_t ping = {.type = ATT_PING_PING, .burst = s->burst, .sequence = sequence}, back;
    ping.sent_ns = now_of(s);
    if (!s->ops->send(s->context, parent, &ping))
        return 0;
    for (int64_t now = ping.sent_ns; now - ping.sent_ns < ANSWER_NS;) {
        int any = s->ops->receive(s->context, &from, &back);
        now = now_of(s);
        if (!any)
            continue;
        if (from == parent && back.type == ATT_PING_PONG && back.burst == s->burst &&
            back.sequence == sequence) {
            int64_t round_trip = (now - back.sent_ns) - (back.answered_ns - back.received_ns);
            if (round_trip <= 0 || round_trip > ANSWER_NS)
                return 0;
            int64_t middle = back.sent_ns + (now - back.sent_ns) / 2;
            *point = (att_stream_clock_t){
                .at_ns = middle,
                .offset_ns = back.received_ns + (back.answered_ns - back.received_ns) / 2 - middle,
                .uncertainty_ns = (uint32_t)(round_trip / 2) + 1 + back.uncertainty_ns,
                .round_trip_ns = (uint32_t)round_trip,
            };
            return 1;
        }
        if (back.type == ATT_PING_INVITE)
            answer(s, from, ATT_PING_LATER, back.burst);
    }
    return 0;
}

static int64_t next_interval(const struct att_clock_sync *s)
{
    /* The first points come quickly, so that drift is known early. */
    static const int64_t first_ms[] = {20, 50, 100, 200, 400};
    uint64_t points = s->counts.points;
    return points > 0 && points <= 5 ? first_ms[points - 1] * MS : INTERVAL_NS;
}

static void accept_point(struct att_clock_sync *s, att_stream_clock_t *point)
{
    s->tries = 0;
    if (att_clock_model_add(&s->model, point) != ATT_OK)
        return;
    att_clock_model_clean(&s->model, ONLINE_POINTS);
    point->drift = att_clock_model_drift(&s->model);
    s->counts.points++;
    s->due_ns = now_of(s) + next_interval(s);
    s->ops->point(s->context, point);
}

/* Near the pair's lowest: it counts. Else some more tries, of which the best is taken: on a busy
 * machine the lowest may never come again, and drift must be followed all the same. Its round trip
 * says how far it can be off; readers weigh it against its neighbours. */
static void take_point(struct att_clock_sync *s, const att_stream_clock_t *burst)
{
    if (s->tries++ == 0 || burst->round_trip_ns < s->best.round_trip_ns)
        s->best = *burst;
    if (burst->round_trip_ns < s->counts.lowest_ns)
        s->counts.lowest_ns = burst->round_trip_ns;
    if (s->best.round_trip_ns != UINT32_MAX &&
        (att_clock_near(s->best.round_trip_ns, s->counts.lowest_ns) || s->tries >= RETRIES)) {
        accept_point(s, &s->best);
        return;
    }
    s->counts.rejected++;
    if (s->tries >= RETRIES)
        s->tries = 0;
    s->due_ns = now_of(s) + RETRY_NS;
}

static void run_burst(struct att_clock_sync *s)
{
    att_stream_clock_t best = {.round_trip_ns = UINT32_MAX}, one;
    int64_t begun = now_of(s);
    for (uint32_t i = 0; i < PINGS && now_of(s) - begun < BURST_NS; i++)
        if (ping_once(s, i, &one) && one.round_trip_ns < best.round_trip_ns)
            best = one;
    answer(s, att_clock_parent(s->self), ATT_PING_END, s->burst);
    s->counts.bursts++;
    take_point(s, &best);
}

static void on_answer(struct att_clock_sync *s, const att_ping_t *ping)
{
    int64_t now = now_of(s);
    if (!s->invited || ping->burst != s->burst)
        return;
    s->invited = 0;
    s->due_ns = now + RETRY_NS;
    if (ping->type == ATT_PING_ACCEPT && now - s->invited_ns < STALE_NS)
        run_burst(s);
}

static void invite(struct att_clock_sync *s, int64_t now)
{
    att_ping_t ping = {.type = ATT_PING_INVITE, .burst = ++s->burst};
    s->invited = s->ops->send(s->context, att_clock_parent(s->self), &ping);
    s->invited_ns = now;
    s->due_ns = now + RETRY_NS;
}

uint64_t att_clock_sync_step(struct att_clock_sync *s, int wanted)
{
    if (s->agents < 2)
        return UINT64_MAX;
    uint32_t from;
    att_ping_t ping;
    while (s->ops->receive(s->context, &from, &ping)) {
        if (ping.type == ATT_PING_INVITE)
            on_invite(s, from, &ping);
        else if (ping.type == ATT_PING_PING)
            pong(s, from, &ping); /* late: its round trip will tell */
        else if (s->self != 0 && from == att_clock_parent(s->self))
            on_answer(s, &ping);
    }
    int64_t now = now_of(s);
    if (s->self == 0 || !(wanted || now < s->wanted_until_ns))
        return UINT64_MAX;
    if (s->invited && now - s->invited_ns > INVITE_NS)
        s->invited = 0;
    if (s->invited)
        return POLL_NS;
    if (now >= s->due_ns) {
        invite(s, now);
        return POLL_NS;
    }
    return (uint64_t)(s->due_ns - now);
}
