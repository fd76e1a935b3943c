/*
 * program: a command that runs beside us and speaks in lines on its standard input and output.
 *
 * It is started by /bin/sh, gets a process group of its own, and is killed with it when we close it
 * or die. Standard error is ours.
 */
#ifndef ATT_EXEC_PROGRAM_H
#define ATT_EXEC_PROGRAM_H

#include <stddef.h>

#define PROGRAM_LINE (1u << 20) /* bytes of the longest line */

struct program;

/* NULL and one line in `why`. */
struct program *program_start(const char *command, double timeout_s, char *why, size_t size);
void program_close(struct program *program); /* NULL is fine */
/* 0, or -1 and why: it has ended, or takes nothing for too long. */
int program_put(struct program *program, const char *line, char *why, size_t size);
/* The next line, without its end, valid until the next call. NULL and why. */
const char *program_get(struct program *program, char *why, size_t size);

#endif
