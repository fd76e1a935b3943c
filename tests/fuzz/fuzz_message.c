/*
 * What an agent is sent: registry, keeper of the turns and spans under any sequence of messages
 * from any agent, between well-formed ones. Input: {sender, type and sizes as they come}.
 */
#include "control/message.h"
#include "control/messenger.h"
#include "patch.h"

#include "../../bench/scale/member.h"

#include "search/strategy_host.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { AGENTS = 4, MOST_MESSAGES = 64 };

struct att_messenger {
    const uint8_t *data;
    size_t size;
    uint32_t self, delivered;
};

uint32_t att_messenger_self(const struct att_messenger *t)
{
    return t->self;
}
uint32_t att_messenger_count(const struct att_messenger *t)
{
    return AGENTS;
}
uint32_t att_messenger_unsent(const struct att_messenger *t, uint32_t to)
{
    return 0;
}
int att_messenger_send(struct att_messenger *t, uint32_t to, const void *bytes, uint32_t size)
{
    if (to >= AGENTS || size > ATT_MESSAGE_BYTES)
        abort(); /* it would not have gone out */
    return ATT_OK;
}

/* {sender, size in 16 bytes, message bytes}; the group is mostly the one that is there. */
uint32_t att_messenger_poll(struct att_messenger *t, att_message_fn each, void *context)
{
    uint32_t count = 0;
    while (t->size >= 4 && t->delivered < MOST_MESSAGES && count < 4) {
        uint32_t from = t->data[0] % AGENTS, size = t->data[1] * 16u, raw = t->data[2];
        t->data += 4;
        t->size -= 4;
        if (size > t->size)
            size = (uint32_t)t->size;
        uint8_t *bytes = malloc(ATT_MESSAGE_BYTES);
        if (bytes == NULL)
            abort();
        memset(bytes, 0, ATT_MESSAGE_BYTES);
        memcpy(bytes, t->data, size);
        att_message_t *m = (att_message_t *)(void *)bytes;
        if (raw % 4 != 0) {
            m->type %= ATT_MESSAGE_TYPES;
            m->group = (att_group_key_t){.hash = 0xf00d, .ranks = AGENTS};
            m->task = (att_task_key_t){4 << 20, ATT_COLLECTIVE_ALL_REDUCE, 63};
            size = att_message_bytes(m);
        }
        t->data += size < t->size ? size : t->size;
        t->size -= size < t->size ? size : t->size;
        /* Of its exact size, so that a read beyond it is seen. */
        uint8_t *exact = malloc(size > 0 ? size : 1);
        if (exact == NULL)
            abort();
        memcpy(exact, bytes, size);
        each(context, from, exact, size);
        free(exact);
        free(bytes);
        t->delivered++;
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
    setenv("ATTUNE_MIN_BYTES", "0", 1);
    setenv("ATTUNE_LOG", "error", 1);
    if (att_config_init(&config, &error) != ATT_OK ||
        att_strategy_host_create(NULL, ATT_HOST_INPROCESS, 1, &host, &error) != ATT_OK)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (host == NULL)
        start();
    if (size < 1)
        return 0;
    struct att_messenger messenger = {.data = data + 1, .size = size - 1, .self = data[0] % 2};
    bench_member_t member;
    uint64_t now = 1000000000;
    if (bench_member_create(&member, &config, host, &messenger, now) != ATT_OK)
        abort();
    uint32_t seat = bench_member_join(&member, 0xf00d, AGENTS, AGENTS, messenger.self);
    for (int i = 0; i < 40; i++, now += 300000) {
        bench_member_round(&member, now);
        bench_seat_t *s = &member.seats[seat];
        if (s->waiting ? bench_member_wait(&member, seat, now)
                       : bench_member_enter(&member, seat, now))
            bench_member_record(&member, seat, now, now + 50000);
    }
    bench_member_destroy(&member);
    return 0;
}
