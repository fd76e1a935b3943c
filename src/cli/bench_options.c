#include "cli/bench_options.h"

#include "base/names.h"
#include "cli/bench_nccl.h"
#include "cli/bench_setting.h"
#include "cli/bench_world.h"
#include "cli/refused_option.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    OPTION_PROCS = 256,
    OPTION_TIME,
    OPTION_SIZE_LIST,
    OPTION_ROUNDS,
    OPTION_GEMM,
    OPTION_COMPUTE_US,
    OPTION_DELAY,
    OPTION_SYNC,
    OPTION_WATCH_TUNED,
    OPTION_SETTING,
    OPTION_SWEEP,
    OPTION_ALSO,
    OPTION_MAX_CHANNELS,
    OPTION_GRID_REPEATS,
    OPTION_REPEATS,
    OPTION_KEEP,
    OPTION_BATCH,
    OPTION_SEED,
    OPTION_PLACE,
    OPTION_BIND,
};

static const struct row {
    const char *name;
    int code;
    const char *argument; /* NULL: none; "[...": optional */
    const char *help;
} rows[] = {
    {NULL, 0, NULL, "Sizes and repetition (nccl-tests' spelling)"},
    {"minbytes", 'b', "SIZE", "smallest message, K/M/G binary (default 32M)"},
    {"maxbytes", 'e', "SIZE", "largest message (default 32M)"},
    {"stepbytes", 'i', "SIZE", "added to get the next size (default 1M)"},
    {"stepfactor", 'f', "N", "multiplied to get the next size, instead of -i"},
    {"size-list", OPTION_SIZE_LIST, "A,B,...", "exactly these sizes, instead of -b, -e, -i, -f"},
    {"iters", 'n', "N", "timed calls a row (default 20)"},
    {"warmup_iters", 'w', "N", "calls before the timed ones (default 1)"},
    {"run_cycles", 'N', "N", "print the whole table N times (default 1)"},
    {"rounds", OPTION_ROUNDS, "N", "the same as -N"},
    {"time", OPTION_TIME, "SECONDS",
     "repeat all rows for this long; the first and the last round are printed"},
    {"check", 'c', "N",
     "check the results of the first and the last call (1, default), N - 1 further ones, or "
     "none (0)"},
    {"sync", OPTION_SYNC, "iter|every",
     "wait for the stream after all timed calls (iter, default) or after every call"},
    {NULL, 0, NULL, "Ranks: processes x threads x ranks a thread"},
    {"nthreads", 't', "N", "threads a process (default 1)"},
    {"ngpus", 'g', "N", "ranks a thread, driven in one NCCL group (default 1)"},
    {"procs", OPTION_PROCS, "N", "processes, started by bench itself (default 1)"},
    {"bind", OPTION_BIND, NULL,
     "give each process of --procs processors of its own, an equal share of those allowed: "
     "launches differ less"},
    {NULL, 0, NULL, "What the collective computes"},
    {"datatype", 'd', "TYPE",
     "float (default), half, bfloat16, double, int8, uint8, int32, uint32, int64, uint64"},
    {"op", 'o', "OP", "sum (default), prod, min, max, avg"},
    {"root", 'r', "RANK", "root of Broadcast and Reduce (default 0)"},
    {"place", OPTION_PLACE, "both|out|in",
     "out-of-place and in-place calls (both, default), as one table, or only one kind, as a "
     "training job has"},
    {NULL, 0, NULL, "Compute beside the collectives"},
    {"gemm", OPTION_GEMM, "M,N,K[,TYPE]",
     "matrix products in each rank while calls run: on the GPU by cuBLAS on a second stream "
     "(TYPE float or bfloat16, default bfloat16), on the CPU in a thread (float)"},
    {"compute-us", OPTION_COMPUTE_US, "US",
     "compute between two calls, in microseconds of the modelled fabric's clock"},
    {"delay", OPTION_DELAY, "RANK:MS[:FROM[:COUNT]]",
     "hold this rank up before each timed call, from the timed call FROM on, COUNT times"},
    {NULL, 0, NULL, "Settings"},
    {"setting", OPTION_SETTING, "TEXT",
     "run everything with this setting, for example 'ring/simple ch=8 chunk=128K'"},
    {"sweep", OPTION_SWEEP, NULL,
     "measure NCCL's choice and a grid of settings, then the best again, interleaved"},
    {"also", OPTION_ALSO, "RUN", "sweep: include the tuned settings of this attune run"},
    {"max-channels", OPTION_MAX_CHANNELS, "N",
     "sweep: largest number of channels (default what NCCL_MAX_CTAS allows, else 32)"},
    {"grid-repeats", OPTION_GRID_REPEATS, "N", "sweep: samples of each grid setting (default 3)"},
    {"keep", OPTION_KEEP, "N", "sweep: settings of the grid that are measured again (default 20)"},
    {"repeats", OPTION_REPEATS, "N", "sweep: samples in the second measurement (default 30)"},
    {"batch", OPTION_BATCH, "N", "sweep: calls a sample (default by size, 1 to 16)"},
    {"seed", OPTION_SEED, "N", "sweep: order of measurement (default 1)"},
    {NULL, 0, NULL, "Output"},
    {"output_file", 'J', "FILE", "also write the results as JSON"},
    {"json", 'J', "FILE", "the same as -J"},
    {"watch-tuned", OPTION_WATCH_TUNED, "[SECONDS]",
     "print the bus bandwidth of the row being run at this interval (default 1)"},
    {"help", 'h', NULL, "this text"},
};

bool att_bench_options_in_place(const att_bench_options_t *options, int i)
{
    return options->place == ATT_BENCH_IN_PLACE ||
           (options->place == ATT_BENCH_BOTH_PLACES && i % 2 != 0);
}

int att_bench_options_ranks(const att_bench_options_t *options)
{
    return options->processes * options->threads * options->ranks_per_thread;
}

void att_bench_options_help(FILE *out)
{
    fprintf(out, "usage: attune bench [COLLECTIVE[,COLLECTIVE...]] [options]\n"
                 "  COLLECTIVE: allreduce (default), allgather, reducescatter, broadcast, reduce, "
                 "all\n"
                 "  Runs on the NCCL that ATTUNE_NCCL_LIB names, else on libnccl.so.2.\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        if (row->name == NULL) {
            fprintf(out, "\n%s:\n", row->help);
            continue;
        }
        char left[64], letter[8] = "    ";
        if (row->code < 256)
            snprintf(letter, sizeof letter, "-%c, ", row->code);
        bool optional = row->argument != NULL && row->argument[0] == '[';
        snprintf(left, sizeof left, "%s--%s%s%s%s", letter, row->name,
                 row->argument == NULL ? ""
                 : optional            ? "[="
                                       : " ",
                 row->argument == NULL ? "" : row->argument + (optional ? 1 : 0), "");
        fprintf(out, "  %-30s %s\n", left, row->help);
    }
    fprintf(out, "\nExit status: 0 passed, 1 wrong results, 2 usage, else what failed.\n");
}

static int bad(att_error_t *error, const char *option, const char *value, const char *accepts)
{
    return att_fail(error, ATT_EUSAGE, "attune bench: %s '%s': expected %s", option, value,
                    accepts);
}

/* The same with the word that was meant, of a list that ends with NULL. */
static int bad_word(att_error_t *error, const char *option, const char *value, const char *accepts,
                    const char *const *words)
{
    att_nearest_t nearest;
    return att_fail(error, ATT_EUSAGE, "attune bench: %s '%s'%s: expected %s", option, value,
                    att_nearest_of(&nearest, value, words), accepts);
}

static int parse_int(const char *option, const char *text, int minimum, int maximum, int *value,
                     att_error_t *error)
{
    char *end, accepts[64];
    errno = 0;
    long number = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || number < minimum || number > maximum) {
        snprintf(accepts, sizeof accepts, "a number from %d to %d", minimum, maximum);
        return bad(error, option, text, accepts);
    }
    *value = (int)number;
    return ATT_OK;
}

static int parse_real(const char *option, const char *text, double *value, att_error_t *error)
{
    char *end;
    errno = 0;
    double number = strtod(text, &end);
    if (errno != 0 || end == text || *end != '\0' || !(number > 0 && number < 1e9))
        return bad(error, option, text, "a number above 0");
    *value = number;
    return ATT_OK;
}

static int parse_bytes(const char *option, const char *text, uint64_t *bytes, att_error_t *error)
{
    uint64_t value;
    if (att_bytes_parse(text, &value) != 0 || value > 1ull << 40)
        return bad(error, option, text, "bytes, such as 8, 64K, 16M or 1G");
    *bytes = value;
    return ATT_OK;
}

static int add_size(att_bench_options_t *options, uint64_t size, att_error_t *error)
{
    if (options->size_count == ATT_BENCH_MAX_SIZES)
        return att_fail(error, ATT_EUSAGE, "attune bench: more than %d sizes", ATT_BENCH_MAX_SIZES);
    options->sizes[options->size_count++] = size;
    return ATT_OK;
}

/* Calls `take` for each word of a comma-separated list. The list itself is not written to: it is
 * the command line that processes of --procs are started with. */
static int each_word(att_bench_options_t *options, const char *list,
                     int (*take)(att_bench_options_t *, const char *, att_error_t *),
                     att_error_t *error)
{
    char word[64];
    for (const char *at = list;;) {
        size_t length = strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1),
                 at);
        int rc = take(options, word, error);
        if (rc != 0 || at[length] == '\0')
            return rc;
        at += length + 1;
    }
}

static int take_size(att_bench_options_t *options, const char *word, att_error_t *error)
{
    uint64_t size = 0;
    int rc = parse_bytes("--size-list", word, &size, error);
    return rc != 0 ? rc : add_size(options, size, error);
}

static int take_collective(att_bench_options_t *options, const char *word, att_error_t *error)
{
    static const int all[] = {ATT_COLLECTIVE_ALL_REDUCE, ATT_COLLECTIVE_ALL_GATHER,
                              ATT_COLLECTIVE_REDUCE_SCATTER, ATT_COLLECTIVE_BROADCAST,
                              ATT_COLLECTIVE_REDUCE};
    if (strcasecmp(word, "all") == 0) {
        memcpy(options->collectives, all, sizeof all);
        options->collective_count = ATT_COLLECTIVE_COUNT;
        return ATT_OK;
    }
    int collective = att_collective_parse(word);
    att_nearest_t nearest;
    if (collective < 0)
        return att_fail(error, ATT_EUSAGE,
                        "attune bench: unknown collective '%s'%s: allreduce, allgather, "
                        "reducescatter, broadcast, reduce or all",
                        word, att_collective_nearest(&nearest, word));
    for (int i = 0; i < options->collective_count; i++)
        if (options->collectives[i] == collective)
            return att_fail(error, ATT_EUSAGE, "attune bench: %s is named twice", word);
    options->collectives[options->collective_count++] = collective;
    return ATT_OK;
}

static int parse_gemm(att_bench_options_t *options, const char *text, att_error_t *error)
{
    int m, n, k, used = 0;
    if (sscanf(text, "%d,%d,%d%n", &m, &n, &k, &used) != 3 || m < 1 || n < 1 || k < 1 ||
        m > 65536 || n > 65536 || k > 65536)
        return bad(error, "--gemm", text, "M,N,K or M,N,K,TYPE, each 1 to 65536");
    int type = ATT_NCCL_BFLOAT16;
    if (text[used] == ',') {
        type = att_nccl_type_parse(text + used + 1);
        if (type != ATT_NCCL_FLOAT && type != ATT_NCCL_BFLOAT16)
            return bad(error, "--gemm", text, "TYPE float or bfloat16");
        options->gemm_type_given = true;
    } else if (text[used] != '\0') {
        return bad(error, "--gemm", text, "M,N,K or M,N,K,TYPE");
    }
    options->gemm = true;
    options->gemm_shape = (att_gemm_shape_t){m, n, k, type};
    return ATT_OK;
}

static int parse_place(att_bench_options_t *options, const char *text, att_error_t *error)
{
    static const char *const words[] = {NULL, "out", "in", "both", NULL};
    for (int place = ATT_BENCH_OUT_OF_PLACE; place <= ATT_BENCH_BOTH_PLACES; place++)
        if (strcmp(text, words[place]) == 0) {
            options->place = (att_bench_place_t)place;
            return ATT_OK;
        }
    return bad_word(error, "--place", text, "both, out or in", words + 1);
}

static int parse_option(att_bench_options_t *o, int code, const char *value, att_error_t *error)
{
    const char *words[ATT_NCCL_TYPES + 1] = {NULL}; /* those of types, or the fewer of operations */
    int number, rc;
    switch (code) {
    case 'b':
        return parse_bytes("-b", value, &o->min_bytes, error);
    case 'e':
        return parse_bytes("-e", value, &o->max_bytes, error);
    case 'i':
        return parse_bytes("-i", value, &o->step_bytes, error);
    case 'f':
        rc = parse_int("-f", value, 1, 1 << 20, &number, error);
        if (rc == 0)
            o->step_factor = (uint64_t)number;
        return rc;
    case OPTION_SIZE_LIST:
        return each_word(o, value, take_size, error);
    case 'n':
        return parse_int("-n", value, 1, 1000000, &o->iterations, error);
    case 'w':
        return parse_int("-w", value, 0, 1000000, &o->warmup, error);
    case 'N':
    case OPTION_ROUNDS:
        return parse_int("--rounds", value, 1, 1000000, &o->rounds, error);
    case OPTION_TIME:
        return parse_real("--time", value, &o->seconds, error);
    case 'c':
        return parse_int("-c", value, 0, 1000000, &o->check, error);
    case OPTION_SYNC:
        if (strcmp(value, "iter") != 0 && strcmp(value, "every") != 0)
            return bad_word(error, "--sync", value, "iter or every",
                            (const char *const[]){"iter", "every", NULL});
        o->sync_every = strcmp(value, "every") == 0;
        return ATT_OK;
    case 't':
        return parse_int("-t", value, 1, ATT_WORLD_MAX_DRIVERS, &o->threads, error);
    case 'g':
        return parse_int("-g", value, 1, ATT_WORLD_MAX_DRIVERS, &o->ranks_per_thread, error);
    case OPTION_PROCS:
        return parse_int("--procs", value, 1, ATT_WORLD_MAX_DRIVERS, &o->processes, error);
    case 'd':
        o->type = att_nccl_type_parse(value);
        for (int i = 0; i < ATT_NCCL_TYPES; i++)
            words[i] = att_nccl_type_name(i);
        return o->type >= 0 ? ATT_OK
                            : bad_word(error, "-d", value,
                                       "float, half, bfloat16, double, int8, uint8, int32, "
                                       "uint32, int64 or uint64",
                                       words);
    case 'o':
        o->op = att_nccl_op_parse(value);
        for (int i = 0; i < ATT_NCCL_OPS; i++)
            words[i] = att_nccl_op_name(i);
        return o->op >= 0 ? ATT_OK
                          : bad_word(error, "-o", value, "sum, prod, min, max or avg", words);
    case 'r':
        return parse_int("-r", value, 0, ATT_WORLD_MAX_DRIVERS, &o->root, error);
    case OPTION_BIND:
        o->bind = true;
        return ATT_OK;
    case OPTION_PLACE:
        return parse_place(o, value, error);
    case OPTION_GEMM:
        return parse_gemm(o, value, error);
    case OPTION_COMPUTE_US:
        return parse_real("--compute-us", value, &o->compute_us, error);
    case OPTION_DELAY:
        return att_bench_delay_parse(value, &o->delay, error);
    case OPTION_SETTING:
        o->has_setting = true;
        return att_bench_setting_parse(value, &o->setting, error);
    case OPTION_SWEEP:
        o->sweep = true;
        return ATT_OK;
    case OPTION_ALSO:
        o->also = value;
        return ATT_OK;
    case OPTION_MAX_CHANNELS:
        return parse_int("--max-channels", value, 1, 64, &o->max_channels, error);
    case OPTION_GRID_REPEATS:
        return parse_int("--grid-repeats", value, 1, 1000, &o->grid_repeats, error);
    case OPTION_KEEP:
        return parse_int("--keep", value, 1, 1000, &o->keep, error);
    case OPTION_REPEATS:
        return parse_int("--repeats", value, 1, 10000, &o->repeats, error);
    case OPTION_BATCH:
        return parse_int("--batch", value, 1, 1000, &o->batch, error);
    case OPTION_SEED:
        rc = parse_int("--seed", value, 0, INT32_MAX, &number, error);
        if (rc == 0)
            o->seed = (uint64_t)number;
        return rc;
    case 'J':
        o->json = value;
        return ATT_OK;
    case OPTION_WATCH_TUNED:
        o->watch_s = 1.0;
        return value == NULL ? ATT_OK : parse_real("--watch-tuned", value, &o->watch_s, error);
    default:
        return att_fail(error, ATT_EUSAGE, "attune bench: option %d", code);
    }
}

static int fill_sizes(att_bench_options_t *o, att_error_t *error)
{
    if (o->size_count > 0) {
        o->min_bytes = o->max_bytes = o->sizes[0];
        for (int i = 1; i < o->size_count; i++) {
            o->min_bytes = o->sizes[i] < o->min_bytes ? o->sizes[i] : o->min_bytes;
            o->max_bytes = o->sizes[i] > o->max_bytes ? o->sizes[i] : o->max_bytes;
        }
        return ATT_OK;
    }
    if (o->min_bytes > o->max_bytes)
        return att_fail(error, ATT_EUSAGE,
                        "attune bench: the smallest size (-b %llu) is above the largest (-e %llu)",
                        (unsigned long long)o->min_bytes, (unsigned long long)o->max_bytes);
    if (o->step_factor > 1 && o->min_bytes == 0)
        return att_fail(error, ATT_EUSAGE, "attune bench: -f needs -b above 0");
    if (o->step_factor <= 1 && o->step_bytes == 0 && o->min_bytes != o->max_bytes)
        return att_fail(error, ATT_EUSAGE, "attune bench: -i needs a step above 0");
    for (uint64_t size = o->min_bytes; size <= o->max_bytes;) {
        int rc = add_size(o, size, error);
        if (rc != 0)
            return rc;
        uint64_t next = o->step_factor > 1 ? size * o->step_factor : size + o->step_bytes;
        if (next <= size)
            break;
        size = next;
    }
    return ATT_OK;
}

static int check_together(const att_bench_options_t *o, att_error_t *error)
{
    long long ranks = (long long)o->processes * o->threads * o->ranks_per_thread;
    long long drivers = (long long)o->processes * o->threads;
    if (drivers > ATT_WORLD_MAX_DRIVERS || ranks > ATT_WORLD_MAX_DRIVERS)
        return att_fail(error, ATT_EUSAGE, "attune bench: %lld ranks: at most %d are possible",
                        ranks, ATT_WORLD_MAX_DRIVERS);
    if (o->root >= ranks)
        return att_fail(error, ATT_EUSAGE, "attune bench: root %d, but there are %lld ranks",
                        o->root, ranks);
    if (o->delay.wanted && o->delay.rank >= ranks)
        return att_fail(error, ATT_EUSAGE,
                        "attune bench: --delay of rank %d, but there are %lld ranks", o->delay.rank,
                        ranks);
    if (o->sweep && o->has_setting)
        return att_fail(error, ATT_EUSAGE,
                        "attune bench: --sweep and --setting exclude each "
                        "other");
    if (o->bind && o->processes == 1)
        return att_fail(error, ATT_EUSAGE, "attune bench: --bind goes with --procs");
    if (o->also != NULL && !o->sweep)
        return att_fail(error, ATT_EUSAGE, "attune bench: --also goes with --sweep");
    return ATT_OK;
}

static int refuse(char **argv, int code, const struct option *longs, const char *const *others,
                  att_error_t *error)
{
    char name[ATT_REFUSED_OPTION];
    att_nearest_t nearest;
    att_refused_option(argv, name);
    if (code == ':')
        return att_fail(error, ATT_EUSAGE,
                        "attune bench: option %s needs a value; see attune bench --help", name);
    att_refused_option_nearest(&nearest, argv, longs);
    for (; others != NULL && *others != NULL; others++)
        att_nearest_offer(&nearest, *others);
    return att_fail(error, ATT_EUSAGE,
                    "attune bench: option %s is not known%s; see attune bench --help", name,
                    att_nearest_hint(&nearest));
}

static size_t fill_tables(struct option *longs, char *shorts)
{
    size_t count = 0;
    *shorts++ = ':'; /* a missing value is told apart from an unknown option */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].name == NULL)
            continue;
        int argument = rows[i].argument == NULL     ? no_argument
                       : rows[i].argument[0] == '[' ? optional_argument
                                                    : required_argument;
        longs[count++] = (struct option){rows[i].name, argument, NULL, rows[i].code};
        if (rows[i].code < 256) {
            *shorts++ = (char)rows[i].code;
            if (argument == required_argument)
                *shorts++ = ':';
        }
    }
    *shorts = '\0';
    longs[count] = (struct option){0};
    return count;
}

int att_bench_options_parse(att_bench_options_t *options, int argc, char **argv,
                            const char *const *others, att_error_t *error)
{
    memset(options, 0, sizeof *options);
    options->min_bytes = options->max_bytes = 32u << 20;
    options->step_bytes = 1u << 20;
    options->step_factor = 1;
    options->type = ATT_NCCL_FLOAT;
    options->iterations = 20;
    options->warmup = options->rounds = options->check = 1;
    options->processes = options->threads = options->ranks_per_thread = 1;
    options->grid_repeats = 3;
    options->keep = 20;
    options->repeats = 30;
    options->seed = 1;
    options->place = ATT_BENCH_BOTH_PLACES;

    struct option longs[sizeof rows / sizeof rows[0] + 1];
    char shorts[2 * sizeof rows / sizeof rows[0] + 2];
    fill_tables(longs, shorts);
    optind = 0; /* glibc: begin anew */
    opterr = 0;
    int code;
    while ((code = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        if (code == 'h') {
            if (error != NULL)
                error->text[0] = '\0';
            return -ATT_EUSAGE;
        }
        int rc = code == '?' || code == ':' ? refuse(argv, code, longs, others, error)
                                            : parse_option(options, code, optarg, error);
        if (rc != 0)
            return rc;
    }
    for (; optind < argc; optind++) {
        int rc = each_word(options, argv[optind], take_collective, error);
        if (rc != 0)
            return rc;
    }
    if (options->collective_count == 0)
        options->collectives[options->collective_count++] = ATT_COLLECTIVE_ALL_REDUCE;
    int rc = fill_sizes(options, error);
    return rc != 0 ? rc : check_together(options, error);
}
