/*
 * table: puts the summaries of several runs together in one file and one table.
 *
 * usage: demo_table OUT.json PUBLISHED.json RUN-FOLDER...
 *
 * OUT.json has the form of a run's own summary.json. Fails when a run has no task, when ranks used
 * different settings for one call, when a result was wrong, or when either was not checked.
 */
#include "base/names.h"
#include "cli/json_file.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define FILE_LIMIT (4u << 20)

static int complaints;

static void complain(const char *run, const char *what)
{
    fprintf(stderr, "%s: %s\n", run, what);
    complaints++;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

static double number_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* The published row of a run's surface and load, NULL without one. */
static const json_t *published_row(const json_t *published, const json_t *run)
{
    size_t i;
    const json_t *row;
    json_array_foreach(json_object_get(published, "rows"), i, row)
    {
        if (strcmp(text_of(row, "surface"), text_of(run, "surface")) == 0 &&
            strcmp(text_of(row, "load"), text_of(run, "load")) == 0)
            return row;
    }
    return NULL;
}

static const char *gbs_text(double gbs, char text[16])
{
    if (gbs <= 0)
        return "-";
    snprintf(text, 16, gbs < 1 ? "%.4f" : "%.2f", gbs);
    return text;
}

/* A search that did not end with the job: NCCL's choice is in force, and not kept by a comparison.
 */
static bool unfinished(const json_t *task)
{
    return !json_is_true(json_object_get(task, "kept_default")) &&
           strcmp(text_of(json_object_get(task, "setting"), "algorithm"), "keep") == 0;
}

/* "ring/simple nc=8 nt=512 c=128K", or that NCCL's choice was kept. */
static const char *setting_text(const json_t *task, char text[96])
{
    if (json_is_true(json_object_get(task, "kept_default")))
        return "kept NCCL's choice";
    if (unfinished(task))
        return "the job ended before the search";
    const json_t *s = json_object_get(task, "setting");
    char bytes[24];
    int n = snprintf(text, 96, "%s/%s", text_of(s, "algorithm"), text_of(s, "protocol"));
    const char *transport = text_of(s, "transport");
    if (transport[0] != '\0' && strcmp(transport, "keep") != 0)
        n += snprintf(text + n, 96 - (size_t)n, "/%s", transport);
    if (number_of(s, "channels") > 0)
        n += snprintf(text + n, 96 - (size_t)n, " nc=%.0f", number_of(s, "channels"));
    if (number_of(s, "threads") > 0)
        n += snprintf(text + n, 96 - (size_t)n, " nt=%.0f", number_of(s, "threads"));
    if (number_of(s, "chunk") > 0)
        snprintf(text + n, 96 - (size_t)n, " c=%s",
                 att_bytes_text((uint64_t)number_of(s, "chunk"), bytes, sizeof bytes));
    return text;
}

static void print_run(const json_t *run, const json_t *published)
{
    size_t i;
    const json_t *task;
    const char *name = text_of(run, "name");
    json_array_foreach(json_object_get(run, "tasks"), i, task)
    {
        char bytes[24], what[64], gbs[4][16], setting[96], speedup[16] = "-";
        const json_t *row = published_row(published, run);
        snprintf(what, sizeof what, "%s %s x%.0f", text_of(task, "collective"),
                 att_bytes_text((uint64_t)number_of(task, "bytes"), bytes, sizeof bytes),
                 number_of(run, "ranks"));
        if (!unfinished(task))
            snprintf(speedup, sizeof speedup, "%.3fx", number_of(task, "speedup"));
        printf("%-32s %-22s %9s %9s %13s %13s %8s %6.0f  %s\n", name, what,
               gbs_text(number_of(task, "default_gbs"), gbs[0]),
               gbs_text(unfinished(task) ? 0 : number_of(task, "tuned_gbs"), gbs[1]),
               gbs_text(number_of(row, "default_gbs"), gbs[2]),
               gbs_text(number_of(row, "tuned_gbs"), gbs[3]), speedup, number_of(task, "trials"),
               setting_text(task, setting));
    }
    if (i == 0)
        complain(name, "no task was seen");
}

/* Adds run[key] to *sum; a missing number is a complaint. */
static void add_up(const json_t *run, const char *key, const char *missing, long long *sum)
{
    const json_t *value = json_object_get(run, key);
    if (json_is_integer(value))
        *sum += json_integer_value(value);
    else
        complain(text_of(run, "name"), missing);
}

int main(int argc, char **argv)
{
    att_error_t error;
    json_t *published = NULL, *runs = json_array();
    long long mismatches = 0, wrong = 0;
    if (argc < 4) {
        fprintf(stderr, "usage: %s OUT.json PUBLISHED.json RUN-FOLDER...\n", argv[0]);
        return ATT_EUSAGE;
    }
    if (att_json_read(argv[2], FILE_LIMIT, &published, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        return ATT_EINPUT;
    }
    for (int i = 3; i < argc; i++) {
        char path[PATH_MAX];
        json_t *root = NULL;
        snprintf(path, sizeof path, "%s/summary.json", argv[i]);
        if (att_json_read(path, FILE_LIMIT, &root, &error) != 0 ||
            att_json_check_version(root, 1, &error) != 0) {
            complain(argv[i], error.text);
            continue;
        }
        json_array_extend(runs, json_object_get(root, "runs"));
        json_decref(root);
    }

    printf("%-32s %-22s %9s %9s %13s %13s %8s %6s  %s\n", "run", "collective, size, ranks", "NCCL",
           "tuned", "NCCL publ.", "tuned publ.", "speedup", "trials", "setting");
    printf("%-32s %-22s %9s %9s %13s %13s\n", "", "", "GB/s", "GB/s", "GB/s", "GB/s");
    size_t i;
    const json_t *run;
    json_array_foreach(runs, i, run)
    {
        print_run(run, published);
        add_up(run, "mismatches", "settings were not compared over ranks", &mismatches);
        add_up(run, "result_errors", "results were not checked", &wrong);
    }
    printf("\nGB/s: algorithm bandwidth, 10^9 bytes a second. Published: %s.\n",
           text_of(published, "source"));
    printf("calls that ranks ran with different settings: %lld\n", mismatches);
    printf("wrong results: %lld\n", wrong);
    if (mismatches > 0 || wrong > 0)
        complaints++;

    json_t *out = json_pack("{s:i,s:o}", "version", 1, "runs", runs);
    if (att_json_replace(argv[1], out, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        complaints++;
    }
    json_decref(published);
    return complaints > 0 ? ATT_EFAIL : 0;
}
