/*
 * nearest: of the words that are known, the one that a misspelt word was meant to be.
 *
 * Offer every known word, then put the hint behind the refused one. Case does not matter, '_' and
 * '-' are alike, and two neighbours that changed places are one edit. A word is near with at most
 * two edits, and at most one for every three letters of the longer word. A word that is known means
 * itself: no hint.
 */
#ifndef ATT_BASE_NEAREST_H
#define ATT_BASE_NEAREST_H

#include <stddef.h>

#define ATT_NEAREST_WORD 64 /* longer words are never near */

typedef struct att_nearest {
    char word[ATT_NEAREST_WORD];
    char best[ATT_NEAREST_WORD]; /* "" none yet */
    size_t edits;                /* of best */
    char hint[ATT_NEAREST_WORD + 24];
} att_nearest_t;

/* What stands behind a '=' belongs to an option ("--flag=value"), and is left out. */
void att_nearest_init(att_nearest_t *nearest, const char *word);
void att_nearest_offer(att_nearest_t *nearest, const char *known);
/* " (did you mean 'best'?)", or "". */
const char *att_nearest_hint(att_nearest_t *nearest);

/* All three at once, of a list that ends with NULL or of "one|two|three". */
const char *att_nearest_of(att_nearest_t *nearest, const char *word, const char *const *known);
const char *att_nearest_choice(att_nearest_t *nearest, const char *word, const char *choices);

#endif
