#include "cli/report.h"

#include "base/log.h"
#include "cli/compare.h"
#include "cli/refused_option.h"
#include "cli/report_page.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    const char *output;
    double noise; /* negative: the default */
    bool json, help, compare;
} options_t;

static void print_help(void)
{
    printf(
        "Usage: attune report RUN -o FILE.html\n"
        "       attune report RUN --json\n"
        "       attune report --compare A B [--json] [--noise SHARE]\n\n"
        "Make one page of the run folder RUN: what was tuned and gained, how the searches went "
        "and\n"
        "what they cost, late ranks (when the run recorded a trace), coverage and losses, "
        "counters,\n"
        "environment. The page is one file that asks for nothing from a network. What the folder\n"
        "lacks is said in the page. Files may be compressed (tasks.json.gz).\n\n"
        "With --compare: say of everything that was measured in both A and B whether B is better,\n"
        "worse or within noise, and which bound of noise that is by. A and B are two run folders, "
        "two\n"
        "outputs of nccl-tests or attune bench (text or JSON), or two of attune bench --sweep.\n\n"
        "  -o, --output FILE  the page; - is standard output\n"
        "      --json         the same as JSON, on standard output\n"
        "      --compare      two results, as a table\n"
        "      --noise SHARE  least bound of noise, such as 3%% or 0.03 (default 1%%)\n"
        "  -h, --help         this text\n");
}

static bool read_share(const char *text, double *share)
{
    char *end;
    *share = strtod(text, &end);
    if (end != text && strcmp(end, "%") == 0)
        *share /= 100;
    else if (end == text || *end != '\0')
        return false;
    return *share >= 0 && *share < 10;
}

static int check_compare(const options_t *o, int words, att_error_t *error)
{
    if (words != 2)
        return att_fail(error, ATT_EUSAGE,
                        "--compare wants two results: attune report --compare A B");
    if (o->output != NULL)
        return att_fail(error, ATT_EUSAGE,
                        "--compare prints on standard output; there is no page of it");
    return ATT_OK;
}

static int parse(options_t *o, int argc, char **argv, att_error_t *error)
{
    static const struct option longs[] = {
        {"output", required_argument, NULL, 'o'}, {"json", no_argument, NULL, 'j'},
        {"compare", no_argument, NULL, 'c'},      {"noise", required_argument, NULL, 'n'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
    *o = (options_t){.noise = -1};
    char name[ATT_REFUSED_OPTION];
    att_nearest_t nearest;
    optind = 1;
    opterr = 0;
    for (int code; (code = getopt_long(argc, argv, "o:h", longs, NULL)) != -1;) {
        switch (code) {
        case 'o':
            o->output = optarg;
            break;
        case 'j':
            o->json = true;
            break;
        case 'c':
            o->compare = true;
            break;
        case 'n':
            if (!read_share(optarg, &o->noise))
                return att_fail(error, ATT_EUSAGE,
                                "--noise: '%.40s' is not accepted; expected a share such as 3%% or "
                                "0.03",
                                optarg);
            break;
        case 'h':
            o->help = true;
            return ATT_OK;
        default:
            return att_fail(
                error, ATT_EUSAGE,
                "%.60s is not an option%s, or lacks its value; see attune report --help",
                att_refused_option(argv, name), att_refused_option_nearest(&nearest, argv, longs));
        }
    }
    if (o->compare)
        return check_compare(o, argc - optind, error);
    if (o->noise >= 0)
        return att_fail(error, ATT_EUSAGE, "--noise belongs to --compare");
    if (optind == argc)
        return att_fail(error, ATT_EUSAGE, "no run folder; use: attune report RUN -o FILE.html");
    if (optind + 1 != argc)
        return att_fail(error, ATT_EUSAGE, "more than one run folder: '%.60s'", argv[optind + 1]);
    if (o->output == NULL && !o->json)
        return att_fail(error, ATT_EUSAGE, "where to? give -o FILE.html, or --json");
    return ATT_OK;
}

static void warn_of_end(const char *folder, const char *end)
{
    if (end[0] != '\0')
        att_log(ATT_LOG_WARN, "%s: %s", folder, end);
}

static int report_run(const options_t *o, const char *folder, att_error_t *error)
{
    att_report_run_t run;
    int status = att_report_run_read(folder, &run, error);
    if (status != ATT_OK)
        return status;
    warn_of_end(folder, run.end);
    if (o->json) {
        json_dumpf(run.value, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
        putchar('\n');
    }
    if (o->output != NULL)
        status = att_report_page(&run, o->output, error);
    att_report_run_free(&run);
    return status;
}

static int compare(const options_t *o, const char *const paths[2], att_error_t *error)
{
    att_compare_side_t sides[2];
    att_compare_t result;
    int status = att_compare_side_read(paths[0], &sides[0], error);
    if (status != ATT_OK)
        return status;
    status = att_compare_side_read(paths[1], &sides[1], error);
    if (status != ATT_OK)
        goto free_first;
    status = att_compare_make(&sides[0], &sides[1], o->noise, &result, error);
    if (status != ATT_OK)
        goto free_second;
    for (int i = 0; i < 2; i++)
        warn_of_end(paths[i], sides[i].end);
    if (o->json)
        status = att_compare_json(&result, stdout, error);
    else
        att_compare_print(&result, stdout);
    att_compare_free(&result);
free_second:
    att_compare_side_free(&sides[1]);
free_first:
    att_compare_side_free(&sides[0]);
    return status;
}

int att_report_main(int argc, char **argv)
{
    options_t o;
    att_error_t error = {""};
    int status = parse(&o, argc, argv, &error);
    if (status == ATT_OK && o.help) {
        print_help();
        return 0;
    }
    if (status == ATT_OK && o.compare)
        status = compare(&o, (const char *const[]){argv[optind], argv[optind + 1]}, &error);
    else if (status == ATT_OK)
        status = report_run(&o, argv[optind], &error);
    if (status != ATT_OK)
        att_log(ATT_LOG_ERROR, "%s", error.text);
    return -status;
}
