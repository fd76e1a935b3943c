#include "cli/bench_setting.h"

#include "base/names.h"
#include "cli/places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLUGIN_FILE "libattune-bench-tuner.so"

struct att_bench_setting {
    att_bench_setting_table_t *table;
    int descriptor;
    bool variables_set;
};

/* ATTUNE_BENCH_TUNER, or lib/ beside the folder of this program (build tree and install tree). */
static int find_plugin(char *path, size_t size, att_error_t *error)
{
    const char *given = getenv("ATTUNE_BENCH_TUNER");
    if (given != NULL && given[0] != '\0') {
        if (access(given, R_OK) != 0)
            return att_fail_errno(error, "ATTUNE_BENCH_TUNER=%s", given);
        snprintf(path, size, "%s", given);
        return ATT_OK;
    }
    att_places_t places;
    int rc = att_places_find(&places, error);
    if (rc != 0)
        return rc;
    /* It lies beside the hook; `lib` beside the folder of the program where the hook is not built.
     */
    char *slash = strrchr(places.hook[0] != '\0' ? places.hook : places.program, '/');
    if (slash != NULL)
        *slash = '\0';
    snprintf(path, size, "%s%s/%s", places.hook[0] != '\0' ? places.hook : places.program,
             places.hook[0] != '\0' ? "" : "/../lib", PLUGIN_FILE);
    if (access(path, R_OK) == 0)
        return ATT_OK;
    return att_fail(error, ATT_ENOENT,
                    "fixed settings need %s, which is not there; set "
                    "ATTUNE_BENCH_TUNER",
                    path);
}

static int set_variables(int descriptor, att_error_t *error)
{
    char plugin[2 * PATH_MAX], file[32];
    int rc = find_plugin(plugin, sizeof plugin, error);
    if (rc != 0)
        return rc;
    const char *other = getenv("NCCL_TUNER_PLUGIN");
    if (other != NULL && other[0] != '\0' && strcmp(other, plugin) != 0)
        return att_fail(error, ATT_EBUSY,
                        "fixed settings need NCCL_TUNER_PLUGIN, which is set to %s: not under "
                        "attune run or with another tuner",
                        other);
    snprintf(file, sizeof file, "/proc/self/fd/%d", descriptor);
    setenv("NCCL_TUNER_PLUGIN", plugin, 1);
    setenv(ATT_BENCH_SETTING_VARIABLE, file, 1);
    return ATT_OK;
}

static int open_table(struct att_bench_setting *made, int inherited, att_error_t *error)
{
    made->descriptor = inherited >= 0 ? inherited : memfd_create("attune-bench-setting", 0);
    if (made->descriptor < 0)
        return att_fail_errno(error, "cannot create the table of settings");
    if (inherited < 0 && ftruncate(made->descriptor, sizeof *made->table) != 0)
        return att_fail_errno(error, "cannot size the table of settings");
    struct stat status;
    if (fstat(made->descriptor, &status) != 0 || status.st_size != sizeof *made->table)
        return att_fail(error, ATT_EVERSION,
                        "descriptor %d is not this version's table of "
                        "settings",
                        made->descriptor);
    made->table =
        mmap(NULL, sizeof *made->table, PROT_READ | PROT_WRITE, MAP_SHARED, made->descriptor, 0);
    if (made->table == MAP_FAILED) {
        made->table = NULL;
        return att_fail_errno(error, "cannot map the table of settings");
    }
    return ATT_OK;
}

int att_bench_setting_open(int descriptor, struct att_bench_setting **setting, att_error_t *error)
{
    struct att_bench_setting *made = calloc(1, sizeof *made);
    if (made == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for the table of settings");
    int rc = open_table(made, descriptor, error);
    if (rc == 0 && descriptor < 0) {
        made->table->abi = ATT_BENCH_SETTING_ABI;
        made->table->size = sizeof *made->table;
        att_bench_setting_apply(made, ATT_SETTING_KEEP);
    }
    if (rc == 0)
        rc = set_variables(made->descriptor, error);
    made->variables_set = rc == 0;
    if (rc != 0) {
        att_bench_setting_close(made);
        return rc;
    }
    *setting = made;
    return ATT_OK;
}

void att_bench_setting_close(struct att_bench_setting *setting)
{
    if (setting == NULL)
        return;
    if (setting->variables_set) {
        unsetenv("NCCL_TUNER_PLUGIN");
        unsetenv(ATT_BENCH_SETTING_VARIABLE);
    }
    if (setting->table != NULL)
        munmap(setting->table, sizeof *setting->table);
    if (setting->descriptor >= 0)
        close(setting->descriptor);
    free(setting);
}

int att_bench_setting_descriptor(const struct att_bench_setting *setting)
{
    return setting->descriptor;
}

att_bench_setting_table_t *att_bench_setting_table(struct att_bench_setting *setting)
{
    return setting->table;
}

void att_bench_setting_apply(struct att_bench_setting *setting, att_setting_t value)
{
    att_bench_setting_table_t *table = setting->table;
    table->setting = value;
    atomic_store(&table->decisions, 0);
    atomic_store(&table->refused, 0);
    atomic_store(&table->legal_pairs, UINT32_MAX);
    atomic_store(&table->native_pair, -1);
    atomic_store(&table->chunk_calls, 0);
}

/* "ring/simple"; else -ATT_EUSAGE, with a hint when only one of the two is no word of NCCL's. */
static int parse_pair(const char *word, att_setting_t *setting, att_nearest_t *nearest)
{
    char copy[128], *rest;
    snprintf(copy, sizeof copy, "%s", word);
    const char *algorithm = strtok_r(copy, "/", &rest);
    const char *protocol = strtok_r(NULL, "/", &rest);
    if (algorithm == NULL || protocol == NULL || strtok_r(NULL, "/", &rest) != NULL)
        return -ATT_EUSAGE;
    int a = att_algorithm_parse(algorithm), p = att_protocol_parse(protocol);
    if (a < 0 && p >= 0)
        att_algorithm_nearest(nearest, algorithm);
    else if (a >= 0 && p < 0)
        att_protocol_nearest(nearest, protocol);
    if (a < 0 || p < 0)
        return -ATT_EUSAGE;
    setting->algorithm = (int8_t)a;
    setting->protocol = (int8_t)p;
    return ATT_OK;
}

int att_bench_setting_parse(const char *text, att_setting_t *setting, att_error_t *error)
{
    char copy[128];
    att_setting_t made = ATT_SETTING_KEEP;
    snprintf(copy, sizeof copy, "%s", text);
    char *rest;
    int words = 0;
    att_nearest_t nearest;
    att_nearest_init(&nearest, "");
    for (char *word = strtok_r(copy, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest), words++) {
        uint64_t number;
        if (words == 0 && strcmp(word, "keep") == 0)
            continue;
        if (words == 0 && parse_pair(word, &made, &nearest) == 0)
            continue;
        if (strncmp(word, "ch=", 3) == 0 && att_bytes_parse(word + 3, &number) == 0 &&
            number >= 1 && number <= 64) {
            made.channels = (uint16_t)number;
            continue;
        }
        if (strncmp(word, "chunk=", 6) == 0 && att_bytes_parse(word + 6, &number) == 0 &&
            number >= 16 && number <= 16u << 20) {
            made.chunk_bytes = (uint32_t)number;
            continue;
        }
        return att_fail(error, ATT_EUSAGE,
                        "setting '%s': '%s' is not understood%s; expected for example "
                        "'ring/simple ch=8 chunk=128K' (threads and transport cannot be fixed per "
                        "call)",
                        text, word, att_nearest_hint(&nearest));
    }
    if (words == 0)
        return att_fail(error, ATT_EUSAGE,
                        "setting '': expected for example "
                        "'ring/simple ch=8 chunk=128K' or keep");
    *setting = made;
    return ATT_OK;
}
