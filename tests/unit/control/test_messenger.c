/* The end of the messenger and the pinger while an agent takes nothing: what MPI has not finished
 * to send stays readable. MPI is the test's own. */
#include "control/messenger.h"
#include "control/pinger.h"

#include <malloc.h>
#include <mpi.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <cmocka.h>

enum { MOST = 64, STOPPED = 1, SLOW = 2 }; /* agents */

static struct {
    const unsigned char *bytes; /* NULL: not a send under way */
    size_t size;
    int to;
    bool cancelled;
} requests[MOST];
static size_t count;
static unsigned freed; /* communicators */

static size_t index_of(const MPI_Request *request)
{
    for (size_t i = 0; i < count; i++)
        if (*request == (MPI_Request)&requests[i])
            return i;
    fail_msg("a request that MPI does not know");
    return 0;
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *copy)
{
    *copy = comm;
    return MPI_SUCCESS;
}

int MPI_Comm_free(MPI_Comm *comm)
{
    *comm = MPI_COMM_NULL;
    freed++;
    return MPI_SUCCESS;
}

int MPI_Comm_rank(MPI_Comm comm, int *rank)
{
    (void)comm;
    *rank = 0;
    return MPI_SUCCESS;
}

int MPI_Comm_size(MPI_Comm comm, int *size)
{
    (void)comm;
    *size = 3;
    return MPI_SUCCESS;
}

int MPI_Irecv(void *bytes, int size, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    (void)bytes, (void)size, (void)type, (void)from, (void)tag, (void)comm;
    requests[count].to = STOPPED; /* nothing comes */
    *request = (MPI_Request)&requests[count++];
    return MPI_SUCCESS;
}

int MPI_Isend(const void *bytes, int size, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    (void)type, (void)tag, (void)comm;
    requests[count].bytes = bytes;
    requests[count].size = (size_t)size;
    requests[count].to = to;
    *request = (MPI_Request)&requests[count++];
    return MPI_SUCCESS;
}

/* As Open MPI does: a receive can be cancelled, a send cannot. */
int MPI_Cancel(MPI_Request *request)
{
    size_t i = index_of(request);
    requests[i].cancelled = requests[i].bytes == NULL;
    return MPI_SUCCESS;
}

int MPI_Test(MPI_Request *request, int *done, MPI_Status *status)
{
    (void)status;
    *done = 1;
    if (*request == MPI_REQUEST_NULL)
        return MPI_SUCCESS;
    size_t i = index_of(request);
    *done = requests[i].cancelled || requests[i].to != STOPPED;
    if (*done) {
        requests[i].bytes = NULL;
        *request = MPI_REQUEST_NULL;
    }
    return MPI_SUCCESS;
}

int MPI_Testall(int number, MPI_Request *request, int *done, MPI_Status *status)
{
    (void)status;
    *done = 1;
    for (int i = 0; i < number; i++) {
        int one;
        MPI_Test(&request[i], &one, MPI_STATUS_IGNORE);
        *done &= one;
    }
    return MPI_SUCCESS;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    int done;
    MPI_Test(request, &done, status);
    assert_true(done); /* else it would wait forever */
    return MPI_SUCCESS;
}

int MPI_Request_free(MPI_Request *request)
{
    *request = MPI_REQUEST_NULL; /* goes on sending */
    return MPI_SUCCESS;
}

/* The stopped agent goes on: MPI sends what it was given. */
static unsigned deliver(unsigned char expected)
{
    unsigned delivered = 0;
    for (size_t i = 0; i < count; i++)
        if (requests[i].bytes != NULL && requests[i].to == STOPPED) {
            for (size_t k = 0; k < requests[i].size; k++)
                assert_int_equal(requests[i].bytes[k], expected);
            delivered++;
        }
    return delivered;
}

static int setup(void **state)
{
    (void)state;
    memset(requests, 0, sizeof requests);
    count = 0;
    freed = 0;
    return 0;
}

static void messages_that_are_not_sent_stay_readable(void **state)
{
    (void)state;
    struct att_messenger *messenger;
    unsigned char bytes[ATT_MESSAGE_BYTES];
    memset(bytes, 7, sizeof bytes);
    assert_int_equal(att_messenger_create(&messenger, NULL), ATT_OK);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(att_messenger_send(messenger, STOPPED, bytes, sizeof bytes), ATT_OK);
        assert_int_equal(att_messenger_send(messenger, SLOW, bytes, sizeof bytes), ATT_OK);
    }
    att_messenger_destroy(messenger);
    assert_int_equal(deliver(7), 4);
}

static void pings_that_are_not_sent_stay_readable(void **state)
{
    (void)state;
    struct att_pinger *pinger;
    att_ping_t ping;
    memset(&ping, 7, sizeof ping);
    assert_int_equal(att_pinger_create(&pinger, NULL), ATT_OK);
    assert_true(att_pinger_send(pinger, STOPPED, &ping));
    assert_true(att_pinger_send(pinger, SLOW, &ping));
    att_pinger_destroy(pinger);
    assert_int_equal(deliver(7), 1);
}

static void nothing_is_kept_when_all_was_sent(void **state)
{
    (void)state;
    struct att_messenger *messenger;
    struct att_pinger *pinger;
    att_ping_t ping = {0};
    assert_int_equal(att_messenger_create(&messenger, NULL), ATT_OK);
    assert_int_equal(att_messenger_send(messenger, SLOW, "word", 4), ATT_OK);
    assert_int_equal(att_messenger_send(messenger, 0, "own", 3), ATT_OK);
    att_messenger_destroy(messenger);
    assert_int_equal(att_pinger_create(&pinger, NULL), ATT_OK);
    assert_true(att_pinger_send(pinger, SLOW, &ping));
    att_pinger_destroy(pinger);
    assert_int_equal(freed, 2);
}

int main(void)
{
    mallopt(M_PERTURB, 0xa5); /* what is freed is overwritten */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(messages_that_are_not_sent_stay_readable, setup),
        cmocka_unit_test_setup(pings_that_are_not_sent_stay_readable, setup),
        cmocka_unit_test_setup(nothing_is_kept_when_all_was_sent, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
