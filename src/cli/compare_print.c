/* A comparison as a table for people and as JSON for programs. */
#include "cli/compare.h"

#include "base/one_line.h"
#include "cli/json_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Of rows: ranges of sizes that shifted, cliffs. */
typedef void (*finding_fn)(void *context, const char *collective, const char *side,
                           const att_regression_range_t *range);

static att_result_rows_t slice(const att_result_rows_t *rows, uint32_t from, uint32_t to)
{
    return (att_result_rows_t){.rows = rows->rows + from, .count = to - from};
}

static bool same_series(const att_result_row_t *x, const att_result_row_t *y)
{
    return (x->collective[0] == '\0' || y->collective[0] == '\0' ||
            strcmp(x->collective, y->collective) == 0) &&
           strcmp(x->type, y->type) == 0 && strcmp(x->redop, y->redop) == 0;
}

static void find_cliffs(const att_result_rows_t *rows, const char *side, finding_fn take,
                        void *context)
{
    for (uint32_t i = 0, end; i < rows->count; i = end) {
        end = att_result_rows_series(rows, i);
        att_result_rows_t series = slice(rows, i, end);
        att_regression_range_t cliff = {.confidence = -1};
        cliff.from_bytes = att_regression_cliff(&series, &cliff.effect);
        if (cliff.from_bytes != 0)
            take(context, rows->rows[i].collective, side, &cliff);
    }
}

static void find_ranges(const att_compare_t *c, finding_fn take, void *context)
{
    const att_result_rows_t *a = &c->a->rows, *b = &c->b->rows;
    for (uint32_t i = 0, end; i < a->count; i = end) {
        end = att_result_rows_series(a, i);
        for (uint32_t k = 0, stop; k < b->count; k = stop) {
            stop = att_result_rows_series(b, k);
            if (!same_series(&a->rows[i], &b->rows[k]))
                continue;
            att_result_rows_t x = slice(a, i, end), y = slice(b, k, stop);
            att_regression_t *r = malloc(sizeof *r);
            if (r == NULL)
                return;
            att_regression_compare(&x, &y, r);
            for (uint32_t n = 0; n < r->count; n++)
                take(context, a->rows[i].collective, NULL, &r->ranges[n]);
            free(r);
        }
    }
}

/* --- text ---------------------------------------------------------------------------------------
 */

static void print_side(const char *letter, const att_compare_side_t *side, FILE *out)
{
    char path[ATT_ONE_LINE];
    fprintf(out, "# %s: %s", letter, att_one_line(side->path, path, sizeof path));
    const char *parts[] = {side->nccl[0] != '\0' ? "NCCL " : "", side->nccl};
    if (side->nccl[0] != '\0')
        fprintf(out, ", %s%s", parts[0], parts[1]);
    if (side->device[0] != '\0')
        fprintf(out, ", %s", side->device);
    if (side->clock[0] != '\0' && strcmp(side->clock, "wall") != 0)
        fprintf(out, ", %s", side->clock);
    fputc('\n', out);
}

static void entry_text(const att_compare_entry_t *e, char text[128])
{
    char bytes[24], ranks[24] = "", ordinal[24] = "";
    if (e->ranks > 0)
        snprintf(ranks, sizeof ranks, " x%d", e->ranks);
    if (e->ordinal > 0)
        snprintf(ordinal, sizeof ordinal, " #%d", e->ordinal + 1);
    snprintf(text, 128, "%s %s%s%s%s%s%s%s", e->collective[0] != '\0' ? e->collective : "-",
             att_bytes_text(e->bytes, bytes, sizeof bytes), ranks, ordinal,
             e->type[0] != '\0' ? " " : "", e->type,
             e->load[0] != '\0' && strcmp(e->load, "none") != 0 ? " beside " : "",
             strcmp(e->load, "none") != 0 ? e->load : "");
}

static void print_finding(void *context, const char *collective, const char *side,
                          const att_regression_range_t *r)
{
    FILE *out = context;
    char from[24], to[24];
    att_bytes_text(r->from_bytes, from, sizeof from);
    const char *space = collective[0] != '\0' ? " " : "";
    if (side != NULL)
        fprintf(out,
                "# cliff in %s: %s%sfrom %s on, %.0f %% of the bus bandwidth of smaller sizes is "
                "lost\n",
                side, collective, space, from, 100 * r->effect);
    else
        fprintf(out, "# shift: %s%s%s to %s (%u sizes): B takes %+.1f %% time (confidence %.3f)\n",
                collective, space, from, att_bytes_text(r->to_bytes, to, sizeof to), r->sizes,
                100 * r->effect, r->confidence);
}

void att_compare_print(const att_compare_t *c, FILE *out)
{
    int width = 4;
    char text[128];
    print_side("A", c->a, out);
    print_side("B", c->b, out);
    for (uint32_t i = 0; i < c->count; i++) {
        entry_text(c->pairs[i].a, text);
        width = (int)strlen(text) > width ? (int)strlen(text) : width;
    }
    fprintf(out, "# %-*s  %-13s  %10s  %10s  %7s  %7s  %-18s  %s\n", width, "task", "what", "A us",
            "B us", "A/B", "noise", "bound by", "B is");
    for (uint32_t i = 0; i < c->count; i++) {
        const att_compare_pair_t *p = &c->pairs[i];
        entry_text(p->a, text);
        bool alike = p->verdict != ATT_COMPARE_UNLIKE;
        char bound[16] = "-";
        if (alike)
            snprintf(bound, sizeof bound, "%.1f %%", 100 * p->bound);
        fprintf(out, "  %-*s  %-13s  %10.2f  %10.2f  %7.3f  %7s  %-18s  %s", width, text,
                p->a->what, p->a->time_us, p->b->time_us, p->speedup, bound,
                alike ? att_compare_bound_name(p->from) : "-",
                att_compare_verdict_name(p->verdict));
        if (p->verdict == ATT_COMPARE_UNLIKE)
            fprintf(out, ": A's time is by %s, B's by %s", p->a->by, p->b->by);
        else if (p->a->setting[0] != '\0' && p->b->setting[0] != '\0' &&
                 strcmp(p->a->setting, p->b->setting) != 0)
            fprintf(out, "  (%s -> %s)", p->a->setting, p->b->setting);
        fputc('\n', out);
    }
    find_ranges(c, print_finding, out);
    find_cliffs(&c->a->rows, "A", print_finding, out);
    find_cliffs(&c->b->rows, "B", print_finding, out);
    fprintf(out,
            "# %u compared: B is better in %u, worse in %u, within noise in %u, not alike in %u; "
            "geometric mean "
            "of A/B %.3f; only in A %u, only in B %u\n",
            c->count, c->better, c->worse, c->noise, c->unlike, c->speedup, c->only_a, c->only_b);
}

/* --- JSON ---------------------------------------------------------------------------------------
 */

static json_t *text_or_null(const char *text)
{
    return text[0] != '\0' ? att_json_text(text) : json_null();
}

static json_t *side_json(const att_compare_side_t *side)
{
    return json_pack("{s:o,s:s,s:o,s:o,s:o}", "path", att_json_text(side->path), "kind",
                     att_compare_kind_name(side->kind), "nccl", text_or_null(side->nccl), "device",
                     text_or_null(side->device), "clock", text_or_null(side->clock));
}

static json_t *pair_json(const att_compare_pair_t *p)
{
    const att_compare_entry_t *e = p->a;
    return json_pack(
        "{s:o,s:I,s:o,s:o,s:o,s:o,s:o,s:i,s:s,s:f,s:f,s:f,s:f,s:s,s:s,s:o,s:o,s:o,s:o}",
        "collective", text_or_null(e->collective), "bytes", (json_int_t)e->bytes, "ranks",
        e->ranks > 0 ? json_integer(e->ranks) : json_null(), "nodes",
        e->nodes > 0 ? json_integer(e->nodes) : json_null(), "type", text_or_null(e->type), "redop",
        text_or_null(e->redop), "load", text_or_null(e->load), "ordinal", e->ordinal, "what",
        e->what, "a_us", e->time_us, "b_us", p->b->time_us, "speedup", p->speedup, "noise_bound",
        p->bound, "noise_from", att_compare_bound_name(p->from), "verdict",
        att_compare_verdict_name(p->verdict), "a_setting", text_or_null(e->setting), "b_setting",
        text_or_null(p->b->setting), "a_by", text_or_null(e->by), "b_by", text_or_null(p->b->by));
}

typedef struct lists {
    json_t *ranges, *cliffs;
} lists_t;

static void add_finding(void *context, const char *collective, const char *side,
                        const att_regression_range_t *r)
{
    lists_t *lists = context;
    if (side != NULL)
        json_array_append_new(lists->cliffs,
                              json_pack("{s:s,s:o,s:I,s:f}", "side", side, "collective",
                                        text_or_null(collective), "from_bytes",
                                        (json_int_t)r->from_bytes, "bandwidth_lost", r->effect));
    else
        json_array_append_new(lists->ranges,
                              json_pack("{s:o,s:I,s:I,s:i,s:f,s:f}", "collective",
                                        text_or_null(collective), "from_bytes",
                                        (json_int_t)r->from_bytes, "to_bytes",
                                        (json_int_t)r->to_bytes, "sizes", (int)r->sizes,
                                        "time_change", r->effect, "confidence", r->confidence));
}

int att_compare_json(const att_compare_t *c, FILE *out, att_error_t *error)
{
    lists_t lists = {json_array(), json_array()};
    json_t *entries = json_array();
    for (uint32_t i = 0; i < c->count; i++)
        json_array_append_new(entries, pair_json(&c->pairs[i]));
    find_ranges(c, add_finding, &lists);
    find_cliffs(&c->a->rows, "A", add_finding, &lists);
    find_cliffs(&c->b->rows, "B", add_finding, &lists);
    json_t *root =
        json_pack("{s:i,s:s,s:s,s:o,s:o,s:{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:o},s:o,s:o,s:o}",
                  "version", 1, "attune", ATTUNE_VERSION, "units",
                  "us = microseconds; speedup = time of A over time of B; shares of 1", "a",
                  side_json(c->a), "b", side_json(c->b), "summary", "compared", (int)c->count,
                  "better", (int)c->better, "worse", (int)c->worse, "within_noise", (int)c->noise,
                  "not_alike", (int)c->unlike, "only_a", (int)c->only_a, "only_b", (int)c->only_b,
                  "speedup_geometric_mean", c->speedup > 0 ? json_real(c->speedup) : json_null(),
                  "entries", entries, "ranges", lists.ranges, "cliffs", lists.cliffs);
    if (root == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory");
    json_dumpf(root, out, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    fputc('\n', out);
    json_decref(root);
    return ATT_OK;
}
