#include "cli/shell_word.h"

#include <stdbool.h>
#include <string.h>

void att_shell_word(FILE *out, const char *word)
{
    if (word[0] != '\0' &&
        strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=:,./@%") ==
            strlen(word)) {
        fputs(word, out);
        return;
    }
    bool control = false;
    for (const char *c = word; *c != '\0'; c++)
        control |= (unsigned char)*c < 0x20 || *c == 0x7f;
    fputs(control ? "$'" : "'", out);
    for (; *word != '\0'; word++) {
        if ((unsigned char)*word < 0x20 || *word == 0x7f)
            fprintf(out, "\\%03o", (unsigned char)*word);
        else if (control && (*word == '\'' || *word == '\\'))
            fprintf(out, "\\%c", *word);
        else if (*word == '\'')
            fputs("'\\''", out);
        else
            fputc(*word, out);
    }
    fputc('\'', out);
}
