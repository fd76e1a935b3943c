/* The metrics port: what it answers, and that no client holds up the loop that serves it. */
#include "profile/metrics_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const paths[ATT_METRICS_PAGES] = {"/metrics", "/inspector"};
static struct att_metrics_server *server;
static uint64_t now_ns = 1000000000;

static int start(void **state)
{
    att_error_t error;
    assert_int_equal(att_metrics_server_create(0, paths, &server, &error), ATT_OK);
    return 0;
}

static int stop(void **state)
{
    att_metrics_server_destroy(server);
    return 0;
}

static int connect_client(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)att_metrics_server_port(server)),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

/* Time passes for the server; a step that blocked would never come back. */
static void step(void)
{
    now_ns += 2000000;
    att_metrics_server_step(server, now_ns);
}

/* Everything until the server closes, at most `size` - 1 bytes kept. Counts all. */
static size_t read_all(int fd, char *text, size_t size)
{
    size_t total = 0;
    char piece[65536];
    for (int idle = 0; idle < 100000;) {
        step();
        ssize_t got = recv(fd, piece, sizeof piece, 0);
        if (got == 0 || (got < 0 && errno != EAGAIN))
            break;
        idle = got < 0 ? idle + 1 : 0;
        for (ssize_t i = 0; i < got; i++, total++)
            if (total < size - 1)
                text[total] = piece[i];
    }
    text[total < size - 1 ? total : size - 1] = '\0';
    close(fd);
    return total;
}

static void ask(const char *request, char *text, size_t size)
{
    int fd = connect_client();
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    read_all(fd, text, size);
}

static void pages_and_refusals(void **state)
{
    char text[1024];
    ask("GET /metrics HTTP/1.1\r\n\r\n", text, sizeof text);
    assert_non_null(strstr(text, "503 "));
    assert_int_equal(att_metrics_server_publish(server, 0, "a 1\n", 4), ATT_OK);
    assert_int_equal(att_metrics_server_publish(server, 1, "b 2\n", 4), ATT_OK);
    ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", text, sizeof text);
    assert_non_null(strstr(text, "HTTP/1.1 200 OK\r\n"));
    assert_non_null(strstr(text, "Content-Length: 4\r\n"));
    assert_non_null(strstr(text, "\r\n\r\na 1\n"));
    ask("GET /inspector?x HTTP/1.0\n\n", text, sizeof text);
    assert_non_null(strstr(text, "b 2\n"));
    ask("GET /other HTTP/1.1\r\n\r\n", text, sizeof text);
    assert_non_null(strstr(text, "404 "));
    ask("POST /metrics HTTP/1.1\r\n\r\n", text, sizeof text);
    assert_non_null(strstr(text, "405 "));
    ask("GET\r\n\r\n", text, sizeof text);
    assert_non_null(strstr(text, "405 "));
}

static void the_port_is_on_the_loopback_alone(void **state)
{
    char line[256], want[32];
    snprintf(want, sizeof want, "0100007F:%04X", att_metrics_server_port(server));
    FILE *file = fopen("/proc/self/net/tcp", "r");
    assert_non_null(file);
    int found = 0, elsewhere = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        char local[64], remote[64];
        int state_code;
        if (sscanf(line, " %*d: %63s %63s %x", local, remote, &state_code) != 3 ||
            state_code != 0x0a || strcmp(local + 8, want + 8) != 0)
            continue;
        found += strcmp(local, want) == 0;
        elsewhere += strcmp(local, want) != 0;
    }
    fclose(file);
    assert_int_equal(found, 1);
    assert_int_equal(elsewhere, 0);
}

static void a_taken_port_is_refused_with_its_number(void **state)
{
    struct att_metrics_server *other = NULL;
    att_error_t error;
    char port[16];
    snprintf(port, sizeof port, ":%u", att_metrics_server_port(server));
    assert_int_equal(
        att_metrics_server_create(att_metrics_server_port(server), paths, &other, &error),
        -ATT_ESYSTEM);
    assert_non_null(strstr(error.text, port));
    assert_non_null(strstr(error.text, "--metrics-port"));
    assert_null(other);
}

/* More of them than there is room for, which never say a word: they are let go after their time. */
static void silent_clients_make_room(void **state)
{
    assert_int_equal(att_metrics_server_publish(server, 0, "a 1\n", 4), ATT_OK);
    int silent[ATT_METRICS_CLIENTS];
    char text[256];
    for (int i = 0; i < ATT_METRICS_CLIENTS; i++)
        silent[i] = connect_client();
    step();
    int fd = connect_client();
    const char *request = "GET /metrics HTTP/1.1\r\n\r\n";
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    for (int i = 0; i < 10; i++)
        step();
    assert_int_equal(recv(fd, text, sizeof text, 0), -1); /* it waits its turn */
    now_ns += ATT_METRICS_CLIENT_NS;
    read_all(fd, text, sizeof text);
    assert_non_null(strstr(text, "200 OK"));
    for (int i = 0; i < ATT_METRICS_CLIENTS; i++) {
        assert_int_equal(recv(silent[i], text, sizeof text, 0), 0);
        close(silent[i]);
    }
}

static void a_client_that_does_not_read_is_cut_off(void **state)
{
    size_t length = 16 << 20;
    char *page = malloc(length), text[256];
    memset(page, 'x', length);
    assert_int_equal(att_metrics_server_publish(server, 0, page, length), ATT_OK);
    int fd = connect_client();
    const char *request = "GET /metrics HTTP/1.1\r\n\r\n";
    send(fd, request, strlen(request), MSG_NOSIGNAL);
    for (int i = 0; i < 500; i++)
        step(); /* the kernel's buffers are full long before */
    now_ns += ATT_METRICS_CLIENT_NS;
    step();
    assert_true(read_all(fd, text, sizeof text) < length);
    free(page);
}

static void an_answer_under_way_keeps_its_page(void **state)
{
    size_t length = 4 << 20;
    char *page = malloc(length), text[256];
    memset(page, 'x', length);
    assert_int_equal(att_metrics_server_publish(server, 0, page, length), ATT_OK);
    int fd = connect_client();
    const char *request = "GET /metrics HTTP/1.1\r\n\r\n";
    send(fd, request, strlen(request), MSG_NOSIGNAL);
    for (int i = 0; i < 4; i++)
        step();
    assert_int_equal(att_metrics_server_publish(server, 0, "new", 3), ATT_OK);
    size_t total = read_all(fd, text, sizeof text);
    const char *body = strstr(text, "\r\n\r\n") + 4;
    assert_int_equal(total, (size_t)(body - text) + length);
    free(page);
}

static void nonsense_is_survived(void **state)
{
    char text[512], big[8192];
    memset(big, 'h', sizeof big);
    int fd = connect_client();
    send(fd, big, sizeof big, MSG_NOSIGNAL);
    read_all(fd, text, sizeof text);
    fd = connect_client();
    send(fd, "GET /\0\0\r\n\r\n", 11, MSG_NOSIGNAL);
    assert_int_equal(read_all(fd, text, sizeof text), 0);
    fd = connect_client(); /* resets while it is answered */
    send(fd, "GET /metrics HTTP/1.1\r\n\r\n", 25, MSG_NOSIGNAL);
    struct linger now = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    step();
    close(fd);
    step();
    assert_int_equal(att_metrics_server_publish(server, 0, "a 1\n", 4), ATT_OK);
    ask("GET /metrics HTTP/1.1\r\n\r\n", text, sizeof text);
    assert_non_null(strstr(text, "\r\n\r\na 1\n"));
    /* A byte at a time. */
    fd = connect_client();
    for (const char *c = "GET /metrics HTTP/1.1\r\n\r\n"; *c != '\0'; c++) {
        send(fd, c, 1, MSG_NOSIGNAL);
        step();
    }
    read_all(fd, text, sizeof text);
    assert_non_null(strstr(text, "\r\n\r\na 1\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pages_and_refusals, start, stop),
        cmocka_unit_test_setup_teardown(the_port_is_on_the_loopback_alone, start, stop),
        cmocka_unit_test_setup_teardown(a_taken_port_is_refused_with_its_number, start, stop),
        cmocka_unit_test_setup_teardown(silent_clients_make_room, start, stop),
        cmocka_unit_test_setup_teardown(a_client_that_does_not_read_is_cut_off, start, stop),
        cmocka_unit_test_setup_teardown(an_answer_under_way_keeps_its_page, start, stop),
        cmocka_unit_test_setup_teardown(nonsense_is_survived, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
