#include "cli/report.h"

#include "base/log.h"
#include "cli/report_page.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    const char *output;
    bool json, help;
} options_t;

static void print_help(void)
{
    printf(
        "Usage: attune report RUN -o FILE.html\n"
        "       attune report RUN --json\n\n"
        "Make one page of the run folder RUN: what was tuned and gained, how the searches went "
        "and\n"
        "what they cost, late ranks (when the run recorded a trace), coverage and losses, "
        "counters,\n"
        "environment. The page is one file that asks for nothing from a network. What the folder\n"
        "lacks is said in the page. Files may be compressed (tasks.json.gz).\n\n"
        "  -o, --output FILE  the page; - is standard output\n"
        "      --json         the same as JSON, on standard output\n"
        "  -h, --help         this text\n");
}

static int parse(options_t *o, int argc, char **argv, att_error_t *error)
{
    static const struct option longs[] = {{"output", required_argument, NULL, 'o'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    *o = (options_t){0};
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
        case 'h':
            o->help = true;
            return ATT_OK;
        default:
            return att_fail(error, ATT_EUSAGE,
                            "%.60s is not an option, or lacks its value; see attune report --help",
                            argv[optind - 1]);
        }
    }
    if (optind == argc)
        return att_fail(error, ATT_EUSAGE, "no run folder; use: attune report RUN -o FILE.html");
    if (optind + 1 != argc)
        return att_fail(error, ATT_EUSAGE, "more than one run folder: '%.60s'", argv[optind + 1]);
    if (o->output == NULL && !o->json)
        return att_fail(error, ATT_EUSAGE, "where to? give -o FILE.html, or --json");
    return ATT_OK;
}

static int report_run(const options_t *o, const char *folder, att_error_t *error)
{
    att_report_run_t run;
    int status = att_report_run_read(folder, &run, error);
    if (status != ATT_OK)
        return status;
    if (o->json) {
        json_dumpf(run.value, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
        putchar('\n');
    }
    if (o->output != NULL)
        status = att_report_page(&run, o->output, error);
    att_report_run_free(&run);
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
    if (status == ATT_OK)
        status = report_run(&o, argv[optind], &error);
    if (status != ATT_OK)
        att_log(ATT_LOG_ERROR, "%s", error.text);
    return -status;
}
