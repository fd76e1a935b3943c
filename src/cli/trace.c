#include "cli/trace.h"

#include "base/log.h"
#include "base/names.h"
#include "base/nearest.h"
#include "base/one_line.h"
#include "cli/counted.h"
#include "cli/refused_option.h"
#include "cli/trace_chrome.h"
#include "cli/trace_open.h"
#include "cli/trace_request.h"
#include "cli/trace_summary.h"
#include "profile/export.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART_BYTES 200000000ull

typedef enum format {
    FORMAT_BY_NAME = 0,
    FORMAT_CHROME = 1,
    FORMAT_CSV = 2,
    FORMAT_JSONL = 3,
    FORMAT_INSPECTOR = 4
} format_t;

typedef struct options {
    const char *run, *output, *per_rank, *mode;
    att_trace_wish_t wish;
    format_t format;
    uint64_t part_bytes;
    bool quiet, json, help;
} options_t;

static void print_help(void)
{
    printf(
        "Usage: attune trace RUN [-o FILE] [--per-rank DIR] [options]\n"
        "       attune trace start RUN [--trace on[:SIZE]|ring:SIZE]\n"
        "       attune trace stop RUN\n\n"
        "Write the recorded calls of the run folder RUN on one clock. Without -o and --per-rank:\n"
        "say what was recorded, by which clocks, and what was lost. A run records with\n"
        "'attune run --trace on', or from 'attune trace start' on.\n\n"
        "Output\n"
        "  -o, --output FILE   merged trace: .json, .json.gz (Perfetto, Chrome), .csv or .jsonl,\n"
        "                      each also with .gz; - is standard output\n"
        "      --per-rank DIR  also one rank-N.json.gz a rank, for Holistic Trace Analysis\n"
        "      --format NAME   chrome, csv, jsonl or inspector (NCCL Inspector's JSON lines);\n"
        "                      default by FILE's name\n"
        "      --part-size N   most JSON in one file, K/M/G binary (default 200 MB): a larger\n"
        "                      trace becomes FILE.part-0001.json.gz, ... and FILE an overview\n"
        "      --json          the summary as JSON\n"
        "  -q, --quiet         do not list the files written\n"
        "Selection\n"
        "      --window A:B    seconds since the trace began; a side may be left out\n"
        "      --ranks LIST    ranks of the job, for example 0,4-7\n"
        "      --groups LIST   communicators, by the beginning of their hash\n"
        "Recording\n"
        "      --trace MODE    start: on (default), on:SIZE or ring:SIZE\n\n"
        "Times of nodes whose clocks were not calibrated are never merged: that is an error.\n");
}

enum {
    OPTION_PER_RANK = 256,
    OPTION_FORMAT,
    OPTION_PART,
    OPTION_JSON,
    OPTION_WINDOW,
    OPTION_RANKS,
    OPTION_GROUPS,
    OPTION_TRACE
};

static int read_format(const char *word, options_t *o, att_error_t *error)
{
    static const char *const words[] = {"", "chrome", "csv", "jsonl", "inspector", NULL};
    att_nearest_t nearest;
    for (int i = 1; i < 5; i++)
        if (strcmp(word, words[i]) == 0) {
            o->format = (format_t)i;
            return ATT_OK;
        }
    return att_fail(error, ATT_EUSAGE,
                    "--format: '%.40s' is not accepted%s; expected chrome, csv, jsonl or inspector",
                    word, att_nearest_of(&nearest, word, words + 1));
}

static int take_option(int code, options_t *o, att_error_t *error)
{
    switch (code) {
    case 'o':
        o->output = optarg;
        return ATT_OK;
    case 'q':
        o->quiet = true;
        return ATT_OK;
    case 'h':
        o->help = true;
        return ATT_OK;
    case OPTION_PER_RANK:
        o->per_rank = optarg;
        return ATT_OK;
    case OPTION_FORMAT:
        return read_format(optarg, o, error);
    case OPTION_PART:
        if (att_bytes_parse(optarg, &o->part_bytes) != ATT_OK || o->part_bytes < 65536)
            return att_fail(error, ATT_EUSAGE,
                            "--part-size: '%.40s' is not accepted; expected bytes from 64K",
                            optarg);
        return ATT_OK;
    case OPTION_JSON:
        o->json = true;
        return ATT_OK;
    case OPTION_WINDOW:
        o->wish.window = optarg;
        return ATT_OK;
    case OPTION_RANKS:
        o->wish.ranks = optarg;
        return ATT_OK;
    case OPTION_GROUPS:
        o->wish.groups = optarg;
        return ATT_OK;
    case OPTION_TRACE:
        o->mode = optarg;
        return ATT_OK;
    default:
        return att_fail(error, ATT_EUSAGE, "wrong option; see attune trace --help");
    }
}

static int parse(options_t *o, int argc, char **argv, att_error_t *error)
{
    static const struct option longs[] = {{"output", required_argument, NULL, 'o'},
                                          {"per-rank", required_argument, NULL, OPTION_PER_RANK},
                                          {"format", required_argument, NULL, OPTION_FORMAT},
                                          {"part-size", required_argument, NULL, OPTION_PART},
                                          {"json", no_argument, NULL, OPTION_JSON},
                                          {"quiet", no_argument, NULL, 'q'},
                                          {"window", required_argument, NULL, OPTION_WINDOW},
                                          {"ranks", required_argument, NULL, OPTION_RANKS},
                                          {"groups", required_argument, NULL, OPTION_GROUPS},
                                          {"trace", required_argument, NULL, OPTION_TRACE},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    *o = (options_t){.part_bytes = PART_BYTES};
    char name[ATT_REFUSED_OPTION];
    att_nearest_t nearest;
    optind = 1;
    opterr = 0;
    for (int code; (code = getopt_long(argc, argv, "o:qh", longs, NULL)) != -1;) {
        if (code == '?')
            return att_fail(error, ATT_EUSAGE,
                            "%.60s is not an option%s, or lacks its value; see attune trace --help",
                            att_refused_option(argv, name),
                            att_refused_option_nearest(&nearest, argv, longs));
        int status = take_option(code, o, error);
        if (status != ATT_OK)
            return status;
    }
    if (o->help)
        return ATT_OK;
    if (optind + 1 != argc)
        return att_fail(error, ATT_EUSAGE,
                        optind == argc ? "no run folder; use: attune trace RUN -o FILE"
                                       : "more than one run folder: '%.60s'",
                        optind < argc ? argv[optind + 1] : "");
    o->run = argv[optind];
    return ATT_OK;
}

static bool has_end(const char *path, const char *end)
{
    size_t length = strlen(path), part = strlen(end);
    if (length > 3 && strcmp(path + length - 3, ".gz") == 0)
        length -= 3;
    return length >= part && strncmp(path + length - part, end, part) == 0;
}

static int choose_format(options_t *o, att_error_t *error)
{
    if (o->format != FORMAT_BY_NAME || o->output == NULL)
        return ATT_OK;
    if (has_end(o->output, ".json"))
        o->format = FORMAT_CHROME;
    else if (has_end(o->output, ".csv"))
        o->format = FORMAT_CSV;
    else if (has_end(o->output, ".jsonl"))
        o->format = FORMAT_JSONL;
    else
        return att_fail(error, ATT_EUSAGE,
                        "-o %.80s: the format cannot be told from the name; end it with .json.gz, "
                        ".json, .csv or .jsonl, or give --format",
                        o->output);
    return ATT_OK;
}

typedef struct lines {
    att_export_t export;
    att_out_t *out;
    uint64_t written;
} lines_t;

static int take_lines(void *context, const att_trace_event_t *events, size_t count)
{
    lines_t *lines = context;
    att_export_events(&lines->export, events, count, lines->out);
    lines->written += count;
    return ATT_OK;
}

static int write_lines(const options_t *o, const struct att_trace *trace,
                       const att_trace_choice_t *choice, att_error_t *error)
{
    char name[ATT_ONE_LINE];
    lines_t lines = {.export = {.trace = trace,
                                .format = o->format == FORMAT_CSV     ? ATT_EXPORT_CSV
                                          : o->format == FORMAT_JSONL ? ATT_EXPORT_JSON_LINES
                                                                      : ATT_EXPORT_INSPECTOR,
                                .origin_ns = choice->origin_ns,
                                .run = o->run}};
    lines.out = malloc(sizeof *lines.out);
    if (lines.out == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory");
    int status = att_out_open(lines.out, o->output, error);
    if (status == ATT_OK) {
        att_export_begin(&lines.export, lines.out);
        if (att_trace_each(trace, &choice->select, take_lines, &lines) == ATT_OK) {
            status = att_out_close(lines.out, error);
        } else {
            att_out_discard(lines.out);
            status = att_fail(error, ATT_ENOMEM, "no memory");
        }
    }
    if (status == ATT_OK && !o->quiet && strcmp(o->output, "-") != 0)
        printf("%s: %" PRIu64 " calls\n", att_one_line(o->output, name, sizeof name),
               lines.written);
    free(lines.out);
    return status;
}

static int write_all(const options_t *o, const struct att_trace *trace, att_error_t *error)
{
    att_trace_choice_t choice;
    int status = att_trace_choose(trace, &o->wish, &choice, error);
    if (status != ATT_OK)
        return status;
    bool lines = o->format >= FORMAT_CSV;
    if (o->output != NULL)
        status = att_trace_calibrated(trace, choice.members, error);
    if (status == ATT_OK && lines)
        status = write_lines(o, trace, &choice, error);
    att_counted_t counted = {0};
    att_chrome_counted_t *points = NULL;
    size_t point_count = 0;
    if (status == ATT_OK && !lines)
        status = att_counted_read(o->run, &counted, error);
    if (status == ATT_OK && att_counted_on_trace(&counted, trace, &points, &point_count) != ATT_OK)
        status = att_fail(error, ATT_ENOMEM, "no memory");
    att_trace_output_t output = {
        .run = o->run,
        .counted = points,
        .counted_count = point_count,
        .path = lines ? NULL : o->output,
        .per_rank = o->per_rank,
        .part_bytes = o->part_bytes,
        .said = o->quiet || (o->output != NULL && strcmp(o->output, "-") == 0) ? NULL : stdout};
    if (status == ATT_OK)
        status = att_trace_chrome(trace, &choice, &output, error);
    free(points);
    att_counted_free(&counted);
    att_trace_choice_free(&choice);
    return status;
}

static int handle(options_t *o, att_error_t *error)
{
    struct att_trace *trace;
    int status = choose_format(o, error);
    if (status == ATT_OK)
        status = att_trace_open_told(o->run, &trace, error);
    if (status != ATT_OK)
        return status;
    if (o->output == NULL && o->per_rank == NULL)
        status = att_trace_summary(trace, o->run, o->json, stdout, error);
    else
        status = write_all(o, trace, error);
    att_trace_close(trace);
    return status;
}

int att_trace_main(int argc, char **argv)
{
    char name[ATT_ONE_LINE];
    options_t o;
    att_error_t error = {""};
    const char *word = argc > 1 ? argv[1] : "";
    bool start = strcmp(word, "start") == 0, stop = strcmp(word, "stop") == 0;
    int skip = start || stop ? 1 : 0;
    int status = parse(&o, argc - skip, argv + skip, &error);
    if (status == ATT_OK && o.help) {
        print_help();
        return 0;
    }
    if (status == ATT_OK && !start && o.mode != NULL)
        status = att_fail(&error, ATT_EUSAGE, "--trace belongs to attune trace start");
    if (status == ATT_OK && skip) {
        const char *mode = stop ? "off" : o.mode != NULL ? o.mode : "on";
        status = att_trace_request(o.run, mode, &error);
        if (status == ATT_OK && !o.quiet)
            printf("%s: recording %s\n", att_one_line(o.run, name, sizeof name),
                   stop ? "has stopped" : "has started");
    } else if (status == ATT_OK) {
        status = handle(&o, &error);
    }
    if (status != ATT_OK)
        att_log(ATT_LOG_ERROR, "%s", error.text);
    return -status;
}
