/*
 * Event-order fuzz: a million seeded callbacks, of which many are impossible (child before parent,
 * twice, after the end, never, zero and reversed times, handles of other calls). Every call yields
 * exactly one record; a time is reported only for calls that nothing impossible touched, and is
 * right; every impossible callback is counted.
 */
#include "fake_nccl.h"
#include "hook/handle.h"
#include "isolated.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define CALLBACKS 1000000
#define CALLS     200000
#define FLIGHT    200
#define CHANNELS  4

typedef struct flight {
    uint64_t call;
    fake_op_t op;
    void *kernels[CHANNELS];
    uint64_t starts[CHANNELS], stops[CHANNELS];
    int stopped;
} flight_t;

/* What must be reported of a call. */
typedef struct expectation {
    uint64_t start, stop;
    bool spoiled, done, reported;
} expectation_t;

static expectation_t *expected;
static flight_t flights[FLIGHT];
static uint64_t anomalies;
static unsigned seed;

static unsigned pick(unsigned below)
{
    return (unsigned)rand_r(&seed) % below;
}

static void begin_call(fake_comm_t *comm, flight_t *f, uint64_t call)
{
    memset(f, 0, sizeof *f);
    f->call = call;
    fake_begin(comm);
    fake_op_t *op = fake_enqueue(comm, ATT_COLLECTIVE_ALL_REDUCE, 1024, false);
    CHECK_EQUAL(fake_prepare(comm), 0);
    op->coll_channels = CHANNELS;
    /* Without events of API calls only a Coll event ends a batch: NCCL 2.27 always sends one. */
    if (comm->abi < 5 || pick(50) != 0)
        fake_coll(comm, op);
    if (pick(50) == 0) { /* a second event of the batch: no longer separable */
        void *first = op->coll;
        fake_coll(comm, op);
        CHECK(first == NULL || op->coll == NULL);
        op->coll = first;
        expected[call].spoiled = true;
    }
    fake_end(comm);
    f->op = *op;
    if (op->coll == NULL)
        expected[call].spoiled = true;
}

static void start_channel(fake_comm_t *comm, flight_t *f, int c)
{
    if (f->op.coll == NULL) {
        CHECK(fake_kernel_start(comm, NULL, c, 5) == NULL);
        return;
    }
    expectation_t *e = &expected[f->call];
    uint64_t time = pick(400) == 0 ? 0 : 1000 + f->call * 100 + pick(50);
    void *kernel = fake_kernel_start(comm, f->op.coll, c, time);
    if (e->done || f->starts[c] != 0 || time == 0) {
        CHECK(kernel == NULL);
        anomalies++;
        e->spoiled |= !e->done;
        if (f->starts[c] == 0)
            f->starts[c] = 1; /* its stop will not come */
        return;
    }
    f->kernels[c] = kernel;
    f->starts[c] = time;
}

static void stop_channel(fake_comm_t *comm, flight_t *f, int c)
{
    void *kernel = f->kernels[c];
    if (kernel == NULL)
        return;
    expectation_t *e = &expected[f->call];
    uint64_t time = f->starts[c] + 100 + pick(500);
    if (pick(400) == 0)
        time = pick(2) == 0 ? 0 : f->starts[c] - 1 - pick(500);
    fake_kernel_stop(comm, kernel, time);
    if (e->done || f->stops[c] != 0 || time < f->starts[c]) {
        anomalies++;
        e->spoiled |= !e->done;
    }
    if (!e->done && f->stops[c] == 0) {
        f->stops[c] = time == 0 ? 1 : time;
        f->stopped++;
    }
    if (f->stopped == CHANNELS && !e->done) {
        e->done = true;
        e->start = UINT64_MAX;
        for (int i = 0; i < CHANNELS; i++) {
            e->start = f->starts[i] < e->start ? f->starts[i] : e->start;
            e->stop = f->stops[i] > e->stop ? f->stops[i] : e->stop;
        }
    }
}

/* What NCCL would do: all channels start, in any order, and stop. */
static void next_step(fake_comm_t *comm, flight_t *f)
{
    int c = (int)pick(CHANNELS);
    for (int i = 0; i < CHANNELS; i++, c = (c + 1) % CHANNELS) {
        if (f->starts[c] == 0) {
            start_channel(comm, f, c);
            return;
        }
        if (f->stops[c] == 0 && pick(2) == 0) {
            stop_channel(comm, f, c);
            return;
        }
    }
}

/* Callbacks with handles that make no sense where they are used. */
static void nonsense(fake_comm_t *comm, flight_t *f)
{
    switch (pick(5)) {
    case 0: /* the stop of a channel that did not start */
        if (f->op.coll != NULL && f->starts[CHANNELS - 1] == 0) {
            att_handle_t h = att_handle_unpack(f->op.coll);
            fake_kernel_stop(
                comm, att_handle_pack(ATT_HANDLE_KERNEL, h.context, h.serial, CHANNELS - 1), 99999);
            anomalies++;
            expected[f->call].spoiled |= !expected[f->call].done;
        }
        break;
    case 1: /* a parent of another kind */
        CHECK(fake_kernel_start(comm, f->op.api, 0, 5) == NULL);
        break;
    case 2: /* a state for an event that has none */
        fake_kernel_stop(comm, f->op.api, 5);
        break;
    case 3: { /* a call far in the future */
        CHECK(fake_kernel_start(comm, att_handle_pack(ATT_HANDLE_COLL, 0, 1u << 30, 0), 0, 5) ==
              NULL);
        anomalies++;
        break;
    }
    default: /* no event at all */
        fake_stop(comm, f->op.coll);
        CHECK(fake_kernel_start(comm, NULL, 255, 0) == NULL);
        break;
    }
}

static void drain(uint64_t reasons[ATT_UNTIMED_COUNT])
{
    att_record_t r;
    while (agent_record(&r)) {
        reasons[r.untimed]++;
        CHECK(r.call < CALLS);
        expectation_t *e = &expected[r.call];
        CHECK(!e->reported);
        e->reported = true;
        if (r.untimed == ATT_UNTIMED_NO) {
            CHECK(e->done && !e->spoiled);
            CHECK_EQUAL(r.start_ns, e->start);
            CHECK_EQUAL(r.stop_ns, e->stop);
        } else if (r.untimed != ATT_UNTIMED_FULL && r.untimed != ATT_UNTIMED_OFF) {
            CHECK(e->spoiled || !e->done);
        }
    }
}

static void fuzz(int abi, int callbacks)
{
    static fake_comm_t comm;
    uint64_t reasons[ATT_UNTIMED_COUNT] = {0};
    seed = 20240611;
    expected = calloc(CALLS, sizeof *expected);
    CHECK(expected != NULL);
    setenv("ATTUNE_GRAPHS", "no", 1);
    fake_init(&comm, &fake_linked, abi, 0xabc, 2, 0);
    atomic_store(&agent_memory()->processes[0].timing, 1);
    uint64_t calls = 0;
    for (int i = 0; i < FLIGHT; i++)
        begin_call(&comm, &flights[i], calls++);
    for (int i = 0; i < callbacks && calls < CALLS; i++) {
        flight_t *f = &flights[pick(FLIGHT)];
        unsigned what = pick(200);
        if (what == 0)
            start_channel(&comm, f, (int)pick(CHANNELS));
        else if (what == 1)
            stop_channel(&comm, f, (int)pick(CHANNELS));
        else if (what == 2)
            nonsense(&comm, f);
        else if (f->op.coll == NULL || expected[f->call].done || pick(400) == 0)
            begin_call(&comm, f, calls++);
        else
            next_step(&comm, f);
        if (i % 64 == 0)
            drain(reasons);
    }
    drain(reasons);
    fake_destroy(&comm);
    drain(reasons);
    for (uint64_t i = 0; i < calls; i++)
        CHECK(expected[i].reported);
    CHECK_EQUAL(atomic_load(&agent_memory()->processes[0].anomalies), anomalies);
    const uint64_t share = CALLBACKS / (uint64_t)callbacks;
    CHECK(anomalies > 5000 / share);
    CHECK(reasons[ATT_UNTIMED_NO] > 10000 / share);
    CHECK(reasons[ATT_UNTIMED_LOST] > 1000 / share);
    CHECK(abi < 5 || reasons[ATT_UNTIMED_MISMATCH] > 100 / share);
    CHECK(reasons[ATT_UNTIMED_GROUPED] > 100 / share);
    CHECK(reasons[ATT_UNTIMED_FULL] > 100 / share);
    free(expected);
}

ISOLATED(a_million_callbacks)
{
    fuzz(6, CALLBACKS);
}

ISOLATED(with_abi_5)
{
    fuzz(5, CALLBACKS / 4);
}

ISOLATED(with_abi_4)
{
    fuzz(4, CALLBACKS / 4);
}

ISOLATED(with_abi_3)
{
    fuzz(3, CALLBACKS / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_million_callbacks),
                                       cmocka_unit_test(with_abi_5), cmocka_unit_test(with_abi_4),
                                       cmocka_unit_test(with_abi_3)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
