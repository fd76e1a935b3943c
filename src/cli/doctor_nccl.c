/* Which NCCL, what it can, and what forbids attune to use it. */
#include "cli/doctor.h"

#include "base/pins.h"
#include "base/segment.h"
#include "search/knobs.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OLDEST_TUNED   22203 /* cost table, NCCL 2.22.3 */
#define OLDEST_PLUGINS 22703 /* the profiler's init tells the rank, NCCL 2.27.3 */
#define PATHLESS       22703 /* src/plugin/plugin_open.cc of it: lib<...>.so or a word */
#define OLDEST_CAPTURE 22803 /* the profiler tells which calls are captured, NCCL 2.28.3 */

typedef struct probe {
    int version;
    int pnccl, fabric;
    char path[PATH_MAX];
} probe_t;

/* In a child: NCCL's constructors, or a library for another machine, are not our matter. */
static bool ask_library(const char *file, probe_t *answer)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        int nothing = open("/dev/null", O_RDWR);
        dup2(nothing, 1);
        dup2(nothing, 2);
        probe_t p = {0};
        void *handle = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
        int (*get_version)(int *) =
            handle != NULL ? (int (*)(int *))dlsym(handle, "ncclGetVersion") : NULL;
        Dl_info info;
        if (get_version == NULL || get_version(&p.version) != 0 ||
            dladdr((void *)get_version, &info) == 0)
            _exit(1);
        p.fabric = dlsym(handle, "ncclFabricNow") != NULL;
        p.pnccl = dlsym(handle, "pncclAllReduce") != NULL;
        char *real = realpath(info.dli_fname, NULL);
        snprintf(p.path, sizeof p.path, "%s", real != NULL ? real : info.dli_fname);
        _exit(write(ends[1], &p, sizeof p) == (ssize_t)sizeof p ? 0 : 1);
    }
    close(ends[1]);
    bool got = child > 0 && read(ends[0], answer, sizeof *answer) == (ssize_t)sizeof *answer;
    close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    return got;
}

int att_doctor_copy(att_doctor_t *d, const char *path, const char *found)
{
    char *real = realpath(path, NULL);
    const char *name = real != NULL ? real : path;
    int at = -1;
    for (int i = 0; i < d->copy_count; i++)
        if (strcmp(d->copies[i].path, name) == 0)
            at = i;
    if (at < 0 && d->copy_count < ATT_DOCTOR_COPIES) {
        at = d->copy_count++;
        att_nccl_copy_t *copy = &d->copies[at];
        snprintf(copy->path, sizeof copy->path, "%s", name);
        copy->found = found;
        probe_t probe;
        if (strcmp(found, "static") != 0 && ask_library(name, &probe)) {
            copy->version = probe.version;
            copy->pnccl = probe.pnccl != 0;
            copy->fabric = probe.fabric != 0;
        }
    }
    free(real);
    return at;
}

static void find_pip(att_doctor_t *d)
{
    static const char *const places[] = {"/usr/lib/python3*/*-packages",
                                         "/usr/local/lib/python3*/*-packages",
                                         "/opt/*/lib/python3*/site-packages"};
    static const char *const prefixes[] = {"VIRTUAL_ENV", "CONDA_PREFIX", "HOME"};
    char pattern[2 * PATH_MAX];
    for (int i = 0; i < 6; i++) {
        const char *prefix = i >= 3 ? getenv(prefixes[i - 3]) : d->root;
        if (prefix == NULL || (i >= 3 && d->root[0] != '\0'))
            continue;
        const char *below = i < 3   ? places[i]
                            : i < 5 ? "/lib/python3*/site-packages"
                                    : "/.local/lib/python3*/site-packages";
        snprintf(pattern, sizeof pattern, "%s%s/nvidia/nccl/lib/libnccl.so.2", prefix, below);
        glob_t found;
        if (glob(pattern, 0, NULL, &found) == 0)
            for (size_t k = 0; k < found.gl_pathc; k++)
                att_doctor_copy(d, found.gl_pathv[k], "pip");
        globfree(&found);
    }
}

static const char *version_of(const att_nccl_copy_t *copy, char text[16])
{
    return copy->version != 0 ? att_nccl_version_text(copy->version, text, 16) : "?";
}

static void check_copies(att_doctor_t *d)
{
    char list[900] = "", text[16];
    bool differ = false, has_static = false;
    for (int i = 0; i < d->copy_count; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s %s (%s)", i > 0 ? ", " : "",
                 version_of(&d->copies[i], text), d->copies[i].path, d->copies[i].found);
        differ |= d->copies[i].version != d->copies[0].version;
        has_static |= strcmp(d->copies[i].found, "static") == 0;
    }
    if (d->copy_count == 0) {
        att_doctor_add(d, "nccl", ATT_CHECK_WARN,
                       "attune doctor -- COMMAND looks at what the command itself loads",
                       "no NCCL is found by the loader or pip");
        return;
    }
    if (d->mixed)
        att_doctor_add(d, "nccl", ATT_CHECK_FAIL,
                       "have one NCCL in a process: which one a call reaches is not known",
                       "one process has several: %s", list);
    else if (has_static)
        att_doctor_add(d, "nccl", ATT_CHECK_WARN,
                       "the plugins load all the same, but a preload has no effect on a static "
                       "NCCL: attune run --no-graphs, when the job captures no CUDA graphs",
                       "linked statically: %s", list);
    else
        att_doctor_add(d, "nccl", ATT_CHECK_PASS, NULL, "%s", list);
    if (d->copy_count > 1)
        att_doctor_add(d, "nccl-copies", differ ? ATT_CHECK_WARN : ATT_CHECK_PASS,
                       differ ? "make the pip package and the system's the same version, or name "
                                "one folder first in LD_LIBRARY_PATH, on every node alike"
                              : NULL,
                       "%d copies of %s", d->copy_count,
                       differ ? "different versions" : "one version");
}

static void check_version(att_doctor_t *d)
{
    char text[16];
    if (d->version == 0) {
        att_doctor_add(d, "nccl-version", ATT_CHECK_SKIP, NULL, "no NCCL answered for its version");
        return;
    }
    att_nccl_version_text(d->version, text, sizeof text);
    if (d->version < OLDEST_TUNED)
        att_doctor_add(d, "nccl-version", ATT_CHECK_FAIL,
                       "use NCCL 2.27.3 or newer; 2.30.3 for all that can be set per call",
                       "%s has no cost table for a tuner (since 2.22.3): nothing is tuned", text);
    else if (d->version < OLDEST_PLUGINS)
        att_doctor_add(d, "nccl-version", ATT_CHECK_WARN,
                       "use NCCL 2.27.3 or newer, whose profiler tells the rank",
                       "%s does not tell a plugin its rank: communicators are not tuned by the "
                       "plugins alone",
                       text);
    else if (d->version < OLDEST_CAPTURE)
        att_doctor_add(d, "nccl-version", ATT_CHECK_WARN,
                       "attune run --no-graphs, when the job captures no CUDA graphs; or NCCL "
                       "2.28.3",
                       "%s does not tell which calls go into a CUDA graph: not tuned without the "
                       "user's word",
                       text);
    else
        att_doctor_add(d, "nccl-version", ATT_CHECK_PASS, NULL, "%s", text);
}

/* The newest ABI that NCCL of this version looks for and the hook has; 0 none. */
static int common_abi(const att_doctor_t *d, const json_t *plugins, const char *kind, void *hook)
{
    int best = 0;
    size_t i;
    json_t *row;
    json_array_foreach(plugins, i, row)
    {
        const char *is = json_string_value(json_object_get(row, "kind"));
        const char *from = json_string_value(json_object_get(row, "since"));
        const char *to = json_string_value(json_object_get(row, "until"));
        int since = 0, until = INT_MAX, abi = (int)json_integer_value(json_object_get(row, "abi"));
        if (is == NULL || strcmp(is, kind) != 0 || from == NULL)
            continue;
        att_nccl_version_parse(from, &since);
        if (to != NULL)
            att_nccl_version_parse(to, &until);
        char symbol[48];
        snprintf(symbol, sizeof symbol, "%s_v%d",
                 strcmp(kind, "tuner") == 0 ? "ncclTunerPlugin" : "ncclProfiler", abi);
        if (d->version >= since && d->version <= until && abi > best && dlsym(hook, symbol) != NULL)
            best = abi;
    }
    return best;
}

static void check_symbols(att_doctor_t *d, const att_knobs_t *knobs)
{
    void *hook = d->places.hook[0] != '\0' ? dlopen(d->places.hook, RTLD_LAZY | RTLD_LOCAL) : NULL;
    if (hook == NULL) {
        att_doctor_add(d, "plugin", ATT_CHECK_FAIL, "install attune again, or build the hook",
                       "the NCCL plugin cannot be loaded: %s",
                       d->places.hook[0] != '\0' ? dlerror() : d->places.hook_searched);
        return;
    }
    if (d->version == 0) {
        att_doctor_add(d, "plugin", ATT_CHECK_SKIP, NULL,
                       "%s; which of its symbols NCCL takes depends on the version",
                       d->places.hook);
        return;
    }
    const json_t *plugins = json_object_get(att_knobs_document(knobs), "plugins");
    int tuner = common_abi(d, plugins, "tuner", hook);
    int profiler = common_abi(d, plugins, "profiler", hook);
    if (tuner == 0 || profiler == 0)
        att_doctor_add(d, "plugin", ATT_CHECK_FAIL, "use NCCL 2.27.3 or newer",
                       "%s has no %s symbol that this NCCL looks for", d->places.hook,
                       tuner == 0 ? "tuner" : "profiler");
    else if (d->version == PATHLESS)
        att_doctor_add(
            d, "plugin", ATT_CHECK_WARN,
            "use NCCL 2.27.5 or newer; or put the hook's folder into LD_LIBRARY_PATH and "
            "set NCCL_TUNER_PLUGIN and NCCL_PROFILER_PLUGIN to libattune-nccl.so, which "
            "attune run keeps",
            "NCCL 2.27.3 takes plugins by their file's name alone, not by %s", d->places.hook);
    else
        att_doctor_add(d, "plugin", ATT_CHECK_PASS, NULL,
                       "%s: ncclTunerPlugin_v%d, ncclProfiler_v%d", d->places.hook, tuner,
                       profiler);
}

static uint32_t check_pins(att_doctor_t *d, char names[ATT_KNOB_COUNT][64])
{
    static const int knob_of[] = {ATT_KNOB_ALGORITHM, ATT_KNOB_PROTOCOL, ATT_KNOB_TRANSPORT,
                                  ATT_KNOB_CHANNELS,  ATT_KNOB_THREADS,  ATT_KNOB_CHUNK};
    char list[600] = "";
    uint32_t pins = 0, pin;
    const char *name;
    for (size_t i = 0; (name = att_pins_variable(i, &pin)) != NULL; i++) {
        const char *value = att_doctor_variable(d, name);
        if (value == NULL)
            continue;
        pins |= pin;
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s=%.60s%s", used > 0 ? ", " : "", name, value,
                 getenv(name) == NULL ? " (nccl.conf)" : "");
        for (size_t k = 0; k < sizeof knob_of / sizeof *knob_of; k++)
            if (pin == 1u << k)
                snprintf(names[knob_of[k]], 64, "%s", name);
    }
    if (pins != 0)
        att_doctor_add(d, "pinned", ATT_CHECK_WARN,
                       "unset them, for attune to search these knobs: a user's choice wins",
                       "set: %s", list);
    else
        att_doctor_add(d, "pinned", ATT_CHECK_PASS, NULL,
                       "no NCCL variable forces a knob that attune could search");
    return pins;
}

static void add_capability(att_doctor_t *d, const char *knob, const char *scope, const char *since,
                           bool available, const char *why)
{
    json_array_append_new(d->capabilities,
                          json_pack("{s:s,s:s,s:s?,s:b,s:s}", "knob", knob, "scope", scope, "since",
                                    since, "available", (int)available, "why", why));
}

/* The finest scope that this NCCL offers; attune tunes what can be set per call. */
static void list_capabilities(att_doctor_t *d, const att_knobs_t *knobs,
                              char names[ATT_KNOB_COUNT][64])
{
    const json_t *list = json_object_get(att_knobs_document(knobs), "knobs");
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *knob = json_array_get(list, k), *best = NULL;
        const char *name = json_string_value(json_object_get(knob, "name")), *next = NULL;
        const json_t *scopes = json_object_get(knob, "scopes");
        for (size_t i = 0; i < json_array_size(scopes) && best == NULL; i++) {
            const json_t *scope = json_array_get(scopes, i);
            const char *from = json_string_value(json_object_get(scope, "since"));
            int since = 0;
            if (from != NULL)
                att_nccl_version_parse(from, &since);
            if (d->version != 0 && d->version >= since)
                best = scope;
            else if (next == NULL)
                next = from;
        }
        if (best == NULL) {
            add_capability(d, name, "none", next, false,
                           d->version == 0 ? "no NCCL was found" : "this NCCL is too old");
            continue;
        }
        const char *scope = json_string_value(json_object_get(best, "scope"));
        const char *since = json_string_value(json_object_get(best, "since"));
        const char *how = json_string_value(json_object_get(best, "how"));
        int id = att_knob_parse(name);
        char why[300];
        bool call = strcmp(scope, "call") == 0;
        bool pinned = names[id][0] != '\0';
        bool variant = (id == ATT_KNOB_THREADS && d->variant_threads) ||
                       (id == ATT_KNOB_CHUNK && d->variant_buffers) ||
                       (id == ATT_KNOB_TRANSPORT && d->variant_transports);
        if (pinned)
            snprintf(why, sizeof why, "%s is set by the user", names[id]);
        else if (variant)
            snprintf(why, sizeof why, "by communicator variants (--variants)");
        else if (call)
            snprintf(why, sizeof why, "%s", how);
        else
            snprintf(why, sizeof why, "not per call%s%s; %s",
                     next != NULL ? ", finer only since " : "", next != NULL ? next : "", how);
        add_capability(d, name, variant ? "communicator" : scope, since,
                       (call || variant) && !pinned, why);
    }
}

void att_doctor_nccl(att_doctor_t *d)
{
    att_error_t error = {""};
    const att_knobs_t *knobs = att_knobs_get(&error);
    if (knobs == NULL)
        att_doctor_add(d, "catalogue", ATT_CHECK_FAIL, "install attune again", "%s", error.text);
    if (d->command != NULL)
        att_doctor_watch(d);
    probe_t probe;
    if (d->root[0] == '\0' && ask_library("libnccl.so.2", &probe))
        att_doctor_copy(d, probe.path, "loader");
    find_pip(d);
    for (int i = 0; i < d->copy_count && d->version == 0; i++)
        d->version = d->copies[i].version;
    check_copies(d);
    check_version(d);
    char names[ATT_KNOB_COUNT][64] = {""};
    check_pins(d, names);
    att_doctor_variants(d);
    if (knobs != NULL) {
        check_symbols(d, knobs);
        list_capabilities(d, knobs, names);
    }
}
