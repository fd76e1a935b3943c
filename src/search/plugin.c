#include "search/plugin.h"

#include "base/nearest.h"
#include "search/options.h"
#include "search/probe.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int append(char **text, const char *folder)
{
    if (folder == NULL || folder[0] == '\0')
        return 0;
    char *longer;
    if (asprintf(&longer, "%s%s%s", *text, (*text)[0] ? ":" : "", folder) < 0)
        return -1;
    free(*text);
    *text = longer;
    return 0;
}

char *att_plugin_path(const char *path)
{
    char *text = strdup("");
    if (text == NULL)
        return NULL;
    char program[PATH_MAX], folder[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    int rc = append(&text, path) | append(&text, getenv("ATTUNE_PLUGIN_PATH"));
    if (n > 0) {
        program[n] = '\0';
        const char *bin = dirname(program);
        snprintf(folder, sizeof folder, "%s/../lib/attune", bin);
        rc |= append(&text, folder);
        if (strcmp(ATTUNE_LIBDIR, "lib") != 0) {
            snprintf(folder, sizeof folder, "%s/../" ATTUNE_LIBDIR "/attune", bin);
            rc |= append(&text, folder);
        }
    }
    if (rc != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* The <name> of .../libattune-strategy-<name>.so; false for any other file. */
static bool name_of(const char *file, char *name, size_t size)
{
    const char *slash = strrchr(file, '/');
    const char *base = slash != NULL ? slash + 1 : file;
    size_t length = strlen(base), prefix = strlen(ATT_PLUGIN_PREFIX),
           suffix = strlen(ATT_PLUGIN_SUFFIX);
    if (length <= prefix + suffix || length - prefix - suffix >= size ||
        strncmp(base, ATT_PLUGIN_PREFIX, prefix) != 0 ||
        strcmp(base + length - suffix, ATT_PLUGIN_SUFFIX) != 0)
        return false;
    memcpy(name, base + prefix, length - prefix - suffix);
    name[length - prefix - suffix] = '\0';
    return true;
}

static bool is_word(const char *text)
{
    if (text == NULL || text[0] == '\0')
        return false;
    for (; *text; text++)
        if (!islower((unsigned char)*text) && !isdigit((unsigned char)*text) && *text != '_')
            return false;
    return true;
}

static int check_parameters(const char *file, const att_strategy_t *s, att_error_t *error)
{
    if (s->parameter_count > ATT_PLUGIN_PARAMETERS)
        return att_fail(error, ATT_EPLUGIN, "%s: it has %u parameters, at most %d are allowed",
                        file, s->parameter_count, ATT_PLUGIN_PARAMETERS);
    if (s->parameter_count > 0 && s->parameters == NULL)
        return att_fail(error, ATT_EPLUGIN, "%s: it counts %u parameters but has no table", file,
                        s->parameter_count);
    for (uint32_t i = 0; i < s->parameter_count; i++) {
        const att_parameter_t *p = &s->parameters[i];
        if (!is_word(p->name))
            return att_fail(error, ATT_EPLUGIN, "%s: parameter %u has no name of a-z, 0-9 and _",
                            file, i);
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(s->parameters[k].name, p->name) == 0)
                return att_fail(error, ATT_EPLUGIN, "%s: parameter %s is there twice", file,
                                p->name);
        if (p->type > ATT_PARAMETER_STRING)
            return att_fail(error, ATT_EPLUGIN, "%s: parameter %s has the unknown type %u", file,
                            p->name, p->type);
        if (p->type == ATT_PARAMETER_CHOICE && (p->choices == NULL || p->choices[0] == '\0'))
            return att_fail(error, ATT_EPLUGIN, "%s: parameter %s has no choices", file, p->name);
        if (p->help == NULL || p->default_text == NULL)
            return att_fail(error, ATT_EPLUGIN, "%s: parameter %s has no %s", file, p->name,
                            p->help == NULL ? "help" : "default");
        att_error_t why;
        att_option_t value;
        if (att_option_parse(p, p->default_text, &value, &why) != ATT_OK)
            return att_fail(error, ATT_EPLUGIN, "%s: default of %s", file, why.text);
    }
    return ATT_OK;
}

static int check(const char *file, const char *name, const att_strategy_t *s, att_error_t *error)
{
    if (s->abi != ATT_STRATEGY_ABI)
        return att_fail(error, ATT_EVERSION,
                        "%s: it speaks strategy ABI %u, this attune understands %u", file, s->abi,
                        ATT_STRATEGY_ABI);
    if (s->size < ATT_STRATEGY_SIZE_LEAST)
        return att_fail(error, ATT_EPLUGIN,
                        "%s: its attune_strategy has %u bytes, ABI %u needs %zu", file, s->size,
                        ATT_STRATEGY_ABI, (size_t)ATT_STRATEGY_SIZE_LEAST);
    if (!is_word(s->name) || strlen(s->name) >= ATT_PLUGIN_NAME)
        return att_fail(error, ATT_EPLUGIN, "%s: its name is not of a-z, 0-9 and _", file);
    if (strcmp(s->name, name) != 0)
        return att_fail(error, ATT_EPLUGIN, "%s: it calls itself \"%s\", the file says \"%s\"",
                        file, s->name, name);
    if (s->version == NULL || s->description == NULL)
        return att_fail(error, ATT_EPLUGIN, "%s: it has no %s", file,
                        s->version == NULL ? "version" : "description");
    const char *missing = s->create == NULL    ? "create"
                          : s->ask == NULL     ? "ask"
                          : s->tell == NULL    ? "tell"
                          : s->best == NULL    ? "best"
                          : s->destroy == NULL ? "destroy"
                                               : NULL;
    if (missing != NULL)
        return att_fail(error, ATT_EPLUGIN, "%s: it lacks the op %s", file, missing);
    if ((s->save == NULL) != (s->load == NULL))
        return att_fail(error, ATT_EPLUGIN, "%s: it has only one of save and load", file);
    return check_parameters(file, s, error);
}

int att_plugin_load(const char *file, const att_strategy_t **strategy, att_error_t *error)
{
    char name[ATT_PLUGIN_NAME];
    if (!name_of(file, name, sizeof name))
        return att_fail(error, ATT_EPLUGIN,
                        "%s: not named " ATT_PLUGIN_PREFIX "<name>" ATT_PLUGIN_SUFFIX, file);
    if (access(file, R_OK) != 0)
        return att_fail(error, ATT_ENOENT, "%s: not there or not readable", file);
    /* A name without a slash would be looked for among the system's libraries. */
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s", strchr(file, '/') == NULL ? "./" : "", file);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == NULL)
        return att_fail(error, ATT_EPLUGIN, "cannot load: %s", dlerror());
    const att_strategy_t *found = dlsym(handle, ATT_STRATEGY_SYMBOL);
    int rc = found == NULL
                 ? att_fail(error, ATT_EPLUGIN, "%s: no symbol " ATT_STRATEGY_SYMBOL, file)
                 : check(file, name, found, error);
    dlclose(handle);
    if (rc == ATT_OK)
        *strategy = found;
    return rc;
}

static void try_file(void *file)
{
    const att_strategy_t *strategy;
    (void)att_plugin_load(file, &strategy, NULL);
}

int att_plugin_load_probed(const char *file, double deadline_s, const att_strategy_t **strategy,
                           att_error_t *error)
{
    char what[320];
    snprintf(what, sizeof what, "%.270s: when loaded it", file);
    int rc = att_probe(try_file, (void *)(uintptr_t)file, deadline_s, what, error);
    return rc == ATT_OK ? att_plugin_load(file, strategy, error) : rc;
}

/* Sorted file names of the strategies in one folder. Returns how many, 0 when unreadable. */
static int is_strategy(const struct dirent *entry)
{
    char name[ATT_PLUGIN_NAME];
    return name_of(entry->d_name, name, sizeof name);
}

typedef struct att_listing {
    att_plugin_fn each;
    void *context;
    char **names; /* seen so far */
    int count;
} att_listing_t;

static int list_one(att_listing_t *list, const char *folder, const char *base)
{
    char *file, name[ATT_PLUGIN_NAME];
    if (asprintf(&file, "%s/%s", folder, base) < 0)
        return -1;
    name_of(base, name, sizeof name);
    att_error_t why;
    att_plugin_entry_t entry = {.path = file};
    bool hidden = false;
    for (int i = 0; i < list->count; i++)
        hidden = hidden || strcmp(list->names[i], name) == 0;
    if (hidden) {
        (void)att_fail(&why, ATT_EPLUGIN, "%s: hidden by an earlier file of the same name", file);
        entry.refusal = why.text;
    } else if (att_plugin_load_probed(file, ATT_PROBE_DEADLINE_S, &entry.strategy, &why) !=
               ATT_OK) {
        entry.strategy = NULL;
        entry.refusal = why.text;
    }
    list->each(list->context, &entry);
    free(file);
    if (hidden)
        return 0;
    char **more = realloc(list->names, sizeof *more * (size_t)(list->count + 1));
    if (more == NULL)
        return -1;
    list->names = more;
    list->names[list->count] = strdup(name);
    return list->names[list->count] == NULL ? -1 : (list->count++, 0);
}

int att_plugin_each(const char *path, att_plugin_fn each, void *context, att_error_t *error)
{
    char *copy = strdup(path), *rest = copy;
    att_listing_t list = {.each = each, .context = context};
    int rc = copy == NULL ? -1 : 0;
    for (char *folder; rc == 0 && (folder = strsep(&rest, ":")) != NULL;) {
        struct dirent **entries;
        int count = folder[0] == '\0' ? 0 : scandir(folder, &entries, is_strategy, alphasort);
        for (int i = 0; i < count; i++) {
            if (rc == 0)
                rc = list_one(&list, folder, entries[i]->d_name);
            free(entries[i]);
        }
        if (count >= 0 && folder[0] != '\0')
            free(entries);
    }
    for (int i = 0; i < list.count; i++)
        free(list.names[i]);
    free(list.names);
    free(copy);
    return rc == 0 ? ATT_OK : att_fail(error, ATT_ENOMEM, "no memory to list strategies");
}

/* Names only, without loading anything, for the "not found" message. */
static void names_there(const char *path, char *text, size_t size, att_nearest_t *nearest)
{
    char *copy = strdup(path), *rest = copy;
    size_t n = 0;
    text[0] = '\0';
    for (char *folder; copy != NULL && (folder = strsep(&rest, ":")) != NULL;) {
        DIR *open = folder[0] != '\0' ? opendir(folder) : NULL;
        for (struct dirent *entry; open != NULL && (entry = readdir(open)) != NULL;) {
            char name[ATT_PLUGIN_NAME];
            if (!name_of(entry->d_name, name, sizeof name))
                continue;
            att_nearest_offer(nearest, name);
            if (n < size - 1)
                n += (size_t)snprintf(text + n, size - n, "%s%s", n ? ", " : "", name);
        }
        if (open != NULL)
            closedir(open);
    }
    free(copy);
}

int att_plugin_find(const char *path, const char *name, const att_strategy_t **strategy,
                    att_error_t *error)
{
    char *copy = strdup(path), *rest = copy, *file = NULL;
    if (copy == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory to find strategy %s", name);
    for (char *folder; file == NULL && (folder = strsep(&rest, ":")) != NULL;) {
        if (folder[0] == '\0')
            continue;
        if (asprintf(&file, "%s/" ATT_PLUGIN_PREFIX "%s" ATT_PLUGIN_SUFFIX, folder, name) < 0) {
            file = NULL;
            break;
        }
        if (access(file, F_OK) != 0) {
            free(file);
            file = NULL;
        }
    }
    free(copy);
    if (file == NULL) {
        char there[160];
        att_nearest_t nearest;
        att_nearest_init(&nearest, name);
        names_there(path, there, sizeof there, &nearest);
        return att_fail(error, ATT_ENOENT, "no strategy \"%s\"%s in %.200s (there: %s)", name,
                        att_nearest_hint(&nearest), path, there[0] ? there : "none");
    }
    int rc = att_plugin_load(file, strategy, error);
    free(file);
    return rc;
}
