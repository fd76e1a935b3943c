#include "base/one_line.h"

#include <stdio.h>
#include <string.h>

const char *att_one_line(const char *text, char *line, size_t size)
{
    size_t used = 0;
    for (; *text != '\0'; text++) {
        char shown[5] = {*text};
        unsigned char c = (unsigned char)*text;
        if (c == '\n' || c == '\t' || c == '\r')
            snprintf(shown, sizeof shown, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
        else if (c < 0x20 || c == 0x7f)
            snprintf(shown, sizeof shown, "\\x%02x", c);
        size_t length = strlen(shown);
        if (used + length >= size)
            break;
        memcpy(line + used, shown, length);
        used += length;
    }
    line[used] = '\0';
    return line;
}
