#include "fabric/copy.h"

#include <string.h>

/* 16 bytes at any address; built without the compiler's turning the loop back into memcpy. */
typedef long long att_words_t __attribute__((vector_size(16), aligned(1), may_alias));

#define STRIDE 64u

void att_copy(void *target, const void *source, size_t bytes)
{
    char *to = target;
    const char *from = source;
    if (to == from)
        return;
    size_t at = 0;
    for (; at + STRIDE <= bytes; at += STRIDE) {
        att_words_t a = *(const att_words_t *)(const void *)(from + at);
        att_words_t b = *(const att_words_t *)(const void *)(from + at + 16);
        att_words_t c = *(const att_words_t *)(const void *)(from + at + 32);
        att_words_t d = *(const att_words_t *)(const void *)(from + at + 48);
        *(att_words_t *)(void *)(to + at) = a;
        *(att_words_t *)(void *)(to + at + 16) = b;
        *(att_words_t *)(void *)(to + at + 32) = c;
        *(att_words_t *)(void *)(to + at + 48) = d;
    }
    memcpy(to + at, from + at, bytes - at);
}
