#include "cli/trace_select.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int bad_window(const char *text, att_error_t *error)
{
    return att_fail(error, ATT_EUSAGE,
                    "--window: '%.60s' is not accepted; expected FROM:TO in seconds since the "
                    "trace began, for example 10:12.5",
                    text);
}

static int read_window(const char *text, att_trace_choice_t *choice, att_error_t *error)
{
    const char *colon = strchr(text, ':');
    if (colon == NULL)
        return bad_window(text, error);
    for (int side = 0; side < 2; side++) {
        const char *from = side == 0 ? text : colon + 1;
        const char *to = side == 0 ? colon : text + strlen(text);
        if (from == to)
            continue;
        char *end;
        double seconds = strtod(from, &end);
        if (end != to || !isfinite(seconds) || fabs(seconds) > 1e9)
            return bad_window(text, error);
        int64_t at = choice->origin_ns + (int64_t)llround(seconds * 1e9);
        if (side == 0)
            choice->select.from_ns = at;
        else
            choice->select.to_ns = at;
    }
    if (choice->select.from_ns >= choice->select.to_ns)
        return att_fail(error, ATT_EUSAGE, "--window: '%.60s' is empty", text);
    return ATT_OK;
}

/* Largest rank of the job, for messages. */
static uint32_t rank_count(const att_catalog_t *c)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < c->place_count; i++)
        if (c->places[i].job_rank >= most)
            most = c->places[i].job_rank + 1;
    return most;
}

static int read_ranks(const char *text, const att_catalog_t *c, bool *members, att_error_t *error)
{
    bool *keep = calloc(c->member_count + 1, sizeof *keep);
    if (keep == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory");
    int status = ATT_OK;
    for (const char *at = text; status == ATT_OK && *at != '\0';) {
        char *end;
        bool digit = isdigit((unsigned char)*at);
        unsigned long first = digit ? strtoul(at, &end, 10) : 0, last = first;
        if (digit && *end == '-') {
            digit = isdigit((unsigned char)end[1]);
            last = digit ? strtoul(end + 1, &end, 10) : 0;
        }
        if (!digit || (*end != '\0' && *end != ',') || last < first || last >= rank_count(c)) {
            status = att_fail(error, ATT_EUSAGE,
                              "--ranks: '%.60s' is not accepted; expected ranks such as 0,4-7; "
                              "this trace has 0 to %u",
                              text, rank_count(c) - 1);
            break;
        }
        for (uint32_t m = 0; m < c->member_count; m++) {
            uint32_t rank = c->places[c->members[m].place].job_rank;
            keep[m] |= rank >= first && rank <= last;
        }
        at = *end == ',' ? end + 1 : end;
    }
    for (uint32_t m = 0; m < c->member_count; m++)
        members[m] &= keep[m];
    free(keep);
    return status;
}

static int read_groups(const char *text, const att_catalog_t *c, bool *members, att_error_t *error)
{
    bool *keep = calloc(c->member_count + 1, sizeof *keep);
    if (keep == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory");
    int status = ATT_OK;
    for (const char *at = text; status == ATT_OK && *at != '\0';) {
        size_t length = strcspn(at, ",");
        bool any = false;
        for (uint32_t m = 0; m < c->member_count; m++) {
            char hash[24];
            snprintf(hash, sizeof hash, "0x%llx",
                     (unsigned long long)c->groups[c->members[m].group].hash);
            bool hit = length > 0 &&
                       (strncmp(hash, at, length) == 0 || strncmp(hash + 2, at, length) == 0);
            keep[m] |= hit;
            any |= hit;
        }
        if (!any)
            status = att_fail(error, ATT_EUSAGE,
                              "--groups: no communicator of this trace begins with '%.*s'; "
                              "'attune trace RUN' lists them",
                              (int)length, at);
        at += length + (at[length] == ',');
    }
    for (uint32_t m = 0; m < c->member_count; m++)
        members[m] &= keep[m];
    free(keep);
    return status;
}

int att_trace_choose(const struct att_trace *trace, const att_trace_wish_t *wish,
                     att_trace_choice_t *choice, att_error_t *error)
{
    const att_catalog_t *c = att_trace_catalog(trace);
    const att_trace_facts_t *facts = att_trace_facts(trace);
    *choice =
        (att_trace_choice_t){.select = {.from_ns = facts->first_ns, .to_ns = facts->last_ns + 1},
                             .origin_ns = facts->first_ns};
    int status = ATT_OK;
    if (wish->window != NULL)
        status = read_window(wish->window, choice, error);
    if (status == ATT_OK && (wish->ranks != NULL || wish->groups != NULL)) {
        choice->members = malloc((c->member_count + 1) * sizeof *choice->members);
        if (choice->members == NULL)
            return att_fail(error, ATT_ENOMEM, "no memory");
        for (uint32_t m = 0; m < c->member_count; m++)
            choice->members[m] = true;
        choice->select.members = choice->members;
    }
    if (status == ATT_OK && wish->ranks != NULL)
        status = read_ranks(wish->ranks, c, choice->members, error);
    if (status == ATT_OK && wish->groups != NULL)
        status = read_groups(wish->groups, c, choice->members, error);
    if (status != ATT_OK)
        att_trace_choice_free(choice);
    return status;
}

void att_trace_choice_free(att_trace_choice_t *choice)
{
    free(choice->members);
    choice->members = NULL;
    choice->select.members = NULL;
}
