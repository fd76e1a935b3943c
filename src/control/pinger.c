#include "control/pinger.h"

#include "base/clock.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>

#define TAG         18
#define OUTGOING    32
#define PATIENCE_NS 200000000ull /* at the end, until MPI is done with the buffers */

struct att_pinger {
    struct att_pinger *kept; /* the one before */
    MPI_Comm comm;
    MPI_Request receive, send[OUTGOING];
    att_ping_t incoming, outgoing[OUTGOING];
};

static struct att_pinger *kept; /* destroyed, but MPI still uses it */

static int listen_again(struct att_pinger *p)
{
    return MPI_Irecv(&p->incoming, sizeof p->incoming, MPI_BYTE, MPI_ANY_SOURCE, TAG, p->comm,
                     &p->receive) == MPI_SUCCESS;
}

int att_pinger_create(struct att_pinger **out, att_error_t *error)
{
    struct att_pinger *p = calloc(1, sizeof *p);
    if (p == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory");
    for (int i = 0; i < OUTGOING; i++)
        p->send[i] = MPI_REQUEST_NULL;
    if (MPI_Comm_dup(MPI_COMM_WORLD, &p->comm) != MPI_SUCCESS || !listen_again(p)) {
        free(p);
        return att_fail(error, ATT_ESYSTEM, "MPI cannot make the clocks' communicator");
    }
    *out = p;
    return ATT_OK;
}

static bool is_idle(struct att_pinger *p)
{
    int received = 0, sent = 0;
    MPI_Test(&p->receive, &received, MPI_STATUS_IGNORE);
    MPI_Testall(OUTGOING, p->send, &sent, MPI_STATUSES_IGNORE);
    return received && sent;
}

void att_pinger_destroy(struct att_pinger *p)
{
    if (p == NULL)
        return;
    if (p->receive != MPI_REQUEST_NULL)
        MPI_Cancel(&p->receive);
    uint64_t until_ns = att_clock_ns() + PATIENCE_NS;
    while (!is_idle(p)) {
        /* As in messenger.c: another agent was stopped, and MPI still reads the buffers. */
        if (att_clock_ns() > until_ns) {
            p->kept = kept;
            kept = p;
            return;
        }
        att_clock_sleep_ns(1000000);
    }
    MPI_Comm_free(&p->comm);
    free(p);
}

int att_pinger_send(struct att_pinger *p, uint32_t to, const att_ping_t *ping)
{
    for (int i = 0; i < OUTGOING; i++) {
        if (p->send[i] != MPI_REQUEST_NULL) {
            int done = 0;
            MPI_Test(&p->send[i], &done, MPI_STATUS_IGNORE);
            if (!done)
                continue;
        }
        p->outgoing[i] = *ping;
        return MPI_Isend(&p->outgoing[i], sizeof p->outgoing[i], MPI_BYTE, (int)to, TAG, p->comm,
                         &p->send[i]) == MPI_SUCCESS;
    }
    return 0;
}

int att_pinger_receive(struct att_pinger *p, uint32_t *from, att_ping_t *ping)
{
    int arrived = 0;
    MPI_Status status;
    MPI_Test(&p->receive, &arrived, &status);
    if (!arrived)
        return 0;
    *ping = p->incoming;
    *from = (uint32_t)status.MPI_SOURCE;
    return listen_again(p);
}
