#include "profile/metrics_server.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PERIOD_NS     2000000ull /* between two looks at the sockets */
#define REQUEST_BYTES 2048
#define STEP_BYTES    (128u << 10) /* sent to one client in one step */

/* A page, or an answer that shares it: freed by its last user. */
typedef struct body {
    uint32_t users;
    size_t length;
    char bytes[];
} body_t;

typedef struct client {
    int fd; /* -1: free */
    uint64_t until_ns;
    char request[REQUEST_BYTES];
    size_t got;
    char head[192]; /* of the answer, "" while the request is read */
    size_t head_length, sent;
    body_t *body; /* NULL: the head is all */
} client_t;

struct att_metrics_server {
    int fd;
    uint32_t port;
    uint64_t looked_ns;
    const char *paths[ATT_METRICS_PAGES];
    body_t *pages[ATT_METRICS_PAGES];
    client_t clients[ATT_METRICS_CLIENTS];
};

int att_metrics_server_create(uint32_t port, const char *const paths[ATT_METRICS_PAGES],
                              struct att_metrics_server **out, att_error_t *error)
{
    struct att_metrics_server *s = calloc(1, sizeof *s);
    if (s == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory");
    for (int i = 0; i < ATT_METRICS_CLIENTS; i++)
        s->clients[i].fd = -1;
    memcpy(s->paths, paths, sizeof s->paths);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int one = 1;
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* A run after another one need not wait for the kernel to forget its connections. */
    if (s->fd < 0 || setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
        bind(s->fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(s->fd, ATT_METRICS_CLIENTS) != 0 ||
        getsockname(s->fd, (struct sockaddr *)&address, &size) != 0) {
        int status = att_fail_errno(
            error, "cannot listen on 127.0.0.1:%u: choose another port with --metrics-port", port);
        att_metrics_server_destroy(s);
        return status;
    }
    s->port = ntohs(address.sin_port);
    *out = s;
    return ATT_OK;
}

static void release(body_t *body)
{
    if (body != NULL && --body->users == 0)
        free(body);
}

static void drop(client_t *c)
{
    close(c->fd);
    release(c->body);
    c->fd = -1;
    c->body = NULL;
}

void att_metrics_server_destroy(struct att_metrics_server *s)
{
    if (s == NULL)
        return;
    for (int i = 0; i < ATT_METRICS_CLIENTS; i++)
        if (s->clients[i].fd >= 0)
            drop(&s->clients[i]);
    for (int i = 0; i < ATT_METRICS_PAGES; i++)
        release(s->pages[i]);
    if (s->fd >= 0)
        close(s->fd);
    free(s);
}

uint32_t att_metrics_server_port(const struct att_metrics_server *s)
{
    return s->port;
}

int att_metrics_server_publish(struct att_metrics_server *s, uint32_t page, const char *bytes,
                               size_t length)
{
    body_t *body = malloc(sizeof *body + length);
    if (body == NULL)
        return -ATT_ENOMEM;
    body->users = 1;
    body->length = length;
    memcpy(body->bytes, bytes, length);
    release(s->pages[page]);
    s->pages[page] = body;
    return ATT_OK;
}

static void answer(client_t *c, const char *status, body_t *body)
{
    c->body = body;
    if (body != NULL)
        body->users++;
    int length = snprintf(c->head, sizeof c->head,
                          "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; "
                          "charset=utf-8\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
                          status, body != NULL ? body->length : 0);
    c->head_length = (size_t)length;
}

/* "GET <path>[?...] HTTP/1.x"; the header fields do not matter. */
static void understand(struct att_metrics_server *s, client_t *c)
{
    size_t line = strcspn(c->request, "\r\n");
    char *path = c->request + 4;
    c->request[line] = '\0';
    if (strncmp(c->request, "GET ", 4) != 0) {
        answer(c, "405 Method Not Allowed", NULL);
        return;
    }
    path[strcspn(path, " ?")] = '\0';
    for (int i = 0; i < ATT_METRICS_PAGES; i++)
        if (strcmp(path, s->paths[i]) == 0) {
            if (s->pages[i] != NULL)
                answer(c, "200 OK", s->pages[i]);
            else
                answer(c, "503 Service Unavailable", NULL);
            return;
        }
    answer(c, "404 Not Found", NULL);
}

/* 1: go on later; 0: the connection is over. */
static int read_request(struct att_metrics_server *s, client_t *c)
{
    ssize_t got = recv(c->fd, c->request + c->got, sizeof c->request - 1 - c->got, 0);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    if (got == 0)
        return 0;
    c->got += (size_t)got;
    c->request[c->got] = '\0';
    if (memchr(c->request, '\0', c->got) != NULL)
        return 0; /* not text */
    if (strstr(c->request, "\r\n\r\n") != NULL || strstr(c->request, "\n\n") != NULL)
        understand(s, c);
    else if (c->got == sizeof c->request - 1)
        answer(c, "431 Request Header Fields Too Large", NULL);
    return 1;
}

static int write_answer(client_t *c)
{
    size_t body_length = c->body != NULL ? c->body->length : 0, budget = STEP_BYTES;
    while (c->sent < c->head_length + body_length && budget > 0) {
        size_t in_body = c->sent - c->head_length;
        const char *from = c->sent < c->head_length ? c->head + c->sent : c->body->bytes + in_body;
        size_t left = c->sent < c->head_length ? c->head_length - c->sent : body_length - in_body;
        if (left > budget)
            left = budget;
        ssize_t sent = send(c->fd, from, left, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0)
            return errno == EAGAIN || errno == EINTR;
        c->sent += (size_t)sent;
        budget -= (size_t)sent;
    }
    if (c->sent < c->head_length + body_length)
        return 1;
    /* What the client still sent would turn our close into a reset that costs it the answer. */
    char rest[256];
    while (recv(c->fd, rest, sizeof rest, MSG_DONTWAIT) > 0 && budget > sizeof rest)
        budget -= sizeof rest;
    return 0;
}

void att_metrics_server_step(struct att_metrics_server *s, uint64_t now_ns)
{
    if (s == NULL || now_ns - s->looked_ns < PERIOD_NS)
        return;
    s->looked_ns = now_ns;
    int waiting = 1; /* connections in the kernel's queue */
    for (int i = 0; i < ATT_METRICS_CLIENTS; i++) {
        client_t *c = &s->clients[i];
        if (c->fd < 0) {
            if (waiting)
                c->fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
            waiting = c->fd >= 0;
            if (c->fd < 0)
                continue;
            c->until_ns = now_ns + ATT_METRICS_CLIENT_NS;
            c->got = c->head_length = c->sent = 0;
            c->body = NULL;
        }
        int stays = now_ns < c->until_ns;
        if (stays && c->head_length == 0)
            stays = read_request(s, c);
        if (stays && c->head_length > 0)
            stays = write_answer(c);
        if (!stays)
            drop(c);
    }
}
