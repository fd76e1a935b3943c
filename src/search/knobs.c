#include "search/knobs.h"

#include "base/data_file.h"
#include "base/names.h"

#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAIR_ROWS 32
#define RULE_ROWS 16

struct att_knobs {
    json_t *document;
    att_knob_reach_t pairs[PAIR_ROWS];
    uint32_t pair_count;
    att_knob_rule_t rules[ATT_KNOB_COUNT][RULE_ROWS];
    uint32_t rule_count[ATT_KNOB_COUNT];
    uint32_t order[ATT_COLLECTIVE_COUNT]; /* bit per knob that changes the order of additions */
    const char *pairs_why;
};

static const char *const knob_names[ATT_KNOB_COUNT] = {
    "algorithm", "protocol", "transport", "channels", "threads", "chunk", "buffer"};

const char *att_knob_name(int knob)
{
    return knob >= 0 && knob < ATT_KNOB_COUNT ? knob_names[knob] : "unknown";
}

int att_knob_parse(const char *word)
{
    for (int i = 0; i < ATT_KNOB_COUNT; i++)
        if (strcmp(word, knob_names[i]) == 0)
            return i;
    return -1;
}

int att_nccl_version_parse(const char *text, int *version)
{
    unsigned part[3] = {0};
    int length = 0;
    if (sscanf(text, "%u.%u%n.%u%n", &part[0], &part[1], &length, &part[2], &length) < 2 ||
        text[length] != '\0' || part[0] < 2 || part[0] > 99 || part[1] > 99 || part[2] > 99)
        return -ATT_EUSAGE;
    *version = (int)(part[0] * 10000 + part[1] * 100 + part[2]);
    return ATT_OK;
}

const char *att_nccl_version_text(int version, char *text, size_t size)
{
    snprintf(text, size, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    return text;
}

/* --- reading the document ------------------------------------------------------------------ */
__attribute__((format(printf, 3, 4))) static int bad(att_error_t *error, const char *place,
                                                     const char *format, ...)
{
    char text[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return att_fail(error, ATT_EINPUT, "knobs: %s: %s", place, text);
}

static int read_version(const json_t *row, const char *key, int otherwise, int *version,
                        const char *place, att_error_t *error)
{
    const json_t *value = json_object_get(row, key);
    *version = otherwise;
    if (value == NULL)
        return ATT_OK;
    if (!json_is_string(value) || att_nccl_version_parse(json_string_value(value), version) != 0)
        return bad(error, place, "%s: expected an NCCL version as \"2.28.9\"", key);
    return ATT_OK;
}

/* A list of words as bits; all bits when it is not there. */
static int read_words(const json_t *row, const char *key, int (*parse)(const char *), int count,
                      uint32_t *bits, const char *place, att_error_t *error)
{
    const json_t *list = json_object_get(row, key);
    *bits = (1u << count) - 1;
    if (list == NULL)
        return ATT_OK;
    if (!json_is_array(list))
        return bad(error, place, "%s: expected a list of words", key);
    *bits = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *word = json_string_value(json_array_get(list, i));
        int number = word != NULL ? parse(word) : -1;
        if (number < 0)
            return bad(error, place, "%s: unknown word '%.40s'", key, word != NULL ? word : "");
        *bits |= 1u << number;
    }
    return ATT_OK;
}

static int read_reach(const json_t *row, att_knob_reach_t *reach, const char *place,
                      att_error_t *error)
{
    int rc = json_is_object(row) ? ATT_OK : bad(error, place, "expected an object");
    if (rc == ATT_OK)
        rc = read_version(row, "since", 0, &reach->since, place, error);
    if (rc == ATT_OK)
        rc = read_version(row, "until", INT_MAX, &reach->until, place, error);
    if (rc == ATT_OK)
        rc = read_words(row, "collective", att_collective_parse, ATT_COLLECTIVE_COUNT,
                        &reach->collectives, place, error);
    if (rc == ATT_OK)
        rc = read_words(row, "algorithm", att_algorithm_parse, ATT_ALGORITHM_COUNT,
                        &reach->algorithms, place, error);
    if (rc == ATT_OK)
        rc = read_words(row, "protocol", att_protocol_parse, ATT_PROTOCOL_COUNT, &reach->protocols,
                        place, error);
    return rc;
}

static int read_number(const json_t *row, const char *key, uint64_t *number, const char *place,
                       att_error_t *error)
{
    const json_t *value = json_object_get(row, key);
    if (value == NULL)
        return ATT_OK;
    if (!json_is_integer(value) || json_integer_value(value) < 1)
        return bad(error, place, "%s: expected a whole number above 0", key);
    *number = (uint64_t)json_integer_value(value);
    return ATT_OK;
}

static int read_values(const json_t *row, const char *key, att_knob_rule_t *rule, const char *place,
                       att_error_t *error)
{
    const json_t *list = json_object_get(row, key);
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_int_t value = json_integer_value(json_array_get(list, i));
        if (value < 1 || rule->value_count == ATT_KNOB_VALUES)
            return bad(error, place, "%s: expected up to %d whole numbers above 0", key,
                       ATT_KNOB_VALUES);
        rule->values[rule->value_count++] = (uint64_t)value;
    }
    return ATT_OK;
}

static int read_rule(const json_t *row, att_knob_rule_t *rule, const char *place,
                     att_error_t *error)
{
    static const char *const keys[] = {"min", "max", "step", "power_of_two_times", "search_min"};
    int rc = read_reach(row, &rule->reach, place, error);
    uint64_t *const numbers[] = {&rule->min, &rule->max, &rule->step, &rule->power_of_two_times,
                                 &rule->search_min};
    for (size_t i = 0; i < sizeof keys / sizeof *keys && rc == ATT_OK; i++)
        rc = read_number(row, keys[i], numbers[i], place, error);
    if (rc == ATT_OK)
        rc = read_values(row, "values", rule, place, error);
    if (rc == ATT_OK)
        rc = read_values(row, "also", rule, place, error);
    if (rc != ATT_OK)
        return rc;
    rule->never = json_is_true(json_object_get(row, "never"));
    rule->why = json_string_value(json_object_get(row, "why"));
    rule->source = json_string_value(json_object_get(row, "source"));
    if (rule->why == NULL || rule->source == NULL)
        return bad(error, place, "a rule needs \"why\" and \"source\"");
    if (!rule->never && rule->max == 0 && rule->value_count == 0)
        return bad(error, place, "a rule needs \"never\", \"values\" or \"max\"");
    if (!rule->never && rule->max != 0 && rule->step == 0 && rule->power_of_two_times == 0)
        return bad(error, place, "\"max\" needs \"step\" or \"power_of_two_times\"");
    return ATT_OK;
}

static int read_knob(att_knobs_t *knobs, const json_t *row, att_error_t *error)
{
    const char *name = json_string_value(json_object_get(row, "name"));
    int knob = name != NULL ? att_knob_parse(name) : -1;
    if (knob < 0)
        return bad(error, "knobs", "unknown knob '%.40s'", name != NULL ? name : "");
    const json_t *rules = json_object_get(row, "rules");
    if (!json_is_array(rules) || json_array_size(rules) > RULE_ROWS)
        return bad(error, name, "rules: expected a list of at most %d", RULE_ROWS);
    for (size_t i = 0; i < json_array_size(rules); i++) {
        char place[64];
        snprintf(place, sizeof place, "%s, rule %zu", name, i + 1);
        int rc = read_rule(json_array_get(rules, i), &knobs->rules[knob][i], place, error);
        if (rc != ATT_OK)
            return rc;
        knobs->rule_count[knob]++;
    }
    static const char *const lists[] = {"scopes", "read_back"};
    for (int k = 0; k < 2; k++) {
        const json_t *list = json_object_get(row, lists[k]);
        if (!json_is_array(list))
            return bad(error, name, "%s: expected a list", lists[k]);
        for (size_t i = 0; i < json_array_size(list); i++) {
            const json_t *one = json_array_get(list, i);
            att_knob_reach_t reach;
            int rc = read_reach(one, &reach, name, error);
            if (rc != ATT_OK)
                return rc;
            if (!json_is_string(json_object_get(one, "how")) ||
                (k == 0 && !json_is_string(json_object_get(one, "scope"))))
                return bad(error, name, "%s: an entry needs \"how\"", lists[k]);
        }
    }
    return ATT_OK;
}

static int read_order(att_knobs_t *knobs, const json_t *row, att_error_t *error)
{
    att_knob_reach_t reach;
    uint32_t changed;
    int rc = read_reach(row, &reach, "reduction_order", error);
    if (rc == ATT_OK)
        rc = read_words(row, "changed_by", att_knob_parse, ATT_KNOB_COUNT, &changed,
                        "reduction_order", error);
    if (rc != ATT_OK)
        return rc;
    for (int c = 0; c < ATT_COLLECTIVE_COUNT; c++)
        if (reach.collectives & 1u << c)
            knobs->order[c] = changed;
    return ATT_OK;
}

static int read_all(att_knobs_t *knobs, att_error_t *error)
{
    const json_t *root = knobs->document;
    if (json_integer_value(json_object_get(root, "version")) != 1)
        return att_fail(
            error, ATT_EVERSION,
            "knobs: this attune reads version 1 of the catalogue, the file has another");
    for (int c = 0; c < ATT_COLLECTIVE_COUNT; c++)
        knobs->order[c] = ~0u; /* what no row speaks of is taken to change it */
    knobs->pairs_why = json_string_value(json_object_get(root, "pairs_why"));
    const json_t *pairs = json_object_get(root, "pairs"), *list = json_object_get(root, "knobs"),
                 *order = json_object_get(root, "reduction_order");
    if (knobs->pairs_why == NULL || !json_is_array(pairs) || json_array_size(pairs) > PAIR_ROWS)
        return bad(error, "pairs", "expected pairs_why and a list of at most %d", PAIR_ROWS);
    int rc = ATT_OK;
    for (size_t i = 0; i < json_array_size(pairs) && rc == ATT_OK; i++, knobs->pair_count++)
        rc = read_reach(json_array_get(pairs, i), &knobs->pairs[i], "pairs", error);
    for (size_t i = 0; i < json_array_size(list) && rc == ATT_OK; i++)
        rc = read_knob(knobs, json_array_get(list, i), error);
    for (size_t i = 0; i < json_array_size(order) && rc == ATT_OK; i++)
        rc = read_order(knobs, json_array_get(order, i), error);
    return rc;
}

int att_knobs_parse(const char *bytes, size_t length, att_knobs_t **out, att_error_t *error)
{
    json_error_t place;
    json_t *document = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, &place);
    if (document == NULL)
        return att_fail(error, ATT_EINPUT, "knobs: no JSON: line %d, column %d", place.line,
                        place.column);
    att_knobs_t *knobs = calloc(1, sizeof *knobs);
    if (knobs == NULL) {
        json_decref(document);
        return att_fail(error, ATT_ENOMEM, "no memory for the catalogue of knobs");
    }
    knobs->document = document;
    int rc = read_all(knobs, error);
    if (rc != ATT_OK) {
        att_knobs_destroy(knobs);
        return rc;
    }
    *out = knobs;
    return ATT_OK;
}

void att_knobs_destroy(att_knobs_t *knobs)
{
    if (knobs == NULL)
        return;
    json_decref(knobs->document);
    free(knobs);
}

static att_knobs_t *installed;
static att_error_t installed_error;

static void load_installed(void)
{
    char path[PATH_MAX];
    if (att_data_find("knobs.json", path, NULL, &installed_error) != ATT_OK)
        return;
    FILE *file = fopen(path, "re");
    char *bytes = file != NULL ? malloc(1 << 20) : NULL;
    size_t length = bytes != NULL ? fread(bytes, 1, 1 << 20, file) : 0;
    att_error_t inner = {"cannot be read"};
    if (bytes == NULL || att_knobs_parse(bytes, length, &installed, &inner) != ATT_OK)
        att_fail(&installed_error, ATT_EINPUT, "%s: %.300s", path, inner.text);
    free(bytes);
    if (file != NULL)
        fclose(file);
}

const att_knobs_t *att_knobs_get(att_error_t *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_installed);
    if (installed == NULL && error != NULL)
        *error = installed_error;
    return installed;
}

/* --- answers ------------------------------------------------------------------------------- */
const json_t *att_knobs_document(const att_knobs_t *knobs)
{
    return knobs->document;
}

static bool in_versions(const att_knob_reach_t *reach, int version)
{
    return version == 0 ? reach->until == INT_MAX
                        : version >= reach->since && version <= reach->until;
}

uint32_t att_knobs_pairs(const att_knobs_t *knobs, int collective, int version)
{
    uint32_t pairs = 0;
    for (uint32_t i = 0; i < knobs->pair_count; i++) {
        const att_knob_reach_t *reach = &knobs->pairs[i];
        if (!in_versions(reach, version) || !(reach->collectives & 1u << collective))
            continue;
        for (int a = 0; a < ATT_ALGORITHM_COUNT; a++)
            if (reach->algorithms & 1u << a)
                pairs |= reach->protocols * ATT_PAIR_BIT(a, 0);
    }
    return pairs;
}

const att_knob_rule_t *att_knobs_rule(const att_knobs_t *knobs, int knob, int version,
                                      int collective, int algorithm, int protocol)
{
    for (uint32_t i = 0; i < knobs->rule_count[knob]; i++) {
        const att_knob_rule_t *rule = &knobs->rules[knob][i];
        if (in_versions(&rule->reach, version) && rule->reach.collectives & 1u << collective &&
            rule->reach.algorithms & 1u << algorithm && rule->reach.protocols & 1u << protocol)
            return rule;
    }
    return NULL;
}

static bool power_of_two(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

bool att_knob_rule_allows(const att_knob_rule_t *rule, uint64_t value)
{
    if (rule->never)
        return false;
    for (uint32_t i = 0; i < rule->value_count; i++)
        if (rule->values[i] == value)
            return true;
    if (rule->max == 0 || value < rule->min || value > rule->max)
        return false;
    if (rule->power_of_two_times != 0)
        return value % rule->power_of_two_times == 0 &&
               power_of_two(value / rule->power_of_two_times);
    return (value - rule->min) % rule->step == 0;
}

bool att_knobs_change_order(const att_knobs_t *knobs, int collective, int knob)
{
    return (knobs->order[collective] & 1u << knob) != 0;
}

/* How many of the knobs asked for pass, in order, and the rule of the one that stopped it. */
static int passed(const att_knobs_t *knobs, const att_knobs_question_t *q, int collective,
                  int algorithm, int protocol, att_knobs_answer_t *answer)
{
    if (!(att_knobs_pairs(knobs, collective, q->version) & ATT_PAIR_BIT(algorithm, protocol))) {
        answer->knob = ATT_KNOB_ALGORITHM;
        answer->why = knobs->pairs_why;
        answer->source = "";
        return 0;
    }
    for (int knob = ATT_KNOB_CHANNELS; knob < ATT_KNOB_COUNT; knob++) {
        const att_knob_rule_t *rule =
            q->set[knob] ? att_knobs_rule(knobs, knob, q->version, collective, algorithm, protocol)
                         : NULL;
        if (rule == NULL)
            continue;
        answer->knob = knob;
        answer->why = rule->why;
        answer->source = rule->source;
        if (!att_knob_rule_allows(rule, q->value[knob]))
            return knob;
    }
    return ATT_KNOB_COUNT;
}

void att_knobs_ask(const att_knobs_t *knobs, const att_knobs_question_t *q,
                   att_knobs_answer_t *answer)
{
    *answer = (att_knobs_answer_t){.knob = -1};
    int furthest = -1;
    for (int c = 0; c < ATT_COLLECTIVE_COUNT; c++)
        for (int a = 0; a < ATT_ALGORITHM_COUNT; a++)
            for (int p = 0; p < ATT_PROTOCOL_COUNT; p++) {
                if ((q->collective >= 0 && c != q->collective) ||
                    (q->algorithm >= 0 && a != q->algorithm) ||
                    (q->protocol >= 0 && p != q->protocol))
                    continue;
                att_knobs_answer_t one = {.knob = -1};
                int reached = passed(knobs, q, c, a, p, &one);
                if (reached == ATT_KNOB_COUNT)
                    answer->pairs |= ATT_PAIR_BIT(a, p);
                /* Ring first: a rule about values says more than that Tree has no choice. */
                if (reached > furthest || (reached == furthest && a == ATT_ALGORITHM_RING &&
                                           furthest != ATT_KNOB_COUNT)) {
                    furthest = reached;
                    answer->knob = one.knob;
                    answer->why = one.why;
                    answer->source = one.source;
                }
            }
    answer->legal = answer->pairs != 0;
}
