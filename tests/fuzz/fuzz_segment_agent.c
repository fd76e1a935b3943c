/*
 * An agent on a segment with mutated contents: patches between its rounds, while its node's ranks
 * call, search and switch. Whatever is in the segment, the agent neither leaves it nor its own
 * memory, and comes to the end of each round.
 */
#include "../../bench/scale/member.h"
#include "patch.h"

#include "base/ring.h"
#include "search/strategy_host.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RANKS = 2, GROUPS = 2, ROUNDS = 60 };

/* Alone: what it sends to itself comes at the next poll, as in control/messenger.c. */
typedef struct note {
    struct note *next;
    uint32_t size;
    unsigned char bytes[];
} note_t;

struct att_messenger {
    uint32_t count;
    note_t *notes, **end;
};

uint32_t att_messenger_self(const struct att_messenger *t)
{
    (void)t;
    return 0;
}
uint32_t att_messenger_count(const struct att_messenger *t)
{
    return t->count;
}
uint32_t att_messenger_unsent(const struct att_messenger *t, uint32_t to)
{
    (void)t;
    (void)to;
    return 0;
}
int att_messenger_send(struct att_messenger *t, uint32_t to, const void *bytes, uint32_t size)
{
    if (to >= t->count || size > ATT_MESSAGE_BYTES)
        abort(); /* a number from the segment was taken for an agent's */
    if (to != 0)
        return ATT_OK; /* the others never answer */
    note_t *note = malloc(sizeof *note + size);
    if (note == NULL)
        abort();
    note->next = NULL;
    note->size = size;
    memcpy(note->bytes, bytes, size);
    *t->end = note;
    t->end = &note->next;
    return ATT_OK;
}
uint32_t att_messenger_poll(struct att_messenger *t, att_message_fn each, void *context)
{
    uint32_t count = 0;
    while (t->notes != NULL) {
        note_t *note = t->notes;
        t->notes = note->next;
        if (t->notes == NULL)
            t->end = &t->notes;
        if (each != NULL)
            each(context, 0, note->bytes, note->size);
        free(note);
        count++;
    }
    return count;
}

static att_config_t config;
static struct att_strategy_host *host;

static void start(void)
{
    att_error_t error;
    setenv("ATTUNE_STRATEGY", "random:trials=20", 1);
    setenv("ATTUNE_SAMPLES", "2", 1);
    setenv("ATTUNE_MAX_COST", "0", 1);
    setenv("ATTUNE_MIN_BYTES", "0", 1);
    setenv("ATTUNE_LOG", "error", 1);
    if (att_config_init(&config, &error) != ATT_OK ||
        att_strategy_host_create(NULL, ATT_HOST_INPROCESS, 1, &host, &error) != ATT_OK)
        abort();
}

static bool everybody_lives(void *context, uint32_t process)
{
    const fuzz_patch_t *patch = context;
    return process % 8 != patch->entry % 8;
}

static void take_nothing(void *context, const att_record_t *record)
{
    /* What the agent's own code takes for granted of what it is shown. */
    (void)context;
    if (record->source != ATT_TIME_MARK &&
        (record->task >= ATT_TASKS || record->member >= ATT_MEMBERS))
        abort();
}

/* What an agent does now and then, besides its rounds. */
static void act(bench_member_t *member, const fuzz_patch_t *patch)
{
    att_coverage_t coverage;
    switch (patch->op % 6) {
    case 0:
        att_node_bury(member->node, everybody_lives, (void *)(uintptr_t)patch);
        break;
    case 1:
        att_node_coverage(member->node, &coverage);
        att_peers_fates(member->peers, &coverage);
        break;
    case 2:
        att_node_drain(member->node, 512, take_nothing, NULL);
        break;
    case 3:
        att_node_set_timing(member->node, patch->value % 2);
        break;
    case 4:
        att_segment_add_process(member->memory, "fuzz");
        break;
    default:
        for (uint32_t i = 0; i < BENCH_SEATS; i++)
            if (member->tasks[i] != NULL) {
                att_task_report_t report;
                att_task_report(member->tasks[i], &report);
            }
    }
}

/* The hook's own state is not what is tested: only a rank whose lane is where it was calls. */
static void call(bench_member_t *member, uint32_t seat, uint64_t now)
{
    bench_seat_t *s = &member->seats[seat];
    if (s->waiting ? bench_member_wait(member, seat, now) : bench_member_enter(member, seat, now))
        bench_member_record(member, seat, now, now + 50000 + 100 * seat);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (host == NULL)
        start();
    if (size < 1)
        return 0;
    struct att_messenger messenger = {.count = 1 + data[0] % 2};
    messenger.end = &messenger.notes;
    data++;
    size--;
    bench_member_t member;
    uint64_t now = 1000000000;
    if (bench_member_create(&member, &config, host, &messenger, now) != ATT_OK)
        abort();
    fuzz_patch_waits(member.memory);
    att_ring_init(&member.memory->rings[0]);
    for (uint32_t g = 0; g < GROUPS; g++)
        for (uint32_t r = 0; r < RANKS; r++)
            bench_member_join(&member, 0xf00d + g, RANKS, 1, r);
    bool more = true;
    for (int round = 0; round < ROUNDS; round++, now += 300000) {
        fuzz_patch_t patch;
        for (int i = 0; i < 4 && round > 20 && more; i++) {
            more = fuzz_patch_next(&data, &size, &patch);
            if (more && patch.op < 128)
                fuzz_patch_apply(member.memory, &patch);
            else if (more)
                act(&member, &patch);
        }
        bench_member_round(&member, now);
        for (uint32_t seat = 0; seat < member.seat_count; seat++)
            call(&member, seat, now);
    }
    bench_member_destroy(&member);
    att_messenger_poll(&messenger, NULL, NULL);
    return 0;
}
