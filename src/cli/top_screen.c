#include "cli/top_screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* The alternate screen, no cursor, no wrapping; and back. */
static const char enter[] = "\033[?1049h\033[?25l\033[?7l\033[H\033[2J";
static const char leave[] = "\033[?7h\033[?25h\033[?1049l";

static struct termios original;
static volatile sig_atomic_t open_now, ended;
static char bytes[64]; /* keys that were sent and not taken yet */
static size_t held;

static void send_all(const char *text, size_t length)
{
    while (length > 0) {
        ssize_t sent = write(STDOUT_FILENO, text, length);
        if (sent < 0 && errno != EINTR)
            return;
        if (sent > 0) {
            text += sent;
            length -= (size_t)sent;
        }
    }
}

/* Safe in a signal handler. */
static void give_back(void)
{
    if (!open_now)
        return;
    open_now = 0;
    send_all(leave, sizeof leave - 1);
    tcsetattr(STDIN_FILENO, TCSANOW, &original);
}

static void take(void)
{
    struct termios raw = original;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    send_all(enter, sizeof enter - 1);
    open_now = 1;
}

static void on_end(int number)
{
    ended = number;
}

static void on_resize(int number)
{
    (void)number; /* poll returns: that is all */
}

/* Ctrl-Z: the shell gets its terminal, and we take it again when we go on. */
static void on_stop(int number)
{
    int error = errno;
    sigset_t stop;
    give_back();
    signal(SIGTSTP, SIG_DFL);
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    raise(SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &stop, NULL); /* stops here */
    struct sigaction action = {.sa_handler = on_stop};
    sigaction(SIGTSTP, &action, NULL);
    take();
    errno = error;
}

static void on_crash(int number)
{
    give_back();
    signal(number, SIG_DFL);
    raise(number);
}

static void handle(const int *signals, size_t count, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    for (size_t i = 0; i < count; i++)
        sigaction(signals[i], &action, NULL);
}

#define COUNT(list) (sizeof list / sizeof list[0])

int att_top_screen_open(att_error_t *error)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    static const int resize[] = {SIGWINCH}, stop[] = {SIGTSTP};
    if (tcgetattr(STDIN_FILENO, &original) != 0)
        return att_fail_errno(error, "the terminal cannot be asked for its mode");
    ended = 0;
    held = 0;
    handle(ends, COUNT(ends), on_end);
    handle(crashes, COUNT(crashes), on_crash);
    handle(resize, COUNT(resize), on_resize);
    handle(stop, COUNT(stop), on_stop);
    take();
    atexit(give_back);
    return ATT_OK;
}

void att_top_screen_close(void)
{
    give_back();
}

int att_top_screen_signal(void)
{
    return ended;
}

void att_top_screen_size(int *rows, int *columns)
{
    struct winsize window;
    *rows = 24;
    *columns = 80;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_row > 0 && window.ws_col > 0) {
        *rows = window.ws_row;
        *columns = window.ws_col;
    }
}

void att_top_screen_show(const char *text, size_t length)
{
    static const char home[] = "\033[H", rest[] = "\033[J";
    send_all(home, sizeof home - 1);
    send_all(text, length);
    send_all(rest, sizeof rest - 1);
}

att_top_key_t att_top_key_parse(const char *from, size_t length, size_t *used)
{
    static const struct {
        const char *sequence;
        att_top_key_t key;
    } keys[] = {{"\033[A", ATT_TOP_UP},
                {"\033OA", ATT_TOP_UP},
                {"\033[B", ATT_TOP_DOWN},
                {"\033OB", ATT_TOP_DOWN},
                {"\033[5~", ATT_TOP_PAGE_UP},
                {"\033[6~", ATT_TOP_PAGE_DOWN},
                {"\033[H", ATT_TOP_HOME},
                {"\033[F", ATT_TOP_END},
                {"q", ATT_TOP_QUIT},
                {"Q", ATT_TOP_QUIT},
                {"k", ATT_TOP_UP},
                {"j", ATT_TOP_DOWN},
                {" ", ATT_TOP_PAGE_DOWN},
                {"g", ATT_TOP_HOME},
                {"G", ATT_TOP_END}};
    for (size_t i = 0; i < COUNT(keys); i++) {
        size_t size = strlen(keys[i].sequence);
        if (length >= size && memcmp(from, keys[i].sequence, size) == 0) {
            *used = size;
            return keys[i].key;
        }
    }
    *used = length > 0 ? 1 : 0;
    return ATT_TOP_NONE;
}

att_top_key_t att_top_screen_key(int milliseconds)
{
    if (held == 0 && !ended) {
        struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
        if (poll(&in, 1, milliseconds) > 0) {
            ssize_t got = read(STDIN_FILENO, bytes, sizeof bytes);
            if (got > 0)
                held = (size_t)got;
            else if (got == 0 || errno != EINTR)
                return ATT_TOP_QUIT; /* the terminal is gone */
        }
    }
    while (held > 0 && !ended) {
        size_t used;
        att_top_key_t key = att_top_key_parse(bytes, held, &used);
        held -= used;
        memmove(bytes, bytes + used, held);
        if (key != ATT_TOP_NONE)
            return key;
    }
    return ended ? ATT_TOP_QUIT : ATT_TOP_NONE;
}
