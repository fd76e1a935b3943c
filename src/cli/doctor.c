#include "cli/doctor.h"

#include "base/log.h"
#include "base/nearest.h"
#include "base/one_line.h"
#include "cli/json_file.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const status_names[] = {"pass", "warn", "fail", "skip"};

void att_doctor_add(att_doctor_t *d, const char *id, att_check_status_t status, const char *remedy,
                    const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    d->fails += status == ATT_CHECK_FAIL;
    json_array_append_new(d->checks,
                          json_pack("{s:s,s:s,s:o,s:s?}", "id", id, "status", status_names[status],
                                    "what", att_json_text(text), "remedy", remedy));
}

bool att_doctor_line(const att_doctor_t *d, const char *path, char *line, size_t size)
{
    char whole[2 * PATH_MAX];
    snprintf(whole, sizeof whole, "%s%s", d->root, path);
    FILE *file = fopen(whole, "re");
    if (file == NULL)
        return false;
    bool got = fgets(line, (int)size, file) != NULL;
    fclose(file);
    if (got)
        line[strcspn(line, "\n")] = '\0';
    return got;
}

const char *att_doctor_variable(const att_doctor_t *d, const char *name)
{
    const char *value = getenv(name);
    if (value == NULL)
        value = json_string_value(json_object_get(d->conf, name));
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* NAME=VALUE lines; NCCL puts what is not yet set into its environment (src/misc/param.cc
 * setEnvFile). */
static void read_conf(att_doctor_t *d, const char *path)
{
    char line[1024];
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *equals = strchr(line, '=');
        if (line[0] == '#' || equals == NULL)
            continue;
        *equals = '\0';
        if (json_object_get(d->conf, line) == NULL)
            json_object_set_new(d->conf, line, att_json_text(equals + 1));
    }
    fclose(file);
}

static void read_confs(att_doctor_t *d)
{
    char path[2 * PATH_MAX];
    const char *home = getenv("HOME"), *named = getenv("NCCL_CONF_FILE");
    if (named != NULL && named[0] != '\0') {
        read_conf(d, named);
    } else if (home != NULL && d->root[0] == '\0') {
        snprintf(path, sizeof path, "%s/.nccl.conf", home);
        read_conf(d, path);
    }
    snprintf(path, sizeof path, "%s/etc/nccl.conf", d->root);
    read_conf(d, path);
}

static void print_text(const att_doctor_t *d)
{
    size_t i;
    json_t *row;
    json_array_foreach(d->checks, i, row)
    {
        const char *remedy = json_string_value(json_object_get(row, "remedy"));
        char what[ATT_ONE_LINE];
        printf("%s  %s: %s\n", json_string_value(json_object_get(row, "status")),
               json_string_value(json_object_get(row, "id")),
               att_one_line(json_string_value(json_object_get(row, "what")), what, sizeof what));
        if (remedy != NULL)
            printf("      %s\n", remedy);
    }
    printf("\nknobs\n");
    json_array_foreach(d->capabilities, i, row)
    {
        const char *since = json_string_value(json_object_get(row, "since"));
        printf("%-4s  %-10s per %s%s%s: %s\n",
               json_is_true(json_object_get(row, "available")) ? "yes" : "no",
               json_string_value(json_object_get(row, "knob")),
               json_string_value(json_object_get(row, "scope")), since != NULL ? " since " : "",
               since != NULL ? since : "", json_string_value(json_object_get(row, "why")));
    }
}

static void print_help(void)
{
    printf(
        "Usage: attune doctor [--json] [--seconds S] [--root DIR] [--variants LIST]\n"
        "                     [--variants-memory BYTES] [-- command [argument...]]\n\n"
        "Say why attune is active or not, and check what NCCL's tuning guide asks of a machine.\n"
        "Each check passes, warns, fails or is skipped, with the remedy; then, per knob, whether\n"
        "it can be tuned with the NCCL found, and why.\n\n"
        "With a command: it is started, watched until it and its children have loaded NCCL, and\n"
        "then ended; its output goes to standard error. Without: the NCCL that the loader finds,\n"
        "and those of pip.\n\n"
        "  --json       {\"version\":1,\"checks\":[...],\"capabilities\":[...]}\n"
        "  --seconds S  watch the command for at most S seconds (default 20)\n"
        "  --root DIR   look at DIR/proc, DIR/sys, DIR/etc and DIR/usr: a container's image\n"
        "  --variants LIST, --variants-memory BYTES\n"
        "               as for attune run: can these be made, and what do they cost; also from\n"
        "               ATTUNE_VARIANTS and ATTUNE_VARIANTS_MEMORY\n\n"
        "Exit status: 0 when no check failed; 1 when one did; 2 wrong usage.\n");
}

/* --variants and --variants-memory; the former may be repeated. */
static int set_variants(att_doctor_t *d, const char *flag, const char *value, att_error_t *error)
{
    char list[1024];
    bool more = strcmp(flag, "--variants") == 0 && d->variants_given;
    if (strcmp(flag, "--variants") == 0)
        d->variants_given = true;
    snprintf(list, sizeof list, "%.500s%s%.500s", more ? d->config.variants : "", more ? ";" : "",
             value);
    return att_config_set(&d->config, flag + 2, list, flag, error);
}

static const char *const words[] = {"--root", "--seconds", "--variants", "--variants-memory",
                                    "--json", "--help",    NULL};
#define WITH_VALUE 4 /* the first ones */

static bool takes_value(const char *word)
{
    for (size_t i = 0; i < WITH_VALUE; i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

static bool set_root(att_doctor_t *d, const char *folder)
{
    struct stat status;
    if (stat(folder, &status) != 0 || !S_ISDIR(status.st_mode)) {
        att_log(ATT_LOG_ERROR, "--root %.200s: there is no such folder", folder);
        return false;
    }
    d->root = folder;
    return true;
}

/* 0 to go on, 1 after help, -1 when usage is wrong (said). */
static int read_arguments(att_doctor_t *d, int argc, char **argv, bool *as_json)
{
    att_error_t error = {""};
    for (int i = 1; i < argc; i++) {
        char *end = NULL;
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help();
            return 1;
        }
        if (takes_value(argv[i]) && i + 1 == argc) {
            att_log(ATT_LOG_ERROR, "%s needs a value", argv[i]);
            return -1;
        }
        if (strcmp(argv[i], "--json") == 0) {
            *as_json = true;
        } else if (strcmp(argv[i], "--root") == 0) {
            if (!set_root(d, argv[++i]))
                return -1;
        } else if (strcmp(argv[i], "--seconds") == 0) {
            d->seconds = strtod(argv[++i], &end);
            if (end == argv[i] || *end != '\0' || !(d->seconds > 0 && d->seconds <= 3600)) {
                att_log(ATT_LOG_ERROR,
                        "--seconds %.40s: expected seconds, above 0 and at most 3600", argv[i]);
                return -1;
            }
        } else if (strcmp(argv[i], "--variants") == 0 ||
                   strcmp(argv[i], "--variants-memory") == 0) {
            if (set_variants(d, argv[i], argv[i + 1], &error) != ATT_OK) {
                att_log(ATT_LOG_ERROR, "%s", error.text);
                return -1;
            }
            i++;
        } else if (strcmp(argv[i], "--") == 0) {
            if (i + 1 == argc) {
                att_log(ATT_LOG_ERROR, "no command behind --");
                return -1;
            }
            d->command = argv + i + 1;
            return 0;
        } else {
            att_nearest_t nearest;
            att_log(ATT_LOG_ERROR, "no option %.80s%s; attune doctor --help lists them%s", argv[i],
                    att_nearest_of(&nearest, argv[i], words),
                    argv[i][0] != '-' ? "; a command stands behind --" : "");
            return -1;
        }
    }
    return 0;
}

int att_doctor_main(int argc, char **argv)
{
    att_doctor_t *d = calloc(1, sizeof *d);
    if (d == NULL)
        return ATT_ENOMEM;
    d->root = "";
    d->seconds = 20;
    bool as_json = false;
    att_error_t error = {""};
    if (att_config_init(&d->config, &error) != ATT_OK) {
        att_log(ATT_LOG_ERROR, "%s", error.text);
        free(d);
        return ATT_EUSAGE;
    }
    int stop = read_arguments(d, argc, argv, &as_json), code = ATT_OK;
    if (stop == 0 && att_places_find(&d->places, &error) != ATT_OK) {
        att_log(ATT_LOG_ERROR, "%s", error.text);
        code = ATT_ESYSTEM;
    } else if (stop == 0) {
        d->checks = json_array();
        d->capabilities = json_array();
        d->conf = json_object();
        read_confs(d);
        att_doctor_nccl(d);
        att_doctor_parts(d);
        att_doctor_machine(d);
        if (as_json) {
            json_t *root = json_pack("{s:i,s:O,s:O}", "version", 1, "checks", d->checks,
                                     "capabilities", d->capabilities);
            json_dumpf(root, stdout, JSON_INDENT(1));
            putchar('\n');
            json_decref(root);
        } else {
            print_text(d);
        }
        code = d->fails > 0 ? ATT_EFAIL : ATT_OK;
        json_decref(d->checks);
        json_decref(d->capabilities);
        json_decref(d->conf);
    }
    att_config_free(&d->config);
    free(d);
    return stop < 0 ? ATT_EUSAGE : code;
}
