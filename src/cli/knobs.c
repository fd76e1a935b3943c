#include "cli/knobs.h"

#include "base/log.h"
#include "base/names.h"
#include "cli/json_file.h"
#include "search/knobs.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_help(void)
{
    printf(
        "Usage: attune knobs [--nccl VERSION] [--json]\n"
        "       attune knobs --check KEY=VALUE... [--json]\n\n"
        "Print the catalogue of knobs: which values NCCL takes for which version, collective,\n"
        "algorithm and protocol, where each can be set (for a call, a communicator, a process),\n"
        "how to read back what was used, what is unsafe, and what changes the order of\n"
        "additions. attune searches only what it allows.\n\n"
        "  --check         answer whether a combination is legal, and by which rule. Keys: nccl,\n"
        "                  collective, algorithm, protocol, transport, channels, threads, chunk,\n"
        "                  buffer (bytes; K, M, G). What is left open may be anything.\n"
        "  --nccl VERSION  only what holds for this NCCL, as 2.28.9\n"
        "  --json          as JSON; without --check the catalogue as it is\n\n"
        "  attune knobs --check nccl=2.28.9 collective=allreduce protocol=simple threads=480\n\n"
        "Exit status: 0 legal, or the catalogue was printed; 1 illegal; 2 wrong usage.\n");
}

/* --- text ---------------------------------------------------------------------------------- */
static const char *text_of(const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));
    return text != NULL ? text : "";
}

static bool holds_for(const json_t *row, int version)
{
    int since = 0, until = INT_MAX;
    att_nccl_version_parse(text_of(row, "since"), &since);
    att_nccl_version_parse(text_of(row, "until"), &until);
    return version == 0 || (version >= since && version <= until);
}

static void print_range(const json_t *row)
{
    if (json_object_get(row, "since") != NULL)
        printf(" since %s", text_of(row, "since"));
    if (json_object_get(row, "until") != NULL)
        printf(" until %s", text_of(row, "until"));
}

static void print_list(const json_t *row, const char *key, const char *before)
{
    const json_t *list = json_object_get(row, key);
    for (size_t i = 0; i < json_array_size(list); i++)
        printf("%s%s", i == 0 ? before : ",", json_string_value(json_array_get(list, i)));
}

static void print_ways(const json_t *knob, const char *key, const char *label, int version)
{
    const json_t *list = json_object_get(knob, key);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *way = json_array_get(list, i);
        if (!holds_for(way, version))
            continue;
        printf("  %-5s %-12s", label, text_of(way, "scope"));
        print_range(way);
        printf(": %s\n", text_of(way, "how"));
    }
}

static void print_knob(const json_t *knob, int version)
{
    printf("%s: %s\n", text_of(knob, "name"), text_of(knob, "help"));
    print_ways(knob, "scopes", "set", version);
    print_ways(knob, "read_back", "read", version);
    const json_t *rules = json_object_get(knob, "rules");
    for (size_t i = 0; i < json_array_size(rules); i++) {
        const json_t *rule = json_array_get(rules, i);
        if (!holds_for(rule, version))
            continue;
        printf("  rule ");
        print_list(rule, "collective", " ");
        print_list(rule, "algorithm", " ");
        print_list(rule, "protocol", " ");
        print_range(rule);
        printf(": %s (%s)\n", text_of(rule, "why"), text_of(rule, "source"));
    }
    putchar('\n');
}

static void print_catalogue(const json_t *root, int version)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(root, "knobs"), i, row) print_knob(row, version);
    printf("algorithms and protocols of each collective\n");
    json_array_foreach(json_object_get(root, "pairs"), i, row)
    {
        if (!holds_for(row, version))
            continue;
        print_list(row, "collective", "  ");
        print_list(row, "algorithm", ": ");
        print_list(row, "protocol", " with ");
        print_range(row);
        putchar('\n');
    }
    printf("\nunsafe\n");
    json_array_foreach(json_object_get(root, "unsafe"), i, row)
    {
        if (!holds_for(row, version))
            continue;
        printf("  %s:", text_of(row, "id"));
        print_range(row);
        printf(" %s: %s (%s)\n", text_of(row, "what"), text_of(row, "why"), text_of(row, "source"));
    }
    printf("\nwhat changes the order of additions (attune run --reproducible)\n");
    json_array_foreach(json_object_get(root, "reduction_order"), i, row)
    {
        print_list(row, "collective", "  ");
        if (json_array_size(json_object_get(row, "changed_by")) == 0)
            printf(": none");
        print_list(row, "changed_by", ": ");
        printf(": %s\n", text_of(row, "why"));
    }
    printf("\nfrom %s\n", text_of(root, "provenance"));
}

/* --- --check ------------------------------------------------------------------------------- */
static int take_word(const char *key, const char *value, int number,
                     const char *(*meant)(att_nearest_t *nearest, const char *word), int *into)
{
    if (number < 0) {
        att_nearest_t nearest;
        att_log(ATT_LOG_ERROR, "--check: %s=%.40s is no %s%s; attune knobs lists them", key, value,
                key, meant(&nearest, value));
        return -ATT_EUSAGE;
    }
    *into = number;
    return ATT_OK;
}

static int take_number(att_knobs_question_t *question, int knob, const char *value)
{
    bool bytes = knob == ATT_KNOB_CHUNK || knob == ATT_KNOB_BUFFER;
    char *end = NULL;
    uint64_t number = strtoull(value, &end, 10);
    bool good = value[0] >= '0' && value[0] <= '9' &&
                (bytes ? att_bytes_parse(value, &number) == ATT_OK : *end == '\0');
    if (!good) {
        att_log(ATT_LOG_ERROR, "--check: %s=%.40s: expected a whole number%s", att_knob_name(knob),
                value, bytes ? " of bytes, as 512K" : "");
        return -ATT_EUSAGE;
    }
    question->set[knob] = true;
    question->value[knob] = number;
    return ATT_OK;
}

static int refuse_key(const char *argument, const char *key)
{
    att_nearest_t nearest;
    att_nearest_init(&nearest, key);
    att_nearest_offer(&nearest, "nccl");
    att_nearest_offer(&nearest, "collective");
    for (int i = 0; i < ATT_KNOB_COUNT; i++)
        att_nearest_offer(&nearest, att_knob_name(i));
    att_log(ATT_LOG_ERROR,
            "--check: '%.60s'%s: expected nccl, collective, algorithm, protocol, transport, "
            "channels, threads, chunk or buffer, then =VALUE",
            argument, att_nearest_hint(&nearest));
    return -ATT_EUSAGE;
}

static int take_pair(att_knobs_question_t *question, const char *argument)
{
    const char *equals = strchr(argument, '=');
    char key[24] = "";
    if (equals != NULL && (size_t)(equals - argument) < sizeof key)
        memcpy(key, argument, (size_t)(equals - argument));
    const char *value = equals != NULL ? equals + 1 : "";
    if (strcmp(key, "nccl") == 0) {
        if (att_nccl_version_parse(value, &question->version) == ATT_OK)
            return ATT_OK;
        att_log(ATT_LOG_ERROR, "--check: nccl=%.40s: expected a version as 2.28.9", value);
        return -ATT_EUSAGE;
    }
    if (strcmp(key, "collective") == 0)
        return take_word(key, value, att_collective_parse(value), att_collective_nearest,
                         &question->collective);
    int knob = att_knob_parse(key);
    switch (knob) {
    case ATT_KNOB_ALGORITHM:
        return take_word(key, value, att_algorithm_parse(value), att_algorithm_nearest,
                         &question->algorithm);
    case ATT_KNOB_PROTOCOL:
        return take_word(key, value, att_protocol_parse(value), att_protocol_nearest,
                         &question->protocol);
    case ATT_KNOB_TRANSPORT:
        return take_word(key, value, att_transport_parse(value), att_transport_nearest,
                         &question->transport);
    case -1:
        return refuse_key(argument, key);
    default:
        return take_number(question, knob, value);
    }
}

static json_t *pairs_json(uint32_t pairs)
{
    json_t *list = json_array();
    for (int a = 0; a < ATT_ALGORITHM_COUNT; a++)
        for (int p = 0; p < ATT_PROTOCOL_COUNT; p++)
            if (pairs & ATT_PAIR_BIT(a, p)) {
                char text[40];
                snprintf(text, sizeof text, "%s/%s", att_algorithm_name(a), att_protocol_name(p));
                json_array_append_new(list, json_string(text));
            }
    return list;
}

static int check(const att_knobs_t *knobs, const att_knobs_question_t *question, bool as_json)
{
    att_knobs_answer_t answer;
    att_knobs_ask(knobs, question, &answer);
    json_t *pairs = pairs_json(answer.pairs);
    if (as_json) {
        json_t *root =
            json_pack("{s:i,s:b,s:s?,s:s?,s:s?,s:O}", "version", 1, "legal", (int)answer.legal,
                      "knob", answer.knob >= 0 ? att_knob_name(answer.knob) : NULL, "rule",
                      answer.why, "source", answer.source, "pairs", pairs);
        json_dumpf(root, stdout, JSON_INDENT(1));
        putchar('\n');
        json_decref(root);
    } else {
        printf("%s", answer.legal ? "legal" : "illegal");
        if (answer.why != NULL)
            printf(": %s", answer.why);
        if (answer.source != NULL && answer.source[0] != '\0')
            printf(" (%s)", answer.source);
        for (size_t i = 0; i < json_array_size(pairs); i++)
            printf("%s%s", i == 0 ? "; with " : ", ", json_string_value(json_array_get(pairs, i)));
        putchar('\n');
    }
    json_decref(pairs);
    return answer.legal ? ATT_OK : ATT_EFAIL;
}

int att_knobs_main(int argc, char **argv)
{
    bool as_json = false, checking = false, asked = false;
    int version = 0;
    att_knobs_question_t question = ATT_KNOBS_OPEN;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help();
            return ATT_OK;
        }
        if (strcmp(argv[i], "--json") == 0) {
            as_json = true;
        } else if (strcmp(argv[i], "--check") == 0) {
            checking = true;
        } else if (strcmp(argv[i], "--nccl") == 0 || strncmp(argv[i], "--nccl=", 7) == 0) {
            const char *value = argv[i][6] == '=' ? argv[i] + 7 : i + 1 < argc ? argv[++i] : "";
            if (att_nccl_version_parse(value, &version) != ATT_OK) {
                att_log(ATT_LOG_ERROR, "--nccl %.40s: expected a version as 2.28.9", value);
                return ATT_EUSAGE;
            }
        } else if (checking && argv[i][0] != '-') {
            asked = true;
            if (take_pair(&question, argv[i]) != ATT_OK)
                return ATT_EUSAGE;
        } else {
            att_nearest_t nearest;
            att_log(ATT_LOG_ERROR, "no option %.80s%s; attune knobs --help lists them", argv[i],
                    att_nearest_choice(&nearest, argv[i], "--json|--check|--nccl|--help"));
            return ATT_EUSAGE;
        }
    }
    if (checking && !asked) {
        att_log(ATT_LOG_ERROR, "--check what? attune knobs --check nccl=2.28.9 threads=480");
        return ATT_EUSAGE;
    }
    att_error_t error = {""};
    const att_knobs_t *knobs = att_knobs_get(&error);
    if (knobs == NULL) {
        att_log(ATT_LOG_ERROR, "%s", error.text);
        return ATT_ENOENT;
    }
    if (checking) {
        if (question.version == 0)
            question.version = version;
        return check(knobs, &question, as_json);
    }
    if (as_json) {
        json_dumpf(att_knobs_document(knobs), stdout, JSON_INDENT(1));
        putchar('\n');
    } else {
        print_catalogue(att_knobs_document(knobs), version);
    }
    return ATT_OK;
}
