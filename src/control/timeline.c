#include "control/timeline.h"

#include "control/clock_sync.h"
#include "control/tracer.h"

#include <stdlib.h>

struct att_timeline {
    att_node_clock_t clock;
    struct att_pinger *pinger;
    struct att_tracer *tracer;
    struct att_clock_sync *sync;
};

static int send_ping(void *context, uint32_t to, const att_ping_t *ping)
{
    const struct att_timeline *t = context;
    return att_pinger_send(t->pinger, to, ping);
}

static int receive_ping(void *context, uint32_t *from, att_ping_t *ping)
{
    const struct att_timeline *t = context;
    return att_pinger_receive(t->pinger, from, ping);
}

static int64_t now(void *context)
{
    const struct att_timeline *t = context;
    return att_node_clock_now(&t->clock);
}

static void take_point(void *context, const att_stream_clock_t *point)
{
    const struct att_timeline *t = context;
    att_tracer_clock(t->tracer, point);
}

static const att_clock_ops_t ops = {send_ping, receive_ping, now, take_point};

int att_timeline_create(const att_config_t *config, struct att_node *node,
                        struct att_pinger *pinger, uint32_t self, uint32_t agents,
                        struct att_timeline **out, att_error_t *error)
{
    struct att_timeline *t = calloc(1, sizeof *t);
    if (t == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory");
    t->pinger = pinger;
    int status = att_node_clock_init(&t->clock, error);
    if (status == ATT_OK)
        status = att_tracer_create(config, node, &t->clock, self, agents, &t->tracer, error);
    if (status == ATT_OK &&
        att_clock_sync_create(self, pinger != NULL ? agents : 1, &ops, t, &t->sync) != ATT_OK)
        status = att_fail(error, ATT_ENOMEM, "no memory");
    if (status != ATT_OK) {
        att_timeline_destroy(t);
        return status;
    }
    *out = t;
    return ATT_OK;
}

void att_timeline_destroy(struct att_timeline *t)
{
    if (t == NULL)
        return;
    att_tracer_destroy(t->tracer);
    att_clock_sync_destroy(t->sync);
    free(t);
}

void att_timeline_record(struct att_timeline *t, const att_record_t *record)
{
    att_tracer_record(t->tracer, record);
}

uint64_t att_timeline_step(struct att_timeline *t, uint64_t now_ns)
{
    att_tracer_step(t->tracer, now_ns);
    return att_clock_sync_step(t->sync, att_tracer_active(t->tracer));
}

int att_timeline_recording(const struct att_timeline *t)
{
    return att_tracer_active(t->tracer);
}
