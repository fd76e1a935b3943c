#include "cli/report_view.h"

#include "base/names.h"
#include "cli/json_file.h"
#include "cli/report_chart.h"
#include "cli/report_counters.h"
#include "cli/report_format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CURVES_OPEN   12u /* the rest is behind a fold */
#define CHARTS_OPEN   6u
#define COST_TASKS    8u
#define FINE_COLUMNS  120u
#define MANY_TASKS    24u
#define FEW_COLUMNS   40u
#define SOURCES_OPEN  10u
#define SOURCES_DRAWN 64u
#define FEW_RANKS     32u
#define ROWS_IN_SIGHT 40u /* more scroll in a box */

static double number_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* So that a template can open and close what surrounds a list. */
static void mark_ends(json_t *list)
{
    size_t count = json_array_size(list);
    if (count == 0)
        return;
    for (size_t i = 0; i < count; i++) {
        json_object_set_new(json_array_get(list, i), "first", json_boolean(i == 0));
        json_object_set_new(json_array_get(list, i), "last", json_boolean(i + 1 == count));
    }
}

/* --- tasks --------------------------------------------------------------------------------------
 */

static void name_task(json_t *task)
{
    char bytes[64];
    const att_template_format_t *formats = att_report_formats;
    for (size_t i = 0; i < ATT_REPORT_FORMATS; i++)
        if (strcmp(formats[i].name, "bytes") == 0)
            formats[i].write(json_object_get(task, "bytes"), bytes, sizeof bytes);
    json_object_set_new(task, "name",
                        json_sprintf("%s %s", att_json_text_at(task, "collective"), bytes));
    const char *verdict = att_json_text_at(task, "verdict"),
               *reason = att_json_text_at(task, "reason");
    const char *setting = att_json_text_at(json_object_get(task, "tuned"), "setting");
    json_object_set_new(task, "tuned_text",
                        json_string(strcmp(verdict, "kept") == 0 ? "kept NCCL\xe2\x80\x99s choice"
                                    : strcmp(verdict, "failed") == 0 ? "not tuned"
                                    : strcmp(verdict, "open") == 0   ? "\xe2\x80\x93"
                                                                     : setting));
    /* That it wins, and by how much, stands in the columns before. */
    bool plain =
        strcmp(verdict, "tuned") == 0 && strcmp(att_json_text_at(task, "phase"), "settled") == 0;
    json_object_set_new(task, "remark",
                        json_string(plain               ? ""
                                    : reason[0] == '\0' ? att_json_text_at(task, "phase")
                                                        : reason));
    if (strcmp(verdict, "tuned") == 0)
        json_object_set(task, "shown_bound", json_object_get(task, "gain_lower"));
    else
        json_object_set_new(task, "shown_bound", json_null());
}

static int by_task(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    int order = att_collective_parse(att_json_text_at(x, "collective")) -
                att_collective_parse(att_json_text_at(y, "collective"));
    if (order == 0)
        order = strcmp(att_json_text_at(x, "group"), att_json_text_at(y, "group"));
    double p = number_of(x, "bytes"), q = number_of(y, "bytes");
    return order != 0 ? order : (p > q) - (p < q);
}

static bool same_chart(const json_t *a, const json_t *b)
{
    return strcmp(att_json_text_at(a, "collective"), att_json_text_at(b, "collective")) == 0 &&
           strcmp(att_json_text_at(a, "group"), att_json_text_at(b, "group")) == 0 &&
           number_of(a, "ranks") == number_of(b, "ranks");
}

static json_t *bar_row(const json_t *task, double widest)
{
    double native = number_of(json_object_get(task, "default"), "busbw_gbs");
    double tuned = number_of(json_object_get(task, "tuned"), "busbw_gbs");
    json_t *row =
        json_pack("{s:O,s:f,s:f,s:O?}", "bytes", json_object_get(task, "bytes"), "default_share",
                  widest > 0 ? native / widest : 0.0, "tuned_share",
                  widest > 0 ? tuned / widest : 0.0, "speedup", json_object_get(task, "speedup"));
    json_object_set_new(row, "default_gbs", native > 0 ? json_real(native) : json_null());
    json_object_set_new(row, "tuned_gbs", tuned > 0 ? json_real(tuned) : json_null());
    return row;
}

/* tasks in order -> a chart a collective and communicator */
static json_t *size_charts(const json_t *tasks)
{
    json_t *charts = json_array();
    size_t count = json_array_size(tasks);
    for (size_t i = 0, end; i < count; i = end) {
        const json_t *first = json_array_get(tasks, i);
        double widest = 0;
        for (end = i; end < count && same_chart(first, json_array_get(tasks, end)); end++) {
            const json_t *task = json_array_get(tasks, end);
            widest = fmax(widest, number_of(json_object_get(task, "default"), "busbw_gbs"));
            widest = fmax(widest, number_of(json_object_get(task, "tuned"), "busbw_gbs"));
        }
        json_t *rows = json_array();
        for (size_t k = i; k < end; k++)
            json_array_append_new(rows, bar_row(json_array_get(tasks, k), widest));
        json_array_append_new(charts, json_pack("{s:s,s:s,s:O,s:o}", "collective",
                                                att_json_text_at(first, "collective"), "group",
                                                att_json_text_at(first, "group"), "ranks",
                                                json_object_get(first, "ranks"), "rows", rows));
    }
    return charts;
}

/* A list as the first few and, behind a fold, the rest. */
static json_t *fold(const json_t *list, size_t in_sight)
{
    json_t *open = json_array(), *more = json_array(), *entry;
    size_t i;
    json_array_foreach(list, i, entry) json_array_append(i < in_sight ? open : more, entry);
    json_t *folded = json_array_size(open) > 0 ? json_pack("{s:O}", "open", open) : json_null();
    if (json_array_size(more) > 0)
        json_object_set_new(
            folded, "more",
            json_pack("{s:i,s:O}", "count", (int)json_array_size(more), "list", more));
    json_decref(open);
    json_decref(more);
    return folded;
}

static json_t *curve_lists(const json_t *tasks)
{
    json_t *drawn = json_array(), *task;
    size_t i;
    json_array_foreach(tasks, i, task)
    {
        if (json_object_get(task, "chart") != NULL)
            json_array_append(drawn, task);
    }
    json_t *folded = fold(drawn, CURVES_OPEN);
    json_decref(drawn);
    return folded;
}

static int by_loss(const void *a, const void *b)
{
    double x = number_of(*(json_t *const *)a, "lost_s"),
           y = number_of(*(json_t *const *)b, "lost_s");
    return (x < y) - (x > y);
}

static json_t *cost_view(json_t *const *tasks, size_t count)
{
    json_t **order = malloc((count + 1) * sizeof *order);
    if (order == NULL || count == 0) {
        free(order);
        return json_null();
    }
    memcpy(order, tasks, count * sizeof *order);
    qsort(order, count, sizeof *order, by_loss);
    double most = number_of(order[0], "lost_s"), rest = 0;
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        double lost = number_of(order[i], "lost_s");
        if (i < COST_TASKS)
            json_array_append_new(list, json_pack("{s:s,s:f,s:f}", "name",
                                                  att_json_text_at(order[i], "name"), "lost_s",
                                                  lost, "share", most > 0 ? lost / most : 0.0));
        else
            rest += lost;
    }
    free(order);
    return json_pack("{s:o,s:i,s:i,s:f}", "list", list, "shown", (int)COST_TASKS, "rest",
                     count > COST_TASKS ? (int)(count - COST_TASKS) : 0, "rest_s", rest);
}

static void view_tasks(att_report_run_t *run)
{
    json_t *tasks = json_object_get(run->value, "tasks"), *sorted = json_array();
    size_t count = json_array_size(tasks);
    json_t **order = malloc((count + 1) * sizeof *order);
    if (order == NULL || sorted == NULL) {
        free(order);
        json_decref(sorted);
        return;
    }
    bool many_groups = false, many_sizes = false;
    double ranks = 0;
    for (size_t i = 0; i < count; i++) {
        order[i] = json_array_get(tasks, i);
        name_task(order[i]);
        many_groups |=
            strcmp(att_json_text_at(order[i], "group"), att_json_text_at(order[0], "group")) != 0;
        many_sizes |= number_of(order[i], "ranks") != number_of(order[0], "ranks");
        ranks = fmax(ranks, number_of(order[i], "ranks"));
        if (run->trials.searches == NULL)
            continue;
        json_t *chart = att_report_chart(order[i], &run->trials.searches[i],
                                         count > MANY_TASKS ? FEW_COLUMNS : FINE_COLUMNS);
        if (chart != NULL)
            json_object_set_new(order[i], "chart", chart);
    }
    json_object_set_new(run->value, "cost_tasks", cost_view(order, count));
    qsort(order, count, sizeof *order, by_task);
    for (size_t i = 0; i < count; i++)
        json_array_append(sorted, order[i]);
    free(order);
    json_object_set_new(run->value, "tasks", sorted);
    json_object_set_new(run->value, "has_tasks", json_boolean(count > 0));
    json_object_set_new(run->value, "many_tasks", json_boolean(count > ROWS_IN_SIGHT));
    json_object_set_new(run->value, "many_groups", json_boolean(many_groups));
    json_object_set_new(run->value, "many_sizes", json_boolean(many_sizes));
    json_object_set_new(run->value, "most_ranks", json_integer((json_int_t)ranks));
    json_t *sizes = size_charts(sorted);
    json_object_set_new(run->value, "sizes", fold(sizes, CHARTS_OPEN));
    json_decref(sizes);
    json_object_set_new(run->value, "curves", curve_lists(sorted));
}

/* --- late ranks, environment --------------------------------------------------------------------
 */

static void view_stragglers(json_t *stragglers)
{
    bool any = false;
    size_t g, r;
    json_t *group, *rank;
    json_array_foreach(json_object_get(stragglers, "groups"), g, group)
    {
        json_t *ranks = json_object_get(group, "by_rank");
        double most = 0;
        any |= json_array_size(json_object_get(group, "named")) > 0;
        json_array_foreach(ranks, r, rank) most = fmax(most, number_of(rank, "wait_caused_s"));
        json_array_foreach(ranks, r, rank) json_object_set_new(
            rank, "share", json_real(most > 0 ? number_of(rank, "wait_caused_s") / most : 0));
        json_object_set_new(group, "few_ranks", json_boolean(json_array_size(ranks) <= FEW_RANKS));
    }
    if (stragglers != NULL)
        json_object_set_new(stragglers, "any_named", json_boolean(any));
}

/* Texts and numbers of an object as a list of pairs. */
static json_t *pairs(const json_t *object)
{
    json_t *list = json_array();
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        char *text = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY);
        json_array_append_new(list, json_pack("{s:s,s:s}", "name", name, "value",
                                              text != NULL ? text : json_string_value(value)));
        free(text);
    }
    mark_ends(list);
    return list;
}

static void add_fact(json_t *facts, const char *name, const char *value, bool code)
{
    if (value != NULL && value[0] != '\0')
        json_array_append_new(
            facts, json_pack("{s:s,s:s,s:b}", "name", name, "value", value, "code", (int)code));
}

static void add_command(json_t *facts, const json_t *words)
{
    size_t i;
    json_t *word, *line = json_string("");
    json_array_foreach(words, i, word)
    {
        const char *text = json_string_value(word);
        /* As a shell would want it. */
        bool quote = text == NULL || text[0] == '\0' ||
                     strpbrk(text, " \t\n'\"\\$`*?[](){}<>|&;#~!") != NULL;
        json_t *longer = json_sprintf(quote ? "%s%s'%s'" : "%s%s%s", json_string_value(line),
                                      i > 0 ? " " : "", text != NULL ? text : "");
        json_decref(line);
        line = longer != NULL ? longer : json_string("");
    }
    add_fact(facts, "command", json_string_value(line), true);
    json_decref(line);
}

static void view_provenance(json_t *value)
{
    json_t *facts = json_array(), *p = json_object_get(value, "provenance");
    const json_t *machine = json_object_get(value, "machine");
    char text[64] = "";
    add_command(facts, json_object_get(p, "command"));
    add_fact(facts, "run", att_json_text_at(p, "run_id"), true);
    add_fact(facts, "host", att_json_text_at(p, "host"), false);
    add_fact(facts, "folder", att_json_text_at(p, "directory"), true);
    add_fact(facts, "device", att_json_text_at(machine, "device"), false);
    add_fact(facts, "NCCL", att_json_text_at(machine, "nccl"), false);
    add_fact(facts, "attune of the run", att_json_text_at(machine, "attune"), false);
    add_fact(facts, "began", att_json_text_at(p, "started"), false);
    add_fact(facts, "ended", att_json_text_at(p, "ended"), false);
    if (json_is_number(json_object_get(p, "duration_s"))) {
        att_report_duration_text(number_of(p, "duration_s") * 1e6, text, sizeof text);
        add_fact(facts, "duration", text, false);
    }
    if (json_is_integer(json_object_get(p, "exit_status"))) {
        snprintf(text, sizeof text, "%lld",
                 (long long)json_integer_value(json_object_get(p, "exit_status")));
        add_fact(facts, "exit status of the command", text, false);
    }
    const json_t *sidecar = json_object_get(p, "sidecar");
    add_fact(facts, "sidecar", att_json_text_at(sidecar, "program"), true);
    add_fact(facts, "end of the sidecar", att_json_text_at(sidecar, "end"), false);
    json_object_set_new(value, "has_provenance",
                        json_boolean(json_array_size(facts) > 0 ||
                                     json_is_string(json_object_get(value, "notes"))));
    json_object_set_new(value, "facts", facts);
    json_object_set_new(value, "environment_list", pairs(json_object_get(p, "environment")));
    json_object_set_new(value, "option_list", pairs(json_object_get(p, "options")));
}

/* --- counters -----------------------------------------------------------------------------------
 */

/* In a box of 120 by 20, from 0 to the most. */
static json_t *course_path(const json_t *course, double most)
{
    char text[ATT_REPORT_SLICES * 16 + 1] = "";
    size_t used = 0, count = json_array_size(course);
    for (size_t i = 0; i < count && i < ATT_REPORT_SLICES && most > 0; i++) {
        double share = json_number_value(json_array_get(course, i)) / most;
        used += (size_t)snprintf(text + used, sizeof text - used, "%c%.1f %.1f", i == 0 ? 'M' : 'L',
                                 count > 1 ? 120.0 * (double)i / (double)(count - 1) : 60,
                                 19 - 18 * fmin(fmax(share, 0), 1));
    }
    return count > 1 ? json_string(text) : json_null();
}

static void view_counters(json_t *counters)
{
    size_t n, s, e;
    json_t *node, *source, *event;
    json_array_foreach(json_object_get(counters, "nodes"), n, node)
    {
        json_t *sources = json_object_get(node, "sources");
        size_t count = json_array_size(sources), events = 0;
        json_array_foreach(sources, s, source)
        {
            json_t *list = json_object_get(source, "events");
            /* The run has a state too: a template would take that for a source without. */
            json_object_set_new(source, "off", json_string(att_json_text_at(source, "state")));
            events += json_array_size(list);
            json_array_foreach(list, e, event) if (count <= SOURCES_DRAWN) json_object_set_new(
                event, "path",
                course_path(json_object_get(event, "course"), number_of(event, "most")));
        }
        json_object_set_new(node, "any_events", json_boolean(events > 0));
        json_object_set_new(node, "folded", json_boolean(count > SOURCES_OPEN));
        json_object_set_new(node, "sources_count", json_integer((json_int_t)count));
        json_object_set_new(
            node, "has_unavailable",
            json_boolean(json_array_size(json_object_get(node, "unavailable")) > 0));
    }
}

static void view_coverage(json_t *coverage)
{
    static const struct {
        const char *key, *what;
    } rows[] = {{"called", "collectives that the preload saw"},
                {"answered", "of these, those that NCCL asked the hook about"},
                {"bypassed", "calls that have no tuner (point-to-point, all-to-all)"},
                {"streams", "CUDA streams of the calls"},
                {"unused", "records of groups that were not ready, or had ended"},
                {"incomplete", "records that the other ranks' did not follow in time"},
                {"unsent", "records that the next agent did not take"},
                {"waiting", "records that still waited at the end"}};
    json_t *more = json_array();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *number = json_object_get(coverage, rows[i].key);
        if (number != NULL)
            json_array_append_new(more,
                                  json_pack("{s:s,s:O}", "what", rows[i].what, "number", number));
    }
    if (json_is_object(coverage))
        json_object_set_new(coverage, "more", more);
    else
        json_decref(more);
}

static void view_files(json_t *value)
{
    json_t *list = json_array(), *file;
    size_t i;
    json_array_foreach(json_object_get(value, "files"), i, file)
        json_array_append_new(list, json_pack("{s:O}", "name", file));
    mark_ends(list);
    json_object_set_new(value, "files", list);
}

void att_report_view(att_report_run_t *run)
{
    json_t *value = run->value;
    view_tasks(run);
    view_stragglers(json_object_get(value, "stragglers"));
    view_coverage(json_object_get(value, "coverage"));
    view_provenance(value);
    view_files(value);
    mark_ends(json_object_get(value, "missing"));
    json_object_set_new(value, "unfinished",
                        json_boolean(strcmp(att_json_text_at(value, "state"), "unfinished") == 0));
    view_counters(json_object_get(value, "counters"));
}
