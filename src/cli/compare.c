#include "cli/compare.h"

#include "profile/room.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCATTER_SIZES 5u
#define SCATTERS      3.0
#define NORMAL        1.4826 /* standard deviation over median absolute deviation */

const char *att_compare_bound_name(att_compare_bound_t bound)
{
    static const char *const names[] = {"least", "samples", "scatter over sizes", "assumed"};
    return (unsigned)bound < sizeof names / sizeof *names ? names[bound] : "unknown";
}

const char *att_compare_verdict_name(att_compare_verdict_t verdict)
{
    static const char *const names[] = {"within noise", "better", "worse", "not alike"};
    return (unsigned)verdict < sizeof names / sizeof *names ? names[verdict] : "unknown";
}

/* Unknown on one side agrees with anything. */
static bool agrees(const char *a, const char *b)
{
    return a[0] == '\0' || b[0] == '\0' || strcmp(a, b) == 0;
}

/* Everything but the size. */
static int by_kind(const att_compare_entry_t *x, const att_compare_entry_t *y)
{
    int order = strcmp(x->collective, y->collective);
    if (order == 0)
        order = strcmp(x->type, y->type);
    if (order == 0)
        order = strcmp(x->redop, y->redop);
    if (order == 0)
        order = strcmp(x->load, y->load);
    if (order == 0)
        order = x->ranks - y->ranks;
    if (order == 0)
        order = x->nodes - y->nodes;
    if (order == 0)
        order = strcmp(x->what, y->what);
    return order != 0 ? order : x->ordinal - y->ordinal;
}

static int by_entry(const void *a, const void *b)
{
    const att_compare_entry_t *x = a, *y = b;
    int order = by_kind(x, y);
    return order != 0 ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* What an old log does not say, the other file may: its only collective, its number of ranks. */
static void fill_unknown(att_compare_side_t *side, const att_compare_side_t *other)
{
    for (uint32_t i = 0; i < other->count; i++)
        if (strcmp(other->entries[i].collective, other->entries[0].collective) != 0 ||
            other->entries[i].ranks != other->entries[0].ranks)
            return;
    for (uint32_t i = 0; i < side->count; i++) {
        if (side->entries[i].collective[0] == '\0')
            memcpy(side->entries[i].collective, other->entries[0].collective,
                   sizeof side->entries[i].collective);
        if (side->entries[i].ranks == 0)
            side->entries[i].ranks = other->entries[0].ranks;
    }
}

static int check_alike(const att_compare_side_t *a, const att_compare_side_t *b, att_error_t *error)
{
    if (a->kind != b->kind)
        return att_fail(error, ATT_EMISMATCH, "not alike: %.100s is %s, %.100s is %s", a->path,
                        att_compare_kind_name(a->kind), b->path, att_compare_kind_name(b->kind));
    if (!agrees(a->clock, b->clock) && (a->clock[0] != '\0' || b->clock[0] != '\0'))
        return att_fail(error, ATT_EMISMATCH,
                        "not alike: times of %.100s are by another clock (%.80s) than those of "
                        "%.100s (%.80s)",
                        a->path, a->clock, b->path, b->clock);
    if (!agrees(a->device, b->device))
        return att_fail(error, ATT_EMISMATCH,
                        "not alike: %.100s was measured on %.60s, %.100s on %.60s", a->path,
                        a->device, b->path, b->device);
    return ATT_OK;
}

static int match(att_compare_t *c)
{
    uint32_t i = 0, k = 0;
    while (i < c->a->count || k < c->b->count) {
        int order = i == c->a->count   ? 1
                    : k == c->b->count ? -1
                                       : by_entry(&c->a->entries[i], &c->b->entries[k]);
        if (order < 0) {
            c->only_a++;
            i++;
        } else if (order > 0) {
            c->only_b++;
            k++;
        } else {
            if (att_room_append(&c->pairs, c->count, sizeof *c->pairs) != ATT_OK)
                return -ATT_ENOMEM;
            c->pairs[c->count++] = (att_compare_pair_t){.a = &c->a->entries[i],
                                                        .b = &c->b->entries[k],
                                                        .speedup = c->a->entries[i].time_us /
                                                                   c->b->entries[k].time_us};
            i++;
            k++;
        }
    }
    return ATT_OK;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of the log ratios; 0: too few sizes. */
static double scatter_of(const att_compare_pair_t *pairs, uint32_t count, double *differences)
{
    uint32_t used = 0;
    double last = NAN;
    for (uint32_t i = 0; i < count; i++) {
        if (!agrees(pairs[i].a->by, pairs[i].b->by))
            continue;
        if (!isnan(last))
            differences[used++] = fabs(log(pairs[i].speedup) - last);
        last = log(pairs[i].speedup);
    }
    if (used + 1 < SCATTER_SIZES)
        return 0;
    qsort(differences, used, sizeof *differences, by_value);
    double median = used % 2 != 0 ? differences[used / 2]
                                  : (differences[used / 2 - 1] + differences[used / 2]) / 2;
    return SCATTERS * NORMAL * median / M_SQRT2;
}

static void judge(att_compare_pair_t *p, double least, double scatter, bool scattered)
{
    if (!agrees(p->a->by, p->b->by)) {
        p->verdict = ATT_COMPARE_UNLIKE;
        return;
    }
    bool sampled = p->a->error >= 0 && p->b->error >= 0;
    double samples = sampled ? hypot(p->a->error, p->b->error) : 0;
    p->bound = least;
    p->from = ATT_COMPARE_BOUND_LEAST;
    if (samples > p->bound) {
        p->bound = samples;
        p->from = ATT_COMPARE_BOUND_SAMPLES;
    }
    if (scatter > p->bound) {
        p->bound = scatter;
        p->from = ATT_COMPARE_BOUND_SCATTER;
    }
    if (!sampled && !scattered && p->bound < ATT_COMPARE_ASSUMED) {
        p->bound = ATT_COMPARE_ASSUMED;
        p->from = ATT_COMPARE_BOUND_ASSUMED;
    }
    double ratio = log(p->speedup), limit = log1p(p->bound);
    p->verdict = ratio > limit    ? ATT_COMPARE_BETTER
                 : ratio < -limit ? ATT_COMPARE_WORSE
                                  : ATT_COMPARE_NOISE;
}

static int judge_all(att_compare_t *c, double least)
{
    double *scratch = malloc((c->count + 1) * sizeof *scratch);
    int status = scratch != NULL ? ATT_OK : -ATT_ENOMEM;
    double logs = 0;
    for (uint32_t i = 0, end; status == ATT_OK && i < c->count; i = end) {
        for (end = i; end < c->count && by_kind(c->pairs[i].a, c->pairs[end].a) == 0;)
            end++;
        double scatter = scatter_of(&c->pairs[i], end - i, scratch);
        for (uint32_t k = i; k < end; k++) {
            judge(&c->pairs[k], least, scatter, end - i >= SCATTER_SIZES);
            c->better += c->pairs[k].verdict == ATT_COMPARE_BETTER;
            c->worse += c->pairs[k].verdict == ATT_COMPARE_WORSE;
            c->noise += c->pairs[k].verdict == ATT_COMPARE_NOISE;
            c->unlike += c->pairs[k].verdict == ATT_COMPARE_UNLIKE;
            if (c->pairs[k].verdict != ATT_COMPARE_UNLIKE)
                logs += log(c->pairs[k].speedup);
        }
    }
    uint32_t alike_count = c->count - c->unlike;
    c->speedup = alike_count > 0 ? exp(logs / alike_count) : 0;
    free(scratch);
    return status;
}

static const char *describe(const att_compare_entry_t *e, char text[128])
{
    char bytes[24], ranks[24] = "";
    if (e->ranks > 0)
        snprintf(ranks, sizeof ranks, " x%d", e->ranks);
    bool loaded = e->load[0] != '\0' && strcmp(e->load, "none") != 0;
    snprintf(text, 128, "%s %s%s%s%s%s%s%s%s",
             e->collective[0] != '\0' ? e->collective : "(unknown)",
             att_bytes_text(e->bytes, bytes, sizeof bytes), ranks, e->type[0] != '\0' ? " " : "",
             e->type, e->redop[0] != '\0' ? " " : "", e->redop, loaded ? " beside " : "",
             loaded ? e->load : "");
    return text;
}

int att_compare_make(att_compare_side_t *a, att_compare_side_t *b, double least,
                     att_compare_t *compare, att_error_t *error)
{
    *compare = (att_compare_t){.a = a, .b = b};
    int status = check_alike(a, b, error);
    if (status != ATT_OK)
        return status;
    fill_unknown(a, b);
    fill_unknown(b, a);
    qsort(a->entries, a->count, sizeof *a->entries, by_entry);
    qsort(b->entries, b->count, sizeof *b->entries, by_entry);
    status = match(compare);
    if (status == ATT_OK && compare->count == 0) {
        char x[128], y[128];
        return att_fail(error, ATT_EMISMATCH,
                        "not alike: nothing was measured in both: %.100s has %s, ..., %.100s has "
                        "%s, ...",
                        a->path, describe(&a->entries[0], x), b->path, describe(&b->entries[0], y));
    }
    if (status == ATT_OK)
        status = judge_all(compare, least >= 0 ? least : ATT_COMPARE_LEAST);
    if (status != ATT_OK) {
        att_compare_free(compare);
        return att_fail(error, ATT_ENOMEM, "no memory");
    }
    return ATT_OK;
}

void att_compare_free(att_compare_t *compare)
{
    free(compare->pairs);
    compare->pairs = NULL;
}
