#include "cli/bench_record_options.h"

#include "base/names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum option {
    FROM_SWEEP,
    OUT,
    PREFIX,
    DEVICE,
    UNITS,
    DESCRIPTION,
    CHANNELS,
    CHUNKS,
    THREADS,
    REPEATS,
    AGAIN,
    AGAIN_SHARE,
    FRONT,
    FRONT_SAMPLES,
    BUDGET,
    OPTIONS
};

static const struct {
    const char *name, *argument, *help;
} rows[OPTIONS] = {
    [FROM_SWEEP] = {"from-sweep", "FILE",
                    "convert the JSON file of an attune bench --sweep (.gz too); nothing is run"},
    [OUT] = {"out", "FOLDER", "where the surfaces go; made when it is not there (default: here)"},
    [PREFIX] = {"prefix", "NAME",
                "surfaces are called NAME-COLLECTIVE-SIZE[-gemm].json.gz (default recorded)"},
    [DEVICE] = {"device", "NAME", "name of the device (default: as it names itself)"},
    [UNITS] = {"device-units", "N", "its multiprocessors (default: as it says)"},
    [DESCRIPTION] = {"description", "TEXT", "one line about the machine"},
    [CHANNELS] = {"channels", "LIST", "channels of the grid, for example 1-32 (default)"},
    [CHUNKS] = {"chunks", "LIST",
                "chunk bytes of the grid; \"keep\" is always tried (default "
                "8K,12K,16K,24K,...,384K,512K; what a protocol cannot take is left out)"},
    [THREADS] = {"threads-list", "LIST",
                 "threads a block: a communicator for each value besides \"keep\", NCCL 2.29.7 or "
                 "later (default: only \"keep\")"},
    [REPEATS] = {"repeats", "N", "samples of each setting (default 3)"},
    [AGAIN] = {"again", "N", "samples of the best settings, measured again (default 30)"},
    [AGAIN_SHARE] = {"again-share", "SHARE", "which share of the grid is best (default 0.05)"},
    [FRONT] = {"front", "N", "how many of the fastest get more samples at last (default 16)"},
    [FRONT_SAMPLES] = {"front-samples", "N",
                       "that each of these has then, at least (default 200; 0: no more)"},
    [BUDGET] = {"budget", "SECONDS",
                "end in time; the same command goes on where this one ended (default: no limit)"},
};

void att_record_options_help(FILE *out)
{
    fprintf(out,
            "usage: attune record [COLLECTIVE[,COLLECTIVE...]] [options]\n"
            "  Measures a grid of settings of each collective and size, then its best ones "
            "again, the\n  fastest of these longest, and writes a surface for attune sim of each. "
            "Killed or out of\n  time, the same command goes on. COLLECTIVE: allreduce (default), "
            "allgather,\n  reducescatter, broadcast, reduce, all\n\nRecording:\n");
    for (int i = 0; i < OPTIONS; i++) {
        char left[64];
        snprintf(left, sizeof left, "--%s %s", rows[i].name, rows[i].argument);
        fprintf(out, "  %-26s %s\n", left, rows[i].help);
    }
    fprintf(out, "\nAs in attune bench ('attune bench --help'):\n"
                 "  --size-list, -b, -e, -f, -i     sizes\n"
                 "  -t, -g, --procs                 ranks\n"
                 "  -d, -o, -r, -c                  type, operation, root, check\n"
                 "  --gemm, --place, --batch, --seed, --max-channels\n"
                 "\nExit status: 0 complete, 1 wrong results, 2 usage, 10 out of time (go on with "
                 "the same\ncommand), else what failed.\n");
}

static int bad(att_error_t *error, enum option option, const char *value, const char *accepts)
{
    return att_fail(error, ATT_EUSAGE, "attune record: --%s '%.60s': expected %s",
                    rows[option].name, value, accepts);
}

static int add_value(att_error_t *error, enum option option, uint32_t *values, int *count,
                     uint32_t value)
{
    for (int i = 0; i < *count; i++)
        if (values[i] == value)
            return ATT_OK;
    if (*count == ATT_RECORD_VALUES)
        return att_fail(error, ATT_EUSAGE, "attune record: --%s: more than %d values",
                        rows[option].name, ATT_RECORD_VALUES);
    values[(*count)++] = value;
    return ATT_OK;
}

/* "1-4,8,16K": numbers from `least` to `most`, multiples of `step`. */
static int read_list(att_error_t *error, enum option option, const char *text, uint32_t least,
                     uint32_t most, uint32_t step, uint32_t *values, int *count)
{
    char accepts[96];
    snprintf(accepts, sizeof accepts, "numbers and ranges, such as 1-4,8, from %u to %u%s", least,
             most, step > 1 ? ", multiples of 32" : "");
    for (const char *at = text;;) {
        char word[48], *dash;
        size_t n = strcspn(at, ",");
        if (n == 0 || n >= sizeof word)
            return bad(error, option, text, accepts);
        memcpy(word, at, n);
        word[n] = '\0';
        dash = strchr(word, '-');
        if (dash != NULL)
            *dash++ = '\0';
        uint64_t from, to;
        if (att_bytes_parse(word, &from) != 0 ||
            att_bytes_parse(dash != NULL ? dash : word, &to) != 0 || from < least || to > most ||
            from > to || from % step != 0 || (dash != NULL && to - from > 4096))
            return bad(error, option, text, accepts);
        for (uint64_t value = from; value <= to; value += step) {
            int rc = add_value(error, option, values, count, (uint32_t)value);
            if (rc != ATT_OK)
                return rc;
        }
        if (at[n] == '\0')
            return ATT_OK;
        at += n + 1;
    }
}

static int read_number(att_error_t *error, enum option option, const char *text, double least,
                       double most, double *value)
{
    char *end, accepts[64];
    errno = 0;
    double number = strtod(text, &end);
    if (errno != 0 || end == text || *end != '\0' || !(number >= least && number <= most)) {
        snprintf(accepts, sizeof accepts, "a number from %g to %g", least, most);
        return bad(error, option, text, accepts);
    }
    *value = number;
    return ATT_OK;
}

static int read_int(att_error_t *error, enum option option, const char *text, int least, int most,
                    int *value)
{
    double number = 0;
    int rc = read_number(error, option, text, least, most, &number);
    *value = (int)number;
    return rc;
}

static int take(att_record_options_t *o, enum option option, const char *value, att_error_t *error)
{
    switch (option) {
    case FROM_SWEEP:
        o->from_sweep = value;
        return ATT_OK;
    case OUT:
        o->out = value;
        return ATT_OK;
    case PREFIX:
        if (value[0] == '\0' || strchr(value, '/') != NULL || strlen(value) > 100)
            return bad(error, option, value, "a short name without '/'");
        o->prefix = value;
        return ATT_OK;
    case DEVICE:
        o->device = value;
        return ATT_OK;
    case UNITS:
        return read_int(error, option, value, 1, 4096, &o->device_units);
    case DESCRIPTION:
        o->description = value;
        return ATT_OK;
    case CHANNELS:
        return read_list(error, option, value, 1, 64, 1, o->channels, &o->channel_count);
    case CHUNKS:
        return read_list(error, option, value, 16, 16u << 20, 1, o->chunks, &o->chunk_count);
    case THREADS:
        return read_list(error, option, value, 64, 640, 32, o->threads, &o->thread_count);
    case REPEATS:
        return read_int(error, option, value, 1, 1000, &o->repeats);
    case AGAIN:
        return read_int(error, option, value, 0, 10000, &o->again);
    case AGAIN_SHARE:
        return read_number(error, option, value, 0, 1, &o->again_share);
    case FRONT:
        return read_int(error, option, value, 0, 10000, &o->front);
    case FRONT_SAMPLES:
        return read_int(error, option, value, 0, 10000, &o->front_samples);
    case BUDGET:
        return read_number(error, option, value, 1, 1e6, &o->budget_s);
    default:
        return att_fail(error, ATT_EUSAGE, "attune record: option %d", (int)option);
    }
}

/* The number of the option that a word names, with its value if the word has one; OPTIONS: none of
 * record's. */
static enum option option_of(const char *word, const char **value)
{
    *value = NULL;
    if (strncmp(word, "--", 2) != 0)
        return OPTIONS;
    size_t n = strcspn(word + 2, "=");
    for (int i = 0; i < OPTIONS; i++)
        if (strlen(rows[i].name) == n && strncmp(word + 2, rows[i].name, n) == 0) {
            *value = word[2 + n] == '=' ? word + 3 + n : NULL;
            return (enum option)i;
        }
    return OPTIONS;
}

static int parse_bench(att_bench_options_t *bench, int argc, char **argv, att_error_t *error)
{
    static const char own[] = "attune bench:", ours[] = "attune record:";
    att_error_t inner = {""};
    char flags[OPTIONS][ATT_NEAREST_WORD];
    const char *known[OPTIONS + 1] = {NULL};
    for (int i = 0; i < OPTIONS; i++) {
        snprintf(flags[i], sizeof flags[i], "--%s", rows[i].name);
        known[i] = flags[i];
    }
    int rc = att_bench_options_parse(bench, argc, argv, known, &inner);
    if (rc != ATT_OK && strncmp(inner.text, own, strlen(own)) == 0) {
        static const char see[] = "; see attune bench --help";
        size_t n = strlen(inner.text), m = strlen(see);
        bool sees = n > m && strcmp(inner.text + n - m, see) == 0;
        att_fail(error, ATT_EUSAGE, "%s%.*s%s", ours, (int)(n - strlen(own) - (sees ? m : 0)),
                 inner.text + strlen(own), sees ? "; see attune record --help" : "");
    } else if (rc != ATT_OK && error != NULL) {
        *error = inner;
    }
    if (rc == ATT_OK && (bench->sweep || bench->has_setting))
        return att_fail(error, ATT_EUSAGE,
                        "attune record: --sweep and --setting are attune bench's");
    return rc;
}

int att_record_options_parse(att_record_options_t *options, att_bench_options_t *bench, int argc,
                             char **argv, att_error_t *error)
{
    *options = (att_record_options_t){.out = ".",
                                      .prefix = "recorded",
                                      .repeats = 3,
                                      .again = 30,
                                      .again_share = 0.05,
                                      .front = 16,
                                      .front_samples = 200};
    char **rest = calloc((size_t)argc + 1, sizeof *rest);
    int rest_count = 0, rc = ATT_OK;
    if (rest == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for the command line");
    rest[rest_count++] = argv[0];
    for (int i = 1; rc == ATT_OK && i < argc; i++) {
        const char *value;
        enum option option = option_of(argv[i], &value);
        if (option == OPTIONS) {
            rest[rest_count++] = argv[i];
            continue;
        }
        if (value == NULL && i + 1 < argc)
            value = argv[++i];
        rc = value != NULL ? take(options, option, value, error)
                           : att_fail(error, ATT_EUSAGE, "attune record: --%s needs a value",
                                      rows[option].name);
    }
    if (rc == ATT_OK)
        rc = parse_bench(bench, rest_count, rest, error);
    free(rest);
    return rc;
}
