#include "control/messenger.h"

#include "base/clock.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define TAG         17
#define PATIENCE_NS 200000000ull /* at the end, until MPI is done with the buffers */

typedef struct outgoing {
    struct outgoing *next;
    MPI_Request request;
    uint32_t to, size;
    unsigned char bytes[];
} outgoing_t;

struct att_messenger {
    struct att_messenger *kept; /* the one before */
    MPI_Comm comm;
    int self, count;
    outgoing_t *sending;          /* in flight */
    outgoing_t *loop, **loop_end; /* to oneself, in order */
    uint32_t *unsent;             /* to each agent */
    MPI_Request receive;
    unsigned char incoming[ATT_MESSAGE_BYTES];
};

static struct att_messenger *kept; /* destroyed, but MPI still uses it */

static int listen_again(struct att_messenger *t)
{
    return MPI_Irecv(t->incoming, ATT_MESSAGE_BYTES, MPI_BYTE, MPI_ANY_SOURCE, TAG, t->comm,
                     &t->receive) == MPI_SUCCESS
               ? ATT_OK
               : -ATT_ESYSTEM;
}

int att_messenger_create(struct att_messenger **out, att_error_t *error)
{
    struct att_messenger *t = calloc(1, sizeof *t);
    if (t == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory");
    t->loop_end = &t->loop;
    if (MPI_Comm_dup(MPI_COMM_WORLD, &t->comm) != MPI_SUCCESS ||
        MPI_Comm_rank(t->comm, &t->self) != MPI_SUCCESS ||
        MPI_Comm_size(t->comm, &t->count) != MPI_SUCCESS || listen_again(t) != ATT_OK) {
        free(t);
        return att_fail(error, ATT_ESYSTEM, "MPI cannot make the agents' communicator");
    }
    t->unsent = calloc((size_t)t->count, sizeof *t->unsent);
    if (t->unsent == NULL) {
        att_messenger_destroy(t);
        return att_fail(error, ATT_ENOMEM, "no memory");
    }
    *out = t;
    return ATT_OK;
}

static void drop_sent(struct att_messenger *t)
{
    for (outgoing_t **link = &t->sending; *link != NULL;) {
        outgoing_t *o = *link;
        int finished = 0;
        MPI_Test(&o->request, &finished, MPI_STATUS_IGNORE);
        if (!finished) {
            link = &o->next;
            continue;
        }
        *link = o->next;
        t->unsent[o->to]--;
        free(o);
    }
}

static bool is_idle(struct att_messenger *t)
{
    int received = 0;
    drop_sent(t);
    MPI_Test(&t->receive, &received, MPI_STATUS_IGNORE);
    return received && t->sending == NULL;
}

void att_messenger_destroy(struct att_messenger *t)
{
    if (t == NULL)
        return;
    while (t->loop != NULL) {
        outgoing_t *o = t->loop;
        t->loop = o->next;
        free(o);
    }
    if (t->receive != MPI_REQUEST_NULL)
        MPI_Cancel(&t->receive);
    uint64_t until_ns = att_clock_ns() + PATIENCE_NS;
    while (!is_idle(t)) {
        /* An agent that was stopped takes nothing, and Open MPI cancels no send: MPI reads the
         * buffers whenever that agent goes on. */
        if (att_clock_ns() > until_ns) {
            t->kept = kept;
            kept = t;
            return;
        }
        att_clock_sleep_ns(1000000);
    }
    MPI_Comm_free(&t->comm);
    free(t->unsent);
    free(t);
}

uint32_t att_messenger_self(const struct att_messenger *t)
{
    return t != NULL ? (uint32_t)t->self : 0;
}

uint32_t att_messenger_count(const struct att_messenger *t)
{
    return t != NULL ? (uint32_t)t->count : 1;
}

uint32_t att_messenger_unsent(const struct att_messenger *t, uint32_t to)
{
    return to < (uint32_t)t->count ? t->unsent[to] : 0;
}

int att_messenger_send(struct att_messenger *t, uint32_t to, const void *bytes, uint32_t size)
{
    if (size > ATT_MESSAGE_BYTES || to >= (uint32_t)t->count)
        return -ATT_EINPUT;
    outgoing_t *o = malloc(sizeof *o + size);
    if (o == NULL)
        return -ATT_ENOMEM;
    memcpy(o->bytes, bytes, size);
    o->to = to;
    o->size = size;
    o->next = NULL;
    if (to == (uint32_t)t->self) {
        *t->loop_end = o;
        t->loop_end = &o->next;
        return ATT_OK;
    }
    if (MPI_Isend(o->bytes, (int)size, MPI_BYTE, (int)to, TAG, t->comm, &o->request) !=
        MPI_SUCCESS) {
        free(o);
        return -ATT_ESYSTEM;
    }
    o->next = t->sending;
    t->sending = o;
    t->unsent[to]++;
    return ATT_OK;
}

uint32_t att_messenger_poll(struct att_messenger *t, att_message_fn each, void *context)
{
    uint32_t delivered = 0;
    while (t->loop != NULL) {
        outgoing_t *o = t->loop;
        t->loop = o->next;
        if (t->loop == NULL)
            t->loop_end = &t->loop;
        each(context, (uint32_t)t->self, o->bytes, o->size);
        free(o);
        delivered++;
    }
    if (t->count == 1)
        return delivered;
    drop_sent(t);
    for (;;) {
        int arrived = 0, size = 0;
        MPI_Status status;
        MPI_Test(&t->receive, &arrived, &status);
        if (!arrived)
            return delivered;
        MPI_Get_count(&status, MPI_BYTE, &size);
        each(context, (uint32_t)status.MPI_SOURCE, t->incoming, (uint32_t)size);
        delivered++;
        if (listen_again(t) != ATT_OK)
            return delivered;
    }
}
