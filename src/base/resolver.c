#include "base/resolver.h"

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/fence.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ASK_NS 2000000000u

static int finish(att_resolver_t *resolver, int status)
{
    if (resolver->fd >= 0)
        close(resolver->fd);
    resolver->fd = -1;
    return status;
}

int att_resolver_start(const char *address, uint32_t port, const att_home_request_t *request,
                       att_resolver_t *resolver)
{
    *resolver = (att_resolver_t){.fd = -1, .request = *request};
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                             .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    char text[16];
    snprintf(text, sizeof text, "%u", port);
    if (port == 0 || port > 65535 || getaddrinfo(address, text, &hints, &found) != 0)
        return -ATT_EINPUT;
    resolver->fd = att_descriptor_keep(
        socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    int status =
        resolver->fd >= 0 && (connect(resolver->fd, found->ai_addr, found->ai_addrlen) == 0 ||
                              errno == EINPROGRESS)
            ? ATT_OK
            : finish(resolver, -ATT_ESYSTEM);
    freeaddrinfo(found);
    return status;
}

/* Send or receive what is left: ATT_OK when all is through. */
static int move_bytes(att_resolver_t *resolver)
{
    while (resolver->sent < sizeof resolver->request) {
        ssize_t n = send(resolver->fd, (const char *)&resolver->request + resolver->sent,
                         sizeof resolver->request - resolver->sent, MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR || errno == ENOTCONN ? -ATT_EBUSY
                                                                          : -ATT_ESYSTEM;
        resolver->sent += (uint32_t)n;
    }
    while (resolver->received < sizeof resolver->reply) {
        ssize_t n = recv(resolver->fd, (char *)&resolver->reply + resolver->received,
                         sizeof resolver->reply - resolver->received, 0);
        if (n == 0)
            return -ATT_ESYSTEM; /* refused: wrong key or unknown task */
        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? -ATT_EBUSY : -ATT_ESYSTEM;
        resolver->received += (uint32_t)n;
    }
    return ATT_OK;
}

int att_resolver_step(att_resolver_t *resolver, int timeout_ms)
{
    if (resolver->fd < 0)
        return -ATT_ESYSTEM;
    struct pollfd poll_fd = {
        .fd = resolver->fd, .events = resolver->sent < sizeof resolver->request ? POLLOUT : POLLIN};
    int ready = poll(&poll_fd, 1, timeout_ms);
    if (ready == 0 || (ready < 0 && errno == EINTR))
        return -ATT_EBUSY;
    if (ready < 0)
        return finish(resolver, -ATT_ESYSTEM);
    if (!resolver->connected) {
        int failure = 0;
        socklen_t size = sizeof failure;
        if (getsockopt(resolver->fd, SOL_SOCKET, SO_ERROR, &failure, &size) != 0 || failure != 0)
            return finish(resolver, -ATT_ESYSTEM);
        resolver->connected = true;
    }
    int status = move_bytes(resolver);
    return status == -ATT_EBUSY ? status : finish(resolver, status);
}

void att_resolver_stop(att_resolver_t *resolver)
{
    finish(resolver, ATT_OK);
}

att_home_state_t att_resolver_ask(const att_segment_memory_t *memory, att_segment_task_t *task,
                                  uint32_t txn, uint64_t *seat, const att_lane_gate_t *gate)
{
    const att_segment_group_t *group = &memory->groups[task->group % ATT_GROUPS];
    if (atomic_load_explicit(&group->path, memory_order_acquire) == 0)
        return ATT_HOME_NONE;
    att_home_request_t request;
    att_home_ask(memory, task, txn, &request);
    char address[ATT_ADDRESS_TEXT];
    snprintf(address, sizeof address, "%s", group->home_address);
    att_resolver_t resolver;
    int status = att_resolver_start(address, group->home_port, &request, &resolver);
    uint64_t begin_ns = att_clock_ns();
    while (status == ATT_OK || status == -ATT_EBUSY) {
        status = att_resolver_step(&resolver, 100);
        if (status == ATT_OK)
            return att_home_read(&request, &resolver.reply);
        /* Meanwhile the agent may have told the outcome. */
        uint64_t now_ns = att_clock_ns();
        if (now_ns - begin_ns > ASK_NS || att_home_state(task, txn) != ATT_HOME_OPEN ||
            (gate != NULL && atomic_load(&gate->released) != 0))
            break;
        att_seat_keep(task, seat, now_ns);
    }
    att_resolver_stop(&resolver);
    return ATT_HOME_NONE;
}
