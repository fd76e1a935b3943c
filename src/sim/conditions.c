#include "sim/conditions.h"

#include "base/nearest.h"
#include "surface/surface.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int unknown_load(const struct att_surface *surface, const char *load, att_error_t *error)
{
    const att_surface_info_t *info = att_surface_info(surface);
    char known[128] = "";
    att_nearest_t nearest;
    att_nearest_init(&nearest, load);
    for (int i = 0; i < info->load_count; i++) {
        size_t length = strlen(known);
        snprintf(known + length, sizeof known - length, "%s%s", i > 0 ? ", " : "", info->loads[i]);
        att_nearest_offer(&nearest, info->loads[i]);
    }
    return att_fail(error, ATT_EUSAGE, "surface %s has no load \"%.40s\"%s (it has: %s)",
                    info->name, load, att_nearest_hint(&nearest), known);
}

/* One "CALL:LOAD" or, at the beginning, "LOAD". */
static int add_span(const struct att_surface *surface, char *text, att_sim_conditions_t *c,
                    att_error_t *error)
{
    uint64_t from = 0;
    char *load = text, *colon = strchr(text, ':');
    if (colon != NULL) {
        errno = 0;
        char *end;
        from = strtoull(text, &end, 10);
        if (errno != 0 || end != colon || !isdigit((unsigned char)text[0]))
            return att_fail(error, ATT_EUSAGE,
                            "load schedule: \"%.40s\" is no CALL:LOAD with a call number", text);
        load = colon + 1;
    }
    if (c->count == 0 ? from != 0 : colon == NULL || from <= c->spans[c->count - 1].from)
        return att_fail(error, ATT_EUSAGE,
                        "load schedule: calls must begin at 0 and rise (at \"%.40s\")", load);
    if (c->count == ATT_SIM_SPANS)
        return att_fail(error, ATT_EUSAGE, "load schedule: more than %d spans", ATT_SIM_SPANS);
    int index = att_surface_load_index(surface, load);
    if (index < 0)
        return unknown_load(surface, load, error);
    c->spans[c->count].from = from;
    c->spans[c->count++].load = index;
    return ATT_OK;
}

int att_sim_conditions_parse(const struct att_surface *surface, const char *schedule,
                             att_sim_conditions_t *conditions, att_error_t *error)
{
    char *copy = strdup(schedule), *rest = copy, *word;
    if (copy == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for a load schedule");
    att_sim_conditions_t c = {.drift = conditions->drift};
    int rc = ATT_OK;
    while (rc == ATT_OK && (word = strsep(&rest, ",")) != NULL)
        rc = add_span(surface, word, &c, error);
    free(copy);
    if (rc == ATT_OK)
        *conditions = c;
    return rc;
}

int att_sim_conditions_load(const att_sim_conditions_t *conditions, uint64_t call)
{
    uint32_t i = conditions->count;
    while (i > 1 && conditions->spans[i - 1].from > call)
        i--;
    return conditions->spans[i - 1].load;
}

double att_sim_conditions_factor(const att_sim_conditions_t *conditions, uint64_t call)
{
    double factor = 1 + conditions->drift * (double)call / 1000;
    return factor < 0.1 ? 0.1 : factor;
}
