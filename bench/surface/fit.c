/*
 * fit: chooses the constants of a surface so that it reproduces published numbers.
 *
 *     surface-fit SPEC.json [SECONDS]
 *
 * The spec names a surface file, the constants that may move (with bounds), those that are tied to
 * others by a factor, and the targets (what was published). Differential evolution on the
 * logarithms of the constants (Storn and Price, 1997; DE/best/1/bin with dither), from a fixed
 * seed; the outcome is written back into the surface file with four digits, and a table shows every
 * target. The surface is judged through the same calls that its users make. Constants that no
 * target holds stay where the spec's bounds let them: the surface file must name them under
 * "undetermined".
 */
#include "base/names.h"
#include "surface/surface.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FREE_MAX = 96, TARGET_MAX = 64, POPULATION = 48, GRID_MAX = 64 };

typedef enum kind {
    KIND_VALUE,  /* a setting's bandwidth */
    KIND_BEST,   /* the optimum's */
    KIND_PEAK,   /* where a sweep of one knob has its best */
    KIND_REGRET, /* one load's optimum under another load */
    KIND_RATIO,  /* a setting's, or the optimum's, bandwidth over NCCL's choice */
    KIND_MEAN,   /* geometric mean of the optimum over NCCL's choice, sizes in powers of four */
    KIND_RANGE   /* the same for every size: each within the bounds */
} att_fit_kind_t;

typedef struct target {
    att_fit_kind_t kind;
    char label[96];
    int collective;
    uint64_t bytes, bytes_to; /* MEAN, RANGE: from bytes to bytes_to */
    att_setting_t setting;    /* VALUE, RATIO: what is run; BEST, PEAK: the knobs that are fixed */
    int all_knobs;       /* BEST: also what stock NCCL cannot set a call (threads, transport) */
    char vary;           /* PEAK: 'c' channels, 't' threads */
    int at;              /* PEAK: where the best value lies, or next to it */
    int load, from_load; /* REGRET: the best setting of from_load is run under load */
    double low, high;    /* GB/s; REGRET: share of the best */
    double weight;
} target_t;

static json_t *document;
static json_t *slots[FREE_MAX]; /* JSON reals that may move */
static double low[FREE_MAX], high[FREE_MAX];
static int free_count;
static json_t *followers[FREE_MAX], *leaders[FREE_MAX]; /* follower = factor * leader */
static double factors[FREE_MAX];
static int tied_count;
static target_t targets[TARGET_MAX];
static int target_count;
static char surface_path[4096];

static void die(const char *what, const char *where)
{
    fprintf(stderr, "surface-fit: %s: %s\n", where, what);
    exit(2);
}

static json_t *load_json(const char *path)
{
    json_error_t error;
    json_t *loaded = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (loaded == NULL)
        die(error.text, path);
    return loaded;
}

/* A step of a pointer names an element of an array by its "name", "collective" or "transport", or
 * by "algorithm.protocol". */
static json_t *step_down(json_t *from, const char *word)
{
    if (json_is_object(from))
        return json_object_get(from, word);
    size_t i;
    json_t *element;
    json_array_foreach(from, i, element)
    {
        const char *name = NULL, *algorithm = NULL, *protocol = NULL;
        json_unpack(element, "{s?s}", "name", &name);
        if (name == NULL)
            json_unpack(element, "{s?s}", "collective", &name);
        if (name == NULL)
            json_unpack(element, "{s?s}", "transport", &name);
        char both[64] = "";
        if (json_unpack(element, "{s:s,s:s}", "algorithm", &algorithm, "protocol", &protocol) == 0)
            snprintf(both, sizeof both, "%s.%s", algorithm, protocol);
        if ((name != NULL && strcmp(name, word) == 0) || strcmp(both, word) == 0)
            return element;
    }
    return NULL;
}

static json_t *find(const char *pointer)
{
    char copy[256];
    snprintf(copy, sizeof copy, "%s", pointer);
    json_t *at = document;
    for (char *rest = copy, *word; at != NULL && (word = strsep(&rest, "/")) != NULL;)
        if (*word != '\0')
            at = step_down(at, word);
    if (!json_is_real(at))
        die("names no number with a decimal point in the surface", pointer);
    return at;
}

static struct att_surface *parse_document(void)
{
    char *text = json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(6));
    struct att_surface *surface;
    att_error_t error;
    if (att_surface_parse(text, strlen(text), &surface, &error) != ATT_OK)
        die(error.text, surface_path);
    free(text);
    return surface;
}

static double gbs(const struct att_surface *s, const target_t *t, att_setting_t setting, int load)
{
    double us = att_surface_duration_us(s, t->collective, t->bytes, setting, load);
    return us > 0 ? (double)t->bytes / us / 1e3 : 0;
}

static int chunk_grid(uint32_t *grid, double step)
{
    int n = 0;
    for (double c = 4096; n < GRID_MAX && c < 2.2e6; c *= step)
        grid[n++] = (uint32_t)c / 512 * 512;
    grid[n - 1] = 2097152;
    return n;
}

/* The best setting over a grid of the knobs that t leaves open. */
static double best(const struct att_surface *s, const target_t *t, int load, att_setting_t *where)
{
    static const uint16_t channels[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64};
    static const uint16_t threads[] = {96, 160, 224, 320, 512, 640};
    uint32_t chunks[GRID_MAX];
    int chunk_count = chunk_grid(chunks, t->bytes_to > 0 ? 1.41 : 1.19);
    uint32_t offered = att_surface_pairs(s, t->collective);
    double top = 0;
    for (int pair = 0; pair < ATT_PAIR_COUNT; pair++) {
        att_setting_t x = t->setting;
        if (!(offered & 1u << pair) ||
            (x.algorithm >= 0 && (x.algorithm != pair / 3 || x.protocol != pair % 3)))
            continue;
        x.algorithm = (int8_t)(pair / 3);
        x.protocol = (int8_t)(pair % 3);
        for (int tr = t->all_knobs ? 0 : -1; tr < (t->all_knobs ? 2 : 0); tr++)
            for (int nt = 0; nt < (t->all_knobs ? 6 : 1); nt++)
                for (size_t nc = 0; nc < sizeof channels / sizeof channels[0];
                     nc += (t->all_knobs || t->bytes_to > 0) && nc > 0 ? 2 : 1)
                    for (int c = 0; c < chunk_count; c += t->all_knobs ? 3 : 1) {
                        x.transport = (int8_t)tr;
                        x.threads = t->all_knobs ? threads[nt] : 0;
                        x.channels = channels[nc];
                        x.chunk_bytes = chunks[c];
                        double value = gbs(s, t, x, load);
                        if (value > top) {
                            top = value;
                            if (where != NULL)
                                *where = x;
                        }
                    }
    }
    return top;
}

/* The optimum over NCCL's choice at one size, of what t leaves open. */
static double gain(const struct att_surface *s, const target_t *t, uint64_t bytes)
{
    target_t at = *t;
    at.bytes = bytes;
    double native = gbs(s, &at, ATT_SETTING_KEEP, t->load);
    double top = t->kind == KIND_RATIO && t->setting.channels != 0
                     ? gbs(s, &at, t->setting, t->load)
                     : fmax(best(s, &at, t->load, NULL), native);
    return native > 0 ? top / native : 0;
}

/* MEAN: the mean. RANGE: the gain that is farthest outside, or the largest. */
static double gain_over_sizes(const struct att_surface *s, const target_t *t)
{
    double logs = 0, farthest = 0, off = -1;
    int count = 0;
    for (uint64_t bytes = t->bytes; bytes <= t->bytes_to; bytes *= 4, count++) {
        double value = gain(s, t, bytes);
        double miss = fmax(t->low - value, value - t->high);
        logs += log(fmax(value, 1e-9));
        if (count == 0 || miss > off) {
            off = miss;
            farthest = value;
        }
    }
    return t->kind == KIND_MEAN ? exp(logs / count) : farthest;
}

/* How far the best of a one-knob sweep lies above the named point and its neighbours. */
static double peak_excess(const struct att_surface *s, const target_t *t, int *at)
{
    double top = 0, named = 0;
    int step = t->vary == 'c' ? 1 : 32;
    for (int v = t->vary == 'c' ? 1 : 64; v <= (t->vary == 'c' ? 64 : 640); v += step) {
        att_setting_t x = t->setting;
        if (t->vary == 'c')
            x.channels = (uint16_t)v;
        else
            x.threads = (uint16_t)v;
        double value = gbs(s, t, x, t->load);
        if (abs(v - t->at) <= step)
            named = fmax(named, value);
        if (value > top) {
            top = value;
            *at = v;
        }
    }
    return top / named - 1;
}

/* 0 inside [low, high], else the squared relative distance. */
static double outside(const target_t *t, double value)
{
    double off = value < t->low    ? t->low / fmax(value, 1e-9) - 1
                 : value > t->high ? value / t->high - 1
                                   : 0;
    double middle = value / (0.5 * (t->low + t->high)) - 1;
    return t->weight * (off * off + 1e-3 * middle * middle);
}

static double judge(const struct att_surface *s, int show)
{
    double sum = 0;
    for (int i = 0; i < target_count; i++) {
        const target_t *t = &targets[i];
        att_setting_t where = t->setting;
        char text[ATT_SETTING_TEXT];
        double value = 0, miss = 0;
        int at = 0;
        switch (t->kind) {
        case KIND_VALUE:
            value = gbs(s, t, t->setting, t->load);
            break;
        case KIND_BEST:
            value = best(s, t, t->load, &where);
            break;
        case KIND_REGRET: {
            double top = best(s, t, t->load, NULL);
            best(s, t, t->from_load, &where);
            value = gbs(s, t, where, t->load) / top;
            break;
        }
        case KIND_RATIO:
            value = gain(s, t, t->bytes);
            break;
        case KIND_MEAN:
        case KIND_RANGE:
            value = gain_over_sizes(s, t);
            break;
        case KIND_PEAK: {
            double excess = peak_excess(s, t, &at);
            miss = excess > 0 ? t->weight * (1e-4 + 100 * excess * excess) : 0;
            break;
        }
        }
        if (t->kind != KIND_PEAK)
            miss = outside(t, value);
        sum += miss;
        if (show && t->kind == KIND_PEAK)
            printf("%-34s wanted %d, best at %d %s\n", t->label, t->at, at, miss > 0 ? "*" : "");
        else if (show)
            printf("%-34s wanted %7.3f .. %7.3f, got %7.3f %s  %s\n", t->label, t->low, t->high,
                   value, value < t->low || value > t->high ? "*" : " ",
                   att_setting_text(where, text, sizeof text));
    }
    return sum;
}

static void set_real(json_t *slot, double value)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%.4g", value);
    json_real_set(slot, strtod(digits, NULL));
}

static double try_constants(const double *logs)
{
    for (int i = 0; i < free_count; i++)
        set_real(slots[i], exp(logs[i]));
    for (int i = 0; i < tied_count; i++)
        set_real(followers[i], factors[i] * json_real_value(leaders[i]));
    struct att_surface *surface = parse_document();
    double miss = judge(surface, 0);
    att_surface_close(surface);
    return miss;
}

static double random_unit(void)
{
    static unsigned short state[3] = {1, 2, 3};
    return erand48(state);
}

static void evolve(double seconds)
{
    static double member[POPULATION][FREE_MAX], miss[POPULATION];
    struct timespec t0, now;
    clock_gettime(CLOCK_MONOTONIC, &t0);
    int top = 0;
    for (int m = 0; m < POPULATION; m++) {
        for (int i = 0; i < free_count; i++) {
            double start = log(fmin(fmax(json_real_value(slots[i]), low[i]), high[i]));
            member[m][i] =
                m == 0 ? start : log(low[i]) + random_unit() * (log(high[i]) - log(low[i]));
            if (m % 2 == 1)
                member[m][i] = 0.7 * start + 0.3 * member[m][i];
        }
    }
    for (int m = 0; m < POPULATION; m++) {
        miss[m] = try_constants(member[m]);
        top = miss[m] < miss[top] ? m : top;
    }
    double elapsed = 0;
    for (int generation = 0; elapsed < seconds && miss[top] > 1e-7; generation++) {
        for (int m = 0; m < POPULATION; m++) {
            int a = (int)(random_unit() * POPULATION), b = (int)(random_unit() * POPULATION),
                c = (int)(random_unit() * POPULATION);
            double scale = 0.3 + 0.6 * random_unit();
            double trial[FREE_MAX];
            int sure = (int)(random_unit() * free_count);
            for (int i = 0; i < free_count; i++) {
                double from = m % 2 ? member[top][i] : member[a][i];
                trial[i] = i == sure || random_unit() < 0.7
                               ? from + scale * (member[b][i] - member[c][i])
                               : member[m][i];
                trial[i] = fmin(fmax(trial[i], log(low[i])), log(high[i]));
            }
            double got = try_constants(trial);
            if (got <= miss[m]) {
                memcpy(member[m], trial, sizeof trial);
                miss[m] = got;
                top = got < miss[top] ? m : top;
            }
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
        elapsed = (double)(now.tv_sec - t0.tv_sec) + 1e-9 * (double)(now.tv_nsec - t0.tv_nsec);
        if (generation % 50 == 0)
            fprintf(stderr, "generation %d, %.0f s, miss %.3g\n", generation, elapsed, miss[top]);
    }
    try_constants(member[top]);
}

static void read_setting(json_t *from, att_setting_t *setting)
{
    const char *a = "keep", *p = "keep", *t = "keep";
    int channels = 0, threads = 0, chunk = 0;
    json_unpack(from, "{s?s,s?s,s?s,s?i,s?i,s?i}", "algorithm", &a, "protocol", &p, "transport", &t,
                "channels", &channels, "threads", &threads, "chunk_bytes", &chunk);
    *setting = (att_setting_t){.algorithm = (int8_t)att_algorithm_parse(a),
                               .protocol = (int8_t)att_protocol_parse(p),
                               .transport = (int8_t)att_transport_parse(t),
                               .channels = (uint16_t)channels,
                               .threads = (uint16_t)threads,
                               .chunk_bytes = (uint32_t)chunk};
}

static void read_target(json_t *from, const struct att_surface *surface)
{
    const char *kind = "", *label = "", *coll = "", *load = "none", *from_load = "none",
               *vary = "channels";
    json_int_t bytes = 0, bytes_to = 0;
    target_t t = {.weight = 1};
    json_t *setting = NULL;
    json_error_t error;
    if (json_unpack_ex(from, &error, JSON_STRICT,
                       "{s:s,s:s,s:s,s:I,s?I,s?s,s?s,s?s,s?i,s?b,s?F,s?F,s?F,s?o}", "kind", &kind,
                       "label", &label, "collective", &coll, "bytes", &bytes, "bytes_to", &bytes_to,
                       "load", &load, "from_load", &from_load, "vary", &vary, "at", &t.at,
                       "all_knobs", &t.all_knobs, "low", &t.low, "high", &t.high, "weight",
                       &t.weight, "setting", &setting) != 0)
        die(error.text, label);
    snprintf(t.label, sizeof t.label, "%s", label);
    t.kind = strcmp(kind, "value") == 0   ? KIND_VALUE
             : strcmp(kind, "best") == 0  ? KIND_BEST
             : strcmp(kind, "peak") == 0  ? KIND_PEAK
             : strcmp(kind, "ratio") == 0 ? KIND_RATIO
             : strcmp(kind, "mean") == 0  ? KIND_MEAN
             : strcmp(kind, "range") == 0 ? KIND_RANGE
                                          : KIND_REGRET;
    t.collective = att_collective_parse(coll);
    t.bytes = (uint64_t)bytes;
    t.bytes_to = (uint64_t)bytes_to;
    t.load = att_surface_load_index(surface, load);
    t.from_load = att_surface_load_index(surface, from_load);
    t.vary = vary[0];
    read_setting(setting, &t.setting);
    if (t.load < 0 || t.from_load < 0 || t.collective < 0 || target_count == TARGET_MAX)
        die("unknown load or collective, or too many targets", label);
    targets[target_count++] = t;
}

static void read_spec(const char *path)
{
    json_t *spec = load_json(path), *list, *element;
    const char *file;
    size_t i;
    if (json_unpack(spec, "{s:s,s:o}", "surface", &file, "free", &list) != 0)
        die("needs \"surface\" and \"free\"", path);
    snprintf(surface_path, sizeof surface_path, "%s", file);
    document = load_json(surface_path);
    json_array_foreach(list, i, element)
    {
        const char *at;
        if (free_count == FREE_MAX ||
            json_unpack(element, "[s,F,F]", &at, &low[free_count], &high[free_count]) != 0)
            die("an element of \"free\" is [pointer, low, high]", path);
        slots[free_count++] = find(at);
    }
    json_array_foreach(json_object_get(spec, "tied"), i, element)
    {
        const char *follower, *leader;
        if (tied_count == FREE_MAX ||
            json_unpack(element, "[s,s,F]", &follower, &leader, &factors[tied_count]) != 0)
            die("an element of \"tied\" is [pointer, pointer, factor]", path);
        followers[tied_count] = find(follower);
        leaders[tied_count++] = find(leader);
    }
    struct att_surface *surface = parse_document();
    json_array_foreach(json_object_get(spec, "targets"), i, element) read_target(element, surface);
    att_surface_close(surface);
    json_decref(spec);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        die("give a spec file", "usage");
    read_spec(argv[1]);
    evolve(argc > 2 ? atof(argv[2]) : 60);
    struct att_surface *surface = parse_document();
    printf("miss %.3g\n", judge(surface, 1));
    att_surface_close(surface);
    if (json_dump_file(document, surface_path, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) != 0)
        die("cannot write", surface_path);
    json_decref(document);
    return 0;
}
