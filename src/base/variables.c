#include "base/variables.h"

#include "base/config.h"
#include "base/log.h"
#include "base/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PREFIX        "ATTUNE_"
#define PREFIX_LENGTH (sizeof PREFIX - 1)
#define NAME_ROOM     81

/* Behind the prefix. A test compares the first two lists with what the sources read. */
static const char *const read_elsewhere[] = {"CHAIN_PROFILER",
                                             "CHAIN_TUNER",
                                             "CLOCK_INJECT",
                                             "DATA_DIR",
                                             "DISABLE",
                                             "FABRIC_ANY_RANKS",
                                             "FABRIC_CHANNELS",
                                             "FABRIC_DRIFT",
                                             "FABRIC_INJECT_MISMATCH",
                                             "FABRIC_KEEP_GOING",
                                             "FABRIC_NOISE",
                                             "FABRIC_SEED",
                                             "FABRIC_SHM_DIR",
                                             "FABRIC_TRANSPORT",
                                             "FABRIC_VERSION",
                                             "FAULT",
                                             "FAULT_TARGET",
                                             "NCCL_LIB",
                                             NULL};
static const char *const of_scripts[] = {
    "ARROWS_TREE",    "BUILD",        "FUZZ_SECONDS", "LATE_SECONDS", "MATRIX_DIR",
    "NCCL_LIB_SAVED", "NCCL_SOCKETS", "TALLY",        "TARGET",       NULL};
static const char *const of_module_files[] = {"DIR", "HOME", "PREFIX", "ROOT", "VERSION", NULL};
static const char *const families[] = {"BENCH_", "TEST_"};

static bool is_among(const char *const *names, const char *name)
{
    for (; *names != NULL; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

static bool is_known(const char *name)
{
    for (size_t i = 0; i < att_option_row_count; i++)
        if (strcmp(att_option_rows[i].variable + PREFIX_LENGTH, name) == 0)
            return true;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strncmp(name, families[i], strlen(families[i])) == 0)
            return true;
    return is_among(read_elsewhere, name) || is_among(of_scripts, name) ||
           is_among(of_module_files, name);
}

/* Not every variable is called like its flag: ATTUNE_FABRIC was meant to be ATTUNE_FABRIC_MODE. */
static bool is_flag(const char *flag, const char *name)
{
    for (; *flag != '\0' && *name != '\0'; flag++, name++)
        if ((*flag == '-' ? '_' : toupper((unsigned char)*flag)) != *name)
            return false;
    return *flag == *name;
}

/* What is behind the prefix is compared: the prefix alone makes nothing alike. */
static const char *meant(const char *name, char *best, size_t size)
{
    att_nearest_t nearest;
    for (size_t i = 0; i < att_option_row_count; i++)
        if (is_flag(att_option_rows[i].flag, name)) {
            snprintf(best, size, "%s", att_option_rows[i].variable);
            return best;
        }
    att_nearest_init(&nearest, name);
    for (size_t i = 0; i < att_option_row_count; i++)
        att_nearest_offer(&nearest, att_option_rows[i].variable + PREFIX_LENGTH);
    for (size_t i = 0; read_elsewhere[i] != NULL; i++)
        att_nearest_offer(&nearest, read_elsewhere[i]);
    if (nearest.best[0] == '\0')
        return NULL;
    snprintf(best, size, PREFIX "%s", nearest.best);
    return best;
}

size_t att_variables_unknown(const char *const *environment, att_unknown_variable_fn each,
                             void *context)
{
    size_t count = 0;
    for (; *environment != NULL; environment++) {
        char name[NAME_ROOM], best[NAME_ROOM], hint[NAME_ROOM + 24] = "";
        const char *equals = strchr(*environment, '=');
        if (strncmp(*environment, PREFIX, PREFIX_LENGTH) != 0 || equals == NULL ||
            equals[1] == '\0')
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(equals - *environment), *environment);
        if (is_known(name + PREFIX_LENGTH))
            continue;
        if (meant(name + PREFIX_LENGTH, best, sizeof best) != NULL)
            snprintf(hint, sizeof hint, " (did you mean '%s'?)", best);
        each(context, name, hint);
        count++;
    }
    return count;
}

static void warn(void *context, const char *name, const char *hint)
{
    att_log(ATT_LOG_WARN, "%s is no variable of attune%s and has no effect", name, hint);
}

void att_variables_warn(void)
{
    att_variables_unknown((const char *const *)environ, warn, NULL);
}
