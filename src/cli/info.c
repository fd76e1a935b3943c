#include "cli/info.h"

#include "attune/strategy.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/segment.h"
#include "cli/counters_list.h"
#include "cli/json_file.h"
#include "cli/places.h"
#include "search/plugin.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_MAX (4 * PATH_MAX)

static const char *type_name(att_option_type_t type)
{
    static const char *const names[] = {"string", "int",     "real",   "bool",
                                        "bytes",  "percent", "factor", "choice"};
    return (size_t)type < sizeof names / sizeof names[0] ? names[type] : "unknown";
}

static json_t *option_json(const att_config_t *config, const att_option_row_t *row)
{
    char value[VALUE_MAX];
    json_t *programs = json_array();
    if ((row->programs & ATT_FOR_RUN) != 0)
        json_array_append_new(programs, json_string("attune run"));
    if ((row->programs & ATT_FOR_AGENT) != 0)
        json_array_append_new(programs, json_string("attuned"));
    return json_pack("{s:s,s:s,s:s,s:s?,s:s?,s:s,s:o,s:s,s:s,s:o}", "flag", row->flag, "variable",
                     row->variable, "type", type_name(row->type), "argument", row->argument,
                     "accepts", row->accepts, "default", row->fallback, "value",
                     att_json_text(att_config_text(config, row, value, sizeof value)), "section",
                     row->section, "help", row->help, "programs", programs);
}

/* What is not there is null. */
static json_t *path_json(const char *path)
{
    return path[0] != '\0' ? att_json_text(path) : json_null();
}

static json_t *paths_json(const att_config_t *config)
{
    att_places_t places;
    if (att_places_find(&places, NULL) != ATT_OK)
        return json_object();
    char *strategies = att_plugin_path(config->plugin_path);
    json_t *paths = json_pack("{s:o,s:o,s:o,s:o,s:o}", "attune", path_json(places.program),
                              "attuned", path_json(places.sidecar), "nccl_plugin",
                              path_json(places.hook), "fabric", path_json(places.fabric),
                              "strategies", path_json(strategies != NULL ? strategies : ""));
    free(strategies);
    return paths;
}

json_t *att_info_json(const att_config_t *config)
{
    json_t *options = json_array();
    for (size_t i = 0; i < att_option_row_count; i++)
        json_array_append_new(options, option_json(config, &att_option_rows[i]));
    char papi[240];
    return json_pack("{s:i,s:s,s:{s:i,s:i,s:s,s:s},s:s,s:o,s:o}", "version", 1, "attune",
                     ATTUNE_VERSION, "abi", "strategy", (int)ATT_STRATEGY_ABI, "segment",
                     (int)ATT_SEGMENT_LAYOUT, "nccl_tuner", "v2 v3 v4 v5 v6", "nccl_profiler",
                     "v4 v5 v6", "counters", att_counters_papi_text(papi, sizeof papi), "paths",
                     paths_json(config), "options", options);
}

static void print_options(const att_config_t *config, FILE *out)
{
    char value[VALUE_MAX];
    const char *section = "";
    for (size_t i = 0; i < att_option_row_count; i++) {
        const att_option_row_t *row = &att_option_rows[i];
        if (strcmp(section, row->section) != 0)
            fprintf(out, "%s%s\n", i > 0 ? "\n" : "", row->section);
        section = row->section;
        att_config_text(config, row, value, sizeof value);
        fprintf(out, "  --%s%s%s  (%s%s%s)\n      %s\n      %s=%s%s\n", row->flag,
                row->argument != NULL ? " " : "", row->argument != NULL ? row->argument : "",
                type_name(row->type), row->accepts != NULL ? " " : "",
                row->accepts != NULL ? row->accepts : "", row->help, row->variable, value,
                strcmp(value, row->fallback) == 0 ? " (default)" : "");
        if (strcmp(value, row->fallback) != 0)
            fprintf(out, "      default %s\n", row->fallback[0] != '\0' ? row->fallback : "empty");
    }
}

static void print_path(const char *what, const char *path)
{
    printf("  %-12s %s\n", what, path[0] != '\0' ? path : "not found");
}

static void print_text(const att_config_t *config)
{
    att_places_t places;
    char papi[240];
    printf("attune %s\n", ATTUNE_VERSION);
    printf("  strategy ABI %u, segment layout %u, NCCL tuner v2 to v6, NCCL profiler v4 to v6\n",
           ATT_STRATEGY_ABI, ATT_SEGMENT_LAYOUT);
    printf("  counters: %s\n\n", att_counters_papi_text(papi, sizeof papi));
    if (att_places_find(&places, NULL) == ATT_OK) {
        char *strategies = att_plugin_path(config->plugin_path);
        printf("Paths\n");
        print_path("attune", places.program);
        print_path("attuned", places.sidecar);
        print_path("NCCL plugin", places.hook);
        print_path("host fabric", places.fabric);
        print_path("strategies", strategies != NULL ? strategies : "");
        printf("\n");
        free(strategies);
    }
    print_options(config, stdout);
}

/* man(7) text: '-' and '\' escaped, a leading '.' or '\'' shielded. */
static void man_text(FILE *out, const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", out);
    for (; *text != '\0'; text++)
        if (*text == '-')
            fputs("\\-", out);
        else if (*text == '\\')
            fputs("\\e", out);
        else
            fputc(*text, out);
}

void att_info_man(FILE *out)
{
    const char *section = "";
    for (size_t i = 0; i < att_option_row_count; i++) {
        const att_option_row_t *row = &att_option_rows[i];
        if ((row->programs & ATT_FOR_RUN) == 0)
            continue;
        if (strcmp(section, row->section) != 0)
            fprintf(out, ".SS %s\n", row->section);
        section = row->section;
        fputs(".TP\n.B ", out);
        fputs("\\-\\-", out);
        man_text(out, row->flag);
        if (row->argument != NULL) {
            fputs(" \\fI", out);
            man_text(out, row->argument);
            fputs("\\fR", out);
        }
        fputc('\n', out);
        man_text(out, row->help);
        fputs(".\n", out);
        if (row->accepts != NULL) {
            fputs("One of ", out);
            man_text(out, row->accepts);
            fputs(".\n", out);
        }
        fputs("Default: ", out);
        man_text(out, row->fallback[0] != '\0' ? row->fallback : "empty");
        fputs(".\nVariable:\n.BR ", out);
        man_text(out, row->variable);
        fputs(" .\n", out);
    }
}

static void print_help(void)
{
    printf("Usage: attune info [--json] [--options] [--man] [--counters]\n\n"
           "Show version, ABI versions, where the parts lie, and every option with its variable,\n"
           "default and current value (from the environment).\n\n"
           "  --json     as JSON\n"
           "  --options  the options alone\n"
           "  --man      the options as the source of the man page's OPTIONS section\n"
           "  --counters what can be counted on this machine (of ATTUNE_COUNTERS, or the usual\n"
           "             events), what a read costs, and what cannot be counted and why\n");
}

int att_info_main(int argc, char **argv)
{
    static const char *const words[] = {"--json",     "--options", "--man",
                                        "--counters", "--help",    NULL};
    bool as_json = false, options = false, man = false, counters = false;
    for (int i = 1; i < argc; i++) {
        att_nearest_t nearest;
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help();
            return 0;
        }
        as_json |= strcmp(argv[i], "--json") == 0;
        options |= strcmp(argv[i], "--options") == 0;
        man |= strcmp(argv[i], "--man") == 0;
        counters |= strcmp(argv[i], "--counters") == 0;
        if (strcmp(argv[i], "--json") != 0 && strcmp(argv[i], "--options") != 0 &&
            strcmp(argv[i], "--man") != 0 && strcmp(argv[i], "--counters") != 0) {
            att_log(ATT_LOG_ERROR, "no option %.80s%s; attune info --help lists them", argv[i],
                    att_nearest_of(&nearest, argv[i], words));
            return ATT_EUSAGE;
        }
    }
    if (man) {
        att_info_man(stdout);
        return 0;
    }
    att_config_t config;
    att_error_t error = {""};
    int rc = att_config_init(&config, &error);
    if (rc != ATT_OK) {
        att_log(ATT_LOG_ERROR, "%s", error.text);
        return -rc;
    }
    if (counters) {
        rc = -att_counters_list(config.counters, stdout);
    } else if (as_json) {
        json_t *root = att_info_json(&config);
        json_dumpf(options ? json_object_get(root, "options") : root, stdout, JSON_INDENT(1));
        putchar('\n');
        json_decref(root);
    } else if (options) {
        print_options(&config, stdout);
    } else {
        print_text(&config);
    }
    att_config_free(&config);
    return -rc;
}
