#include "cli/counters_missing.h"

#include "cli/json_file.h"
#include "cli/report_file.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define EVENTS_ROOM 320 /* of the text; what does not fit is counted */

typedef struct missing {
    const char *events;
    char list[EVENTS_ROOM];
    unsigned count, left_out;
} missing_t;

static bool is_named(const char *events, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = events; *at != '\0'; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == length && memcmp(at, name, length) == 0)
            return true;
    return false;
}

static int take_line(void *context, char *line, size_t length)
{
    missing_t *m = context;
    json_t *root;
    if (att_json_parse(line, length, &root, NULL) != ATT_OK)
        return ATT_OK;
    const char *name = att_json_text_at(root, "unavailable");
    /* Without PAPI there is none of the names. */
    bool all = strcmp(name, "PAPI") == 0 && strcmp(m->events, "on") != 0;
    if (name[0] != '\0' && (all || is_named(m->events, name))) {
        size_t used = strlen(m->list), room = sizeof m->list - used;
        int wanted = snprintf(m->list + used, room, "%s%s (%s)", m->count > 0 ? ", " : "",
                              all ? m->events : name, att_json_text_at(root, "reason"));
        if ((size_t)wanted >= room && m->count > 0) {
            m->list[used] = '\0';
            m->left_out++;
        }
        m->count++;
    }
    json_decref(root);
    return ATT_OK;
}

const char *att_counters_missing(const char *run_dir, const char *events,
                                 char text[ATT_COUNTERS_MISSING])
{
    missing_t m = {.events = events};
    size_t skipped;
    char more[32] = "";
    text[0] = '\0';
    att_report_file_lines(run_dir, "counters/node-0000.jsonl", take_line, &m, &skipped, NULL);
    if (m.count == 0)
        return text;
    if (m.left_out > 0)
        snprintf(more, sizeof more, " and %u more", m.left_out);
    snprintf(text, ATT_COUNTERS_MISSING,
             "--counters: cannot be counted: %s%s; attune info --counters lists what can", m.list,
             more);
    for (char *c = text; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = ' ';
    return text;
}
