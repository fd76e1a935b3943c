/*
 * shell word: words that can be pasted into a shell.
 */
#ifndef ATT_CLI_SHELL_WORD_H
#define ATT_CLI_SHELL_WORD_H

#include <stdio.h>

/* A word that the shell takes as it is: quoted only where it must be. Always one line: with control
 * characters it is $'...', which bash, ksh and zsh know. */
void att_shell_word(FILE *out, const char *word);

#endif
