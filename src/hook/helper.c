#include "hook/helper.h"

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/home.h"
#include "base/log.h"
#include "base/step.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define STACK_BYTES 65536 /* poll and one answer need a few KiB; C library and TLS the rest */

typedef struct connection {
    uint64_t since_ns;
    uint32_t received;
    att_home_request_t request;
} connection_t;

/* polls[0] listens, polls[i + 1] belongs to connections[i]; fd -1 is free. */
static struct {
    att_segment_memory_t *memory;
    uint8_t key[16];
    int listening; /* 0: not started */
    struct pollfd polls[ATT_HELPER_CONNECTIONS + 1];
    connection_t connections[ATT_HELPER_CONNECTIONS];
} helper;

static void drop(int slot)
{
    close(helper.polls[slot + 1].fd);
    helper.polls[slot + 1].fd = -1;
}

/* The longest idle one makes room: strangers must not keep a rank out. */
static int free_slot(void)
{
    int oldest = 0;
    for (int i = 0; i < ATT_HELPER_CONNECTIONS; i++) {
        if (helper.polls[i + 1].fd < 0)
            return i;
        if (helper.connections[i].since_ns < helper.connections[oldest].since_ns)
            oldest = i;
    }
    drop(oldest);
    return oldest;
}

static void take_connection(void)
{
    int fd =
        att_descriptor_keep(accept4(helper.polls[0].fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd < 0) {
        /* No descriptor left in this process: do not spin on the pending connection. */
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            att_clock_sleep_ns(10000000);
        return;
    }
    int slot = free_slot();
    helper.polls[slot + 1] = (struct pollfd){.fd = fd, .events = POLLIN};
    helper.connections[slot] = (connection_t){.since_ns = att_clock_ns()};
}

/* True when the connection has done its work or is of no use. */
static bool serve(int slot)
{
    connection_t *c = &helper.connections[slot];
    int fd = helper.polls[slot + 1].fd;
    ssize_t n = recv(fd, (char *)&c->request + c->received, sizeof c->request - c->received, 0);
    if (n < 0)
        return errno != EAGAIN && errno != EINTR;
    if (n == 0)
        return true;
    c->received += (uint32_t)n;
    if (c->received < sizeof c->request)
        return false;
    att_step_reached(ATT_STEP_QUERIED, c->request.home_task, c->request.txn, 0);
    att_home_reply_t reply;
    if (att_home_answer(helper.memory, helper.key, &c->request, &reply) != ATT_OK)
        return true;
    att_step_reached(ATT_STEP_RESOLVED, c->request.home_task, c->request.txn, 0);
    /* 16 bytes always fit into a fresh socket's buffer. */
    if (send(fd, &reply, sizeof reply, MSG_NOSIGNAL) != (ssize_t)sizeof reply)
        return true;
    c->received = 0;
    c->since_ns = att_clock_ns();
    return false; /* the peer closes */
}

static int drop_idle(void)
{
    uint64_t now_ns = att_clock_ns();
    int left = 0;
    for (int i = 0; i < ATT_HELPER_CONNECTIONS; i++) {
        if (helper.polls[i + 1].fd < 0)
            continue;
        if (now_ns - helper.connections[i].since_ns > ATT_HELPER_IDLE_MS * 1000000ull)
            drop(i);
        else
            left++;
    }
    return left;
}

static void *helper_main(void *unused)
{
    (void)unused;
    for (;;) {
        int open = drop_idle();
        if (poll(helper.polls, ATT_HELPER_CONNECTIONS + 1, open > 0 ? 1000 : -1) <= 0)
            continue;
        for (int i = 0; i < ATT_HELPER_CONNECTIONS; i++)
            if (helper.polls[i + 1].fd >= 0 && helper.polls[i + 1].revents != 0 && serve(i))
                drop(i);
        if (helper.polls[0].revents != 0)
            take_connection();
    }
    return NULL;
}

/* --- start ------------------------------------------------------------------------------------ */

/* A socket on a free port of every address of this host, IPv6 and IPv4 where both are there. */
static int listen_anywhere(uint32_t *port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    int no = 0;
    int fd = att_descriptor_keep(socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd >= 0 && (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) != 0 ||
                    bind(fd, (struct sockaddr *)&six, sizeof six) != 0)) {
        close(fd);
        fd = -1;
    }
    if (fd < 0) {
        fd = att_descriptor_keep(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        if (fd >= 0 && bind(fd, (struct sockaddr *)&four, sizeof four) != 0) {
            close(fd);
            return -1;
        }
    }
    struct sockaddr_storage bound;
    socklen_t size = sizeof bound;
    if (fd < 0 || listen(fd, ATT_HELPER_CONNECTIONS) != 0 ||
        getsockname(fd, (struct sockaddr *)&bound, &size) != 0) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    *port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                              : ((struct sockaddr_in *)&bound)->sin_port);
    return fd;
}

static bool usable(const struct ifaddrs *a, bool preferred, const char *wish)
{
    if (a->ifa_addr == NULL || (a->ifa_flags & IFF_UP) == 0 || (a->ifa_flags & IFF_LOOPBACK) != 0)
        return false;
    if (a->ifa_addr->sa_family == AF_INET6) {
        /* Link-local addresses mean something on their own link only. */
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)a->ifa_addr;
        if (IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
            return false;
    } else if (a->ifa_addr->sa_family != AF_INET) {
        return false;
    }
    bool wished = wish != NULL && strncmp(a->ifa_name, wish, strlen(wish)) == 0;
    return wished == preferred;
}

/* NCCL_SOCKET_IFNAME's interface first, then the others, loopback last (several nodes of one
 * machine). Which of them a node can reach, its agent finds out. */
static void write_addresses(att_segment_process_t *process)
{
    const char *wish = getenv("NCCL_SOCKET_IFNAME");
    if (wish != NULL && (wish[0] == '^' || wish[0] == '\0'))
        wish = NULL;
    if (wish != NULL && wish[0] == '=')
        wish++;
    struct ifaddrs *all = NULL;
    uint32_t count = 0;
    if (getifaddrs(&all) != 0)
        all = NULL;
    for (int pass = 0; pass < 2; pass++)
        for (struct ifaddrs *a = all; a != NULL && count + 1 < ATT_ADDRESSES; a = a->ifa_next) {
            if (!usable(a, pass == 0, wish))
                continue;
            const void *bytes =
                a->ifa_addr->sa_family == AF_INET
                    ? (const void *)&((struct sockaddr_in *)(void *)a->ifa_addr)->sin_addr
                    : (const void *)&((struct sockaddr_in6 *)(void *)a->ifa_addr)->sin6_addr;
            inet_ntop(a->ifa_addr->sa_family, bytes, process->helper_address[count++],
                      ATT_ADDRESS_TEXT);
        }
    snprintf(process->helper_address[count], ATT_ADDRESS_TEXT, "127.0.0.1");
    if (all != NULL)
        freeifaddrs(all);
}

static int start_thread(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    if (pthread_attr_init(&attributes) != 0)
        return -ATT_ESYSTEM;
    size_t stack = STACK_BYTES < PTHREAD_STACK_MIN ? (size_t)PTHREAD_STACK_MIN : STACK_BYTES;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    /* Much static TLS in the program makes this size impossible: then the default. */
    pthread_attr_setstacksize(&attributes, stack);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&thread, &attributes, helper_main, NULL);
    if (failed != 0)
        failed = pthread_create(&thread, NULL, helper_main, NULL);
    if (failed == 0)
        pthread_setname_np(thread, "attune-home");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return failed == 0 ? ATT_OK : -ATT_ESYSTEM;
}

int att_helper_start(att_segment_memory_t *memory, att_segment_process_t *process)
{
    if (helper.listening)
        return ATT_OK;
    helper.memory = memory;
    uint32_t port;
    int fd = listen_anywhere(&port);
    if (fd < 0 || getrandom(helper.key, sizeof helper.key, 0) != (ssize_t)sizeof helper.key)
        goto fail;
    helper.polls[0] = (struct pollfd){.fd = fd, .events = POLLIN};
    for (int i = 0; i < ATT_HELPER_CONNECTIONS; i++)
        helper.polls[i + 1].fd = -1;
    if (start_thread() != ATT_OK)
        goto fail;
    helper.listening = 1;
    process->helper_port = port;
    memcpy(process->helper_key, helper.key, sizeof helper.key);
    write_addresses(process);
    atomic_store_explicit(&process->helper, 1, memory_order_release);
    att_step_reached(ATT_STEP_LISTENING, 0, 0, 0);
    return ATT_OK;

fail:
    if (fd >= 0)
        close(fd);
    att_log(ATT_LOG_WARN,
            "groups over several nodes whose rank 0 is in this process are not tuned: no socket or "
            "thread for home words: %s",
            strerror(errno));
    return -ATT_ESYSTEM;
}

void att_helper_forget(void)
{
    if (!helper.listening)
        return;
    for (int i = 0; i <= ATT_HELPER_CONNECTIONS; i++)
        if (helper.polls[i].fd >= 0)
            close(helper.polls[i].fd);
    helper.listening = 0;
}
