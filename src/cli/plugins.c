#include "cli/plugins.h"

#include "base/config.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/one_line.h"
#include "cli/json_file.h"
#include "cli/plugin_check.h"
#include "search/strategy_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct listing {
    json_t *strategies, *refused; /* NULL: print as text */
    int accepted;
} listing_t;

static const char *type_name(uint32_t type)
{
    static const char *const names[] = {"int", "real", "bool", "choice", "string"};
    return type < sizeof names / sizeof names[0] ? names[type] : "unknown";
}

static void print_strategy(const att_plugin_entry_t *entry)
{
    const att_strategy_t *s = entry->strategy;
    printf("%s %s: %s\n", s->name, s->version, s->description);
    for (uint32_t i = 0; i < s->parameter_count; i++) {
        const att_parameter_t *p = &s->parameters[i];
        printf("    %s=%s  (%s%s%s)  %s\n", p->name, p->default_text, type_name(p->type),
               p->choices != NULL ? " " : "", p->choices != NULL ? p->choices : "", p->help);
    }
    printf("    file %s\n", entry->path);
}

static json_t *strategy_json(const att_plugin_entry_t *entry)
{
    const att_strategy_t *s = entry->strategy;
    json_t *parameters = json_array();
    for (uint32_t i = 0; i < s->parameter_count; i++) {
        const att_parameter_t *p = &s->parameters[i];
        json_array_append_new(parameters,
                              json_pack("{s:s,s:s,s:s,s:s?,s:s}", "name", p->name, "type",
                                        type_name(p->type), "default", p->default_text, "choices",
                                        p->choices, "help", p->help));
    }
    return json_pack("{s:s,s:s,s:s,s:i,s:o,s:o}", "name", s->name, "version", s->version,
                     "description", s->description, "abi", (int)s->abi, "path",
                     att_json_text(entry->path), "parameters", parameters);
}

static void each(void *context, const att_plugin_entry_t *entry)
{
    listing_t *listing = context;
    char line[ATT_ONE_LINE];
    listing->accepted += entry->strategy != NULL;
    if (listing->strategies == NULL) {
        if (entry->strategy != NULL)
            print_strategy(entry);
        else
            printf("refused: %s\n", att_one_line(entry->refusal, line, sizeof line));
    } else if (entry->strategy != NULL) {
        json_array_append_new(listing->strategies, strategy_json(entry));
    } else {
        json_array_append_new(listing->refused,
                              json_pack("{s:o,s:o}", "path", att_json_text(entry->path), "reason",
                                        att_json_text(entry->refusal)));
    }
}

static void print_help(void)
{
    printf(
        "Usage: attune plugins [--plugin-path DIR[:DIR...]] [--json]\n"
        "       attune plugins check FILE.so [--options key=value,...] [--deadline S] [--json]\n\n"
        "List the search strategies with their parameters, and every file that was refused with\n"
        "the reason. Use one as: attune run --strategy NAME:key=value,... -- command\n\n"
        "  --plugin-path DIR[:DIR...]  folders searched first; ATTUNE_PLUGIN_PATH\n"
        "  --json                      as JSON\n\n"
        "check: the conformance test for the author of a strategy: does it load, ask legal "
        "settings\n"
        "only, ask the same under the same seed, go on when trials fail, and answer in time? It "
        "runs\n"
        "in a process of its own, so that a crash or a hang is one line of the result.\n\n"
        "  --options key=value,...     parameters of the strategy\n"
        "  --deadline S                longest time of an answer in seconds (default 10)\n\n"
        "Exit status: 0; 1 when there is no strategy at all, or check found a failure; 2 wrong\n"
        "usage.\n");
}

/* Returns the path option and whether JSON was asked for; -1 when usage is wrong (said), 1 after
 * help, else 0. */
static int read_arguments(int argc, char **argv, const char **path, int *as_json)
{
    static const char flag[] = "--plugin-path";
    size_t length = sizeof flag - 1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            *as_json = 1;
        } else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help();
            return 1;
        } else if (strcmp(argv[i], flag) == 0 && i + 1 < argc) {
            *path = argv[++i];
        } else if (strncmp(argv[i], flag, length) == 0 && argv[i][length] == '=') {
            *path = argv[i] + length + 1;
        } else if (strcmp(argv[i], flag) == 0) {
            att_log(ATT_LOG_ERROR, "--plugin-path needs a value: DIR[:DIR...]");
            return -1;
        } else {
            att_nearest_t nearest;
            att_log(ATT_LOG_ERROR, "no option %.80s%s; attune plugins --help lists them", argv[i],
                    att_nearest_choice(&nearest, argv[i], "--plugin-path|--json|--help|check"));
            return -1;
        }
    }
    return 0;
}

/* The value of a flag, as "--flag value" or "--flag=value"; NULL when this is another argument. */
static const char *value_of(int argc, char **argv, int *i, const char *flag)
{
    size_t length = strlen(flag);
    if (strncmp(argv[*i], flag, length) == 0 && argv[*i][length] == '=')
        return argv[*i] + length + 1;
    return strcmp(argv[*i], flag) == 0 && *i + 1 < argc ? argv[++*i] : NULL;
}

static int check_main(int argc, char **argv)
{
    att_plugin_check_t check = {.options = "", .deadline_s = 10};
    for (int i = 2; i < argc; i++) {
        const char *value;
        char *end = NULL;
        if ((value = value_of(argc, argv, &i, "--options")) != NULL) {
            check.options = value;
        } else if ((value = value_of(argc, argv, &i, "--deadline")) != NULL) {
            check.deadline_s = strtod(value, &end);
            if (end == value || *end != '\0' || !(check.deadline_s > 0)) {
                att_log(ATT_LOG_ERROR, "--deadline %.40s: expected seconds above 0", value);
                return ATT_EUSAGE;
            }
        } else if (strcmp(argv[i], "--json") == 0) {
            check.as_json = 1;
        } else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help();
            return ATT_OK;
        } else if (argv[i][0] != '-' && check.file == NULL) {
            check.file = argv[i];
        } else if (strcmp(argv[i], "--options") == 0 || strcmp(argv[i], "--deadline") == 0) {
            att_log(ATT_LOG_ERROR, "%s needs a value: %s", argv[i],
                    argv[i][2] == 'o' ? "key=value,..." : "S");
            return ATT_EUSAGE;
        } else {
            att_nearest_t nearest;
            att_log(ATT_LOG_ERROR, "no option %.80s%s; attune plugins --help lists them", argv[i],
                    att_nearest_choice(&nearest, argv[i], "--options|--deadline|--json|--help"));
            return ATT_EUSAGE;
        }
    }
    if (check.file == NULL) {
        att_log(ATT_LOG_ERROR, "which file? attune plugins check libattune-strategy-NAME.so");
        return ATT_EUSAGE;
    }
    att_error_t error;
    int rc = att_plugin_check_run(&check, &error);
    if (rc < 0)
        att_log(ATT_LOG_ERROR, "%s", error.text);
    return rc < 0 ? -rc : rc > 0 ? ATT_EFAIL : ATT_OK;
}

int att_plugins_main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "check") == 0)
        return check_main(argc, argv);
    const char *path = NULL;
    int as_json = 0;
    int stop = read_arguments(argc, argv, &path, &as_json);
    if (stop != 0)
        return stop > 0 ? 0 : ATT_EUSAGE;
    listing_t listing = {0};
    if (as_json) {
        listing.strategies = json_array();
        listing.refused = json_array();
    }
    att_error_t error = {""};
    int rc = att_strategy_host_list(path, each, &listing, &error);
    if (rc != ATT_OK) {
        att_log(ATT_LOG_ERROR, "%s", error.text);
        json_decref(listing.strategies);
        json_decref(listing.refused);
        return -rc;
    }
    if (as_json) {
        json_t *root = json_pack("{s:i,s:i,s:o,s:o}", "version", 1, "abi", (int)ATT_STRATEGY_ABI,
                                 "strategies", listing.strategies, "refused", listing.refused);
        json_dumpf(root, stdout, JSON_INDENT(1));
        putchar('\n');
        json_decref(root);
    } else if (listing.accepted == 0) {
        att_log(ATT_LOG_ERROR, "no strategy was found; --plugin-path names folders with "
                               "libattune-strategy-NAME.so");
    }
    return listing.accepted == 0 ? ATT_EFAIL : ATT_OK;
}
