/* misbehave: the ways in which code of others ends or holds up the process that it is in. */
#ifndef ATT_TEST_MISBEHAVE_H
#define ATT_TEST_MISBEHAVE_H

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* how: crash, hang, exit (status 3), leave (status 0); returns for another word. */
static inline void misbehave(const char *how)
{
    if (strcmp(how, "crash") == 0) {
        signal(SIGABRT, SIG_DFL); /* a test library may catch it */
        abort();
    }
    if (strcmp(how, "hang") == 0)
        for (;;)
            pause();
    if (strcmp(how, "exit") == 0)
        _exit(3);
    if (strcmp(how, "leave") == 0)
        _exit(0);
}

#endif
