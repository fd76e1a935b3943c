#include "cli/refused_option.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *att_refused_option(char **argv, char text[ATT_REFUSED_OPTION])
{
    /* optind passes a word when its last letter is read: one in the middle stands at optind. A long
     * option that is not known has no letter. */
    const char *before = argv[optind - 1], *here = argv[optind];
    bool has_letter = optopt > 0 && optopt <= UCHAR_MAX;
    bool in_word = has_letter && here != NULL && here[0] == '-' && strchr(here, optopt) != NULL;
    if (in_word || (has_letter && strncmp(before, "--", 2) != 0))
        snprintf(text, ATT_REFUSED_OPTION, "-%c", optopt);
    else
        snprintf(text, ATT_REFUSED_OPTION, "%s", before);
    return text;
}

const char *att_refused_option_nearest(att_nearest_t *nearest, char **argv,
                                       const struct option *longs)
{
    char name[ATT_REFUSED_OPTION], flag[ATT_NEAREST_WORD];
    att_nearest_init(nearest, att_refused_option(argv, name));
    for (; longs->name != NULL; longs++) {
        snprintf(flag, sizeof flag, "--%s", longs->name);
        att_nearest_offer(nearest, flag);
    }
    return att_nearest_hint(nearest);
}
