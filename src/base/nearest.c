#include "base/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MOST_EDITS 2

static bool same_letter(char a, char b)
{
    a = a == '_' ? '-' : (char)tolower((unsigned char)a);
    b = b == '_' ? '-' : (char)tolower((unsigned char)b);
    return a == b;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Optimal string alignment: letters that are left out, put in, replaced or swapped with their
 * neighbour. Three rows of the usual table: for a swap one looks back two. */
static size_t edits_between(const char *a, const char *b)
{
    size_t rows[3][ATT_NEAREST_WORD], width = strlen(b);
    for (size_t k = 0; k <= width; k++)
        rows[0][k] = k;
    size_t i = 0;
    for (; a[i] != '\0'; i++) {
        const size_t *above = rows[i % 3], *before = rows[(i + 2) % 3];
        size_t *row = rows[(i + 1) % 3];
        row[0] = i + 1;
        for (size_t k = 0; k < width; k++) {
            row[k + 1] =
                least(least(above[k + 1], row[k]) + 1, above[k] + !same_letter(a[i], b[k]));
            if (i > 0 && k > 0 && same_letter(a[i], b[k - 1]) && same_letter(a[i - 1], b[k]))
                row[k + 1] = least(row[k + 1], before[k - 1] + 1);
        }
    }
    return rows[i % 3][width];
}

void att_nearest_init(att_nearest_t *nearest, const char *word)
{
    size_t length = strncmp(word, "--", 2) == 0 ? strcspn(word, "=") : strlen(word);
    *nearest = (att_nearest_t){.edits = MOST_EDITS + 1};
    if (length < sizeof nearest->word)
        memcpy(nearest->word, word, length);
}

void att_nearest_offer(att_nearest_t *nearest, const char *known)
{
    size_t length = strlen(nearest->word), other = strlen(known);
    size_t longer = length > other ? length : other;
    if (length == 0 || longer >= ATT_NEAREST_WORD || nearest->edits == 0)
        return;
    if (strcmp(nearest->word, known) == 0) {
        nearest->edits = 0;
        nearest->best[0] = '\0';
        return;
    }
    size_t dashes = strspn(known, "-"), edits = edits_between(nearest->word, known);
    if (edits == 0)
        edits = 1; /* another case is not the word itself */
    if (edits >= nearest->edits || edits > least(MOST_EDITS, (longer - dashes) / 3))
        return;
    nearest->edits = edits;
    memcpy(nearest->best, known, other + 1);
}

const char *att_nearest_hint(att_nearest_t *nearest)
{
    nearest->hint[0] = '\0';
    if (nearest->best[0] != '\0')
        snprintf(nearest->hint, sizeof nearest->hint, " (did you mean '%s'?)", nearest->best);
    return nearest->hint;
}

const char *att_nearest_of(att_nearest_t *nearest, const char *word, const char *const *known)
{
    att_nearest_init(nearest, word);
    for (; *known != NULL; known++)
        att_nearest_offer(nearest, *known);
    return att_nearest_hint(nearest);
}

const char *att_nearest_choice(att_nearest_t *nearest, const char *word, const char *choices)
{
    att_nearest_init(nearest, word);
    for (const char *at = choices;; at++) {
        char known[ATT_NEAREST_WORD] = "";
        size_t length = strcspn(at, "|");
        if (length < sizeof known)
            memcpy(known, at, length);
        att_nearest_offer(nearest, known);
        at += length;
        if (*at == '\0')
            return att_nearest_hint(nearest);
    }
}
