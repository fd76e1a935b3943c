/*
 * top screen: the terminal while `attune top` has it: another screen, keys without echo. It is
 * given back as it was however the program ends, stops or crashes (kill -9 aside: reset(1) helps
 * then).
 */
#ifndef ATT_CLI_TOP_SCREEN_H
#define ATT_CLI_TOP_SCREEN_H

#include "base/status.h"

#include <stddef.h>

typedef enum att_top_key {
    ATT_TOP_NONE = 0, /* time has passed, or the window changed */
    ATT_TOP_QUIT = 1, /* q, or a signal to end */
    ATT_TOP_UP = 2,
    ATT_TOP_DOWN = 3,
    ATT_TOP_PAGE_UP = 4,
    ATT_TOP_PAGE_DOWN = 5,
    ATT_TOP_HOME = 6,
    ATT_TOP_END = 7
} att_top_key_t;

/* Of standard input and output, both terminals. One at a time. -ATT_ESYSTEM. */
int att_top_screen_open(att_error_t *error);
void att_top_screen_close(void); /* no screen is fine */
void att_top_screen_size(int *rows, int *columns);
/* Show these lines instead of the last ones. */
void att_top_screen_show(const char *text, size_t length);
/* The next key, or NONE after `milliseconds`, at once when the window changed. */
att_top_key_t att_top_screen_key(int milliseconds);
/* Number of the signal that ended it, 0 none. */
int att_top_screen_signal(void);

/* A key of the bytes that a terminal sent; *used is how many it took. For tests. */
att_top_key_t att_top_key_parse(const char *bytes, size_t length, size_t *used);

#endif
