#include "cli/surfaces.h"

#include "base/log.h"
#include "base/names.h"
#include "cli/json_file.h"
#include "cli/refused_option.h"
#include "surface/file.h"
#include "surface/shape.h"
#include "surface/surface.h"

#include <dirent.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_TOLERANCE 0.02

typedef struct options {
    bool shapes, json, headed; /* headed: the column heads have been printed */
    double tolerance;          /* below 0: from the surface's noise */
} options_t;

/* What is said of one task under one load. */
typedef struct entry {
    const struct att_surface *surface;
    const char *load;
    int collective, load_index;
    uint64_t bytes;
    double native_us, best_us;
    att_setting_t best;
    uint64_t settings; /* recorded; 0: modelled */
    uint64_t again;    /* of these measured again */
    double tolerance;
    att_shape_count_t shape[ATT_SHAPE_KNOBS];
} entry_t;

static void print_help(FILE *out)
{
    fputs(
        "usage: attune surfaces [NAME|FILE...] [options]\n"
        "  Reads surfaces, the shipped ones without a name, and says of each task and load: "
        "NCCL's\n  choice, the optimum, and how many settings were recorded. A file that is no "
        "surface gets\n  one line that says why.\n\n"
        "  --shapes           also the share of lines (one of channels, threads, chunk varied, "
        "all\n                     else fixed) that are not unimodal, and not so by more than the "
        "tolerance\n"
        "  --tolerance SHARE  of a bump (default twice the recorded noise, 0.02 at least)\n"
        "  --json             as JSON\n"
        "  --help             this text\n\n"
        "Exit status: 0, or that of the last surface that could not be read.\n",
        out);
}

static int look(const options_t *options, entry_t *e, att_error_t *error)
{
    const att_surface_info_t *info = att_surface_info(e->surface);
    size_t count;
    const att_surface_point_t *points =
        att_surface_points(e->surface, e->collective, e->bytes, &count);
    e->settings = count;
    for (size_t i = 0; i < count; i++)
        e->again += points[i].again_count > 0;
    e->native_us = att_surface_duration_us(e->surface, e->collective, e->bytes, ATT_SETTING_KEEP,
                                           e->load_index);
    e->best_us =
        att_surface_optimum(e->surface, e->collective, e->bytes, e->load_index, 0, &e->best);
    e->tolerance = options->tolerance >= 0              ? options->tolerance
                   : info->kind == ATT_SURFACE_RECORDED ? fmax(2 * info->noise, LEAST_TOLERANCE)
                                                        : LEAST_TOLERANCE;
    if (!options->shapes)
        return ATT_OK;
    return att_surface_shape(e->surface, e->collective, e->bytes, e->load_index, e->tolerance,
                             e->shape, error);
}

static void print_heads(options_t *options)
{
    if (options->headed)
        return;
    options->headed = true;
    printf("# %-32s %-13s %6s %5s %-6s %8s%s\n", "surface", "collective", "bytes", "ranks", "load",
           "settings",
           options->shapes ? "  knob, lines, share not unimodal: at all, beyond the tolerance"
                           : "  default us  optimum us   gain  optimum");
}

static void print_entry(options_t *options, const entry_t *e)
{
    print_heads(options);
    char bytes[24], text[ATT_SETTING_TEXT], settings[32] = "model";
    const att_surface_info_t *info = att_surface_info(e->surface);
    if (e->settings > 0)
        snprintf(settings, sizeof settings, "%llu", (unsigned long long)e->settings);
    printf("%-34s %-13s %6s %5d %-6s %8s", info->name, att_collective_name(e->collective),
           att_bytes_text(e->bytes, bytes, sizeof bytes), info->ranks, e->load, settings);
    if (options->shapes) {
        for (int knob = 0; knob < ATT_SHAPE_KNOBS; knob++) {
            const att_shape_count_t *c = &e->shape[knob];
            if (knob == ATT_SHAPE_THREADS && c->lines == 0)
                continue;
            printf("  %s %4u lines %5.1f %% %5.1f %%",
                   knob == ATT_SHAPE_CHANNELS  ? "ch"
                   : knob == ATT_SHAPE_THREADS ? "thr"
                                               : "chunk",
                   c->lines, c->lines > 0 ? 100.0 * c->bent / c->lines : 0,
                   c->lines > 0 ? 100.0 * c->bent_more / c->lines : 0);
        }
        printf("  (%.1f %%)\n", 100 * e->tolerance);
        return;
    }
    printf(" %11.2f %11.2f %6.3f  %s\n", e->native_us, e->best_us, e->native_us / e->best_us,
           att_setting_text(e->best, text, sizeof text));
}

static json_t *shape_json(const entry_t *e)
{
    static const char *const names[] = {"channels", "threads", "chunk"};
    json_t *shape = json_pack("{s:f}", "tolerance", e->tolerance);
    for (int knob = 0; knob < ATT_SHAPE_KNOBS; knob++)
        json_object_set_new(
            shape, names[knob],
            json_pack("{s:i, s:i, s:i, s:f}", "lines", (int)e->shape[knob].lines, "not_unimodal",
                      (int)e->shape[knob].bent, "not_unimodal_beyond_tolerance",
                      (int)e->shape[knob].bent_more, "largest_bump", e->shape[knob].worst));
    return shape;
}

static json_t *entry_json(const options_t *options, const entry_t *e)
{
    char text[ATT_SETTING_TEXT];
    const att_surface_info_t *info = att_surface_info(e->surface);
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:i, s:i, s:s, s:f, s:I, s:I, s:f, s:f, s:s}", "surface",
        info->name, "description", info->description, "kind",
        info->kind == ATT_SURFACE_RECORDED ? "recorded" : "modelled", "collective",
        att_collective_name(e->collective), "bytes", (json_int_t)e->bytes, "ranks", info->ranks,
        "nodes", info->nodes, "load", e->load, "noise", info->noise, "settings",
        (json_int_t)e->settings, "measured_again", (json_int_t)e->again, "default_us", e->native_us,
        "optimum_us", e->best_us, "optimum", att_setting_text(e->best, text, sizeof text));
    if (object != NULL && options->shapes)
        json_object_set_new(object, "shape", shape_json(e));
    return object;
}

static int show(options_t *options, const char *name, json_t *list)
{
    struct att_surface *surface;
    att_error_t error = {""};
    int rc = att_surface_open(name, &surface, &error);
    const att_surface_info_t *info = rc == ATT_OK ? att_surface_info(surface) : NULL;
    for (int t = 0; rc == ATT_OK && t < info->task_count; t++)
        for (int load = 0; rc == ATT_OK && load < info->load_count; load++) {
            entry_t e = {.surface = surface,
                         .load = info->loads[load],
                         .load_index = load,
                         .collective = info->tasks[t].collective,
                         .bytes = info->tasks[t].bytes};
            rc = look(options, &e, &error);
            if (rc == ATT_OK && list != NULL)
                json_array_append_new(list, entry_json(options, &e));
            else if (rc == ATT_OK)
                print_entry(options, &e);
        }
    if (rc != ATT_OK)
        att_log(ATT_LOG_ERROR, "%s", error.text);
    if (info != NULL)
        att_surface_close(surface);
    return rc;
}

static int is_surface_file(const struct dirent *entry)
{
    static const char *const endings[] = {".json", ".json.gz", ".csv"};
    size_t n = strlen(entry->d_name);
    for (int i = 0; i < 3; i++) {
        size_t m = strlen(endings[i]);
        if (n > m && entry->d_name[0] != '.' && strcmp(entry->d_name + n - m, endings[i]) == 0)
            return 1;
    }
    return 0;
}

/* Everything in the first folder that is there. */
static int show_shipped(options_t *options, json_t *list)
{
    char folders[ATT_SURFACE_FOLDERS][PATH_MAX], looked[2 * PATH_MAX];
    struct dirent **entries;
    int rc = ATT_OK;
    uint32_t folder_count = att_surface_folders(folders);
    for (uint32_t i = 0; i < folder_count; i++) {
        int count = scandir(folders[i], &entries, is_surface_file, alphasort);
        if (count < 0)
            continue;
        for (int k = 0; k < count; k++) {
            char path[4096];
            snprintf(path, sizeof path, "%s/%s", folders[i], entries[k]->d_name);
            int one = show(options, path, list);
            rc = one != ATT_OK ? one : rc;
            free(entries[k]);
        }
        free(entries);
        return rc;
    }
    att_data_list(folders, folder_count, looked, sizeof looked);
    att_log(ATT_LOG_ERROR, "no folder of surfaces: looked for %s", looked);
    return -ATT_ENOENT;
}

static int parse(options_t *o, int argc, char **argv)
{
    static const struct option longs[] = {{"shapes", no_argument, NULL, 's'},
                                          {"tolerance", required_argument, NULL, 't'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    int code;
    char *end;
    char name[ATT_REFUSED_OPTION];
    att_nearest_t nearest;
    optind = 1;
    opterr = 0;
    while ((code = getopt_long(argc, argv, "h", longs, NULL)) != -1)
        switch (code) {
        case 's':
            o->shapes = true;
            break;
        case 'j':
            o->json = true;
            break;
        case 't':
            o->tolerance = strtod(optarg, &end);
            if (end == optarg || *end != '\0' || !(o->tolerance >= 0 && o->tolerance <= 10)) {
                att_log(ATT_LOG_ERROR, "--tolerance '%.40s': expected a share, such as 0.02",
                        optarg);
                return -ATT_EUSAGE;
            }
            break;
        case 'h':
            return 1;
        default:
            att_log(ATT_LOG_ERROR,
                    "'%.60s' is not understood%s or needs a value; see attune "
                    "surfaces --help",
                    att_refused_option(argv, name),
                    att_refused_option_nearest(&nearest, argv, longs));
            return -ATT_EUSAGE;
        }
    return ATT_OK;
}

int att_surfaces_main(int argc, char **argv)
{
    options_t options = {.tolerance = -1};
    int rc = parse(&options, argc, argv);
    if (rc > 0) {
        print_help(stdout);
        return 0;
    }
    if (rc != ATT_OK)
        return -rc;
    json_t *list = options.json ? json_array() : NULL;
    for (int i = optind; i < argc; i++) {
        int one = show(&options, argv[i], list);
        rc = one != ATT_OK ? one : rc;
    }
    if (optind == argc)
        rc = show_shipped(&options, list);
    if (list != NULL) {
        json_t *root =
            json_pack("{s:i, s:{s:s}, s:o}", "version", 1, "units", "time", "us", "surfaces", list);
        json_dumpf(root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
        printf("\n");
        json_decref(root);
    }
    return -rc;
}
