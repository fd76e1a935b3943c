/*
 * words: how collectives, algorithms, protocols and transports are called in files and on screens.
 * Public header for strategies; everything is inline, so that a plugin links nothing.
 */
#ifndef ATTUNE_WORDS_H
#define ATTUNE_WORDS_H

#include "attune/setting.h"

#include <strings.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum att_vocabulary {
    ATT_WORDS_COLLECTIVE = 0,
    ATT_WORDS_ALGORITHM  = 1,
    ATT_WORDS_PROTOCOL   = 2,
    ATT_WORDS_TRANSPORT  = 3
} att_vocabulary_t;

/* The word of a number, "keep" for one that is not known. */
static inline const char *att_word(att_vocabulary_t vocabulary, int number)
{
    static const char *const words[4][8] = {
        {"broadcast", "reduce", "allgather", "reducescatter", "allreduce"},
        {"tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"},
        {"ll", "ll128", "simple"},
        {"p2p", "shm", "net"}};
    return number >= 0 && number < 7 && words[vocabulary][number] != NULL
               ? words[vocabulary][number]
               : "keep";
}

/* The number of a word in any case; -1 (KEEP) for "keep" and NULL, -2 for any other. */
static inline int att_word_number(att_vocabulary_t vocabulary, const char *word)
{
    if (word == NULL || strcasecmp(word, "keep") == 0)
        return -1;
    for (int i = 0; i < 7; i++)
        if (strcasecmp(att_word(vocabulary, i), word) == 0)
            return i;
    return -2;
}

#ifdef __cplusplus
}
#endif

#endif
