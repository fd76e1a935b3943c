#include "cli/plugin_check.h"

#include "base/clock.h"
#include "base/names.h"
#include "search/plugin.h"
#include "search/rehearsal.h"
#include "search/space.h"
#include "search/strategy_host.h"

#include <inttypes.h>
#include <jansson.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct bench {
    const att_plugin_check_t *check;
    struct att_strategy_host *host;
    char spec[1024];
    json_t *findings; /* NULL: print */
    int failures;
    uint64_t asks;
    double slowest_us, total_us;
} bench_t;

__attribute__((format(printf, 4, 5))) static void say(bench_t *b, bool good, const char *what,
                                                      const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    b->failures += !good;
    if (b->findings == NULL)
        printf("%s %-22s %s\n", good ? "ok  " : "FAIL", what, text);
    else
        json_array_append_new(b->findings,
                              json_pack("{s:b,s:s,s:s}", "ok", good, "check", what, "text", text));
    fflush(stdout);
}

/* One search; says so when it fails. */
static bool rehearse(bench_t *b, const char *what, att_rehearsal_t *r)
{
    att_error_t error;
    r->spec = b->spec;
    int rc = att_rehearsal_run(r, b->host, &error);
    b->asks += r->asks;
    b->total_us += r->asks_us;
    b->slowest_us = r->slowest_us > b->slowest_us ? r->slowest_us : b->slowest_us;
    if (rc != ATT_OK)
        say(b, false, what, "%s", error.text);
    return rc == ATT_OK;
}

static const char *best_text(const att_rehearsal_t *r, char text[ATT_SETTING_TEXT])
{
    return att_setting_is_keep(r->best) ? "NCCL's choice"
                                        : att_setting_text(r->best, text, ATT_SETTING_TEXT);
}

/* ---- the checks ---- */

static void check_spaces(bench_t *b)
{
    for (att_stage_t stage = 0; stage < ATT_STAGE_COUNT; stage++) {
        char what[64], text[ATT_SETTING_TEXT];
        att_rehearsal_t *r = att_rehearsal_create(stage, 1);
        if (r == NULL)
            return;
        snprintf(what, sizeof what, "space: %s", att_stage_name(stage));
        if (rehearse(b, what, r))
            say(b, true, what, "%u settings asked%s, best %s, %.1f %% over the optimum", r->count,
                r->finished ? "" : " (cut there: it does not end by itself)", best_text(r, text),
                100 * att_rehearsal_gap(r));
        att_rehearsal_destroy(r);
    }
}

static void check_determinism(bench_t *b)
{
    static const char what[] = "determinism";
    att_rehearsal_t *one = att_rehearsal_create(ATT_STAGE_SIX, 7),
                    *two = att_rehearsal_create(ATT_STAGE_SIX, 7);
    if (one != NULL && two != NULL && rehearse(b, what, one) && rehearse(b, what, two)) {
        uint32_t at = att_rehearsal_difference(one, two);
        char a[ATT_SETTING_TEXT], c[ATT_SETTING_TEXT];
        if (at == one->count && at == two->count && att_setting_equal(one->best, two->best))
            say(b, true, what, "the same seed and results give the same %u questions", at);
        else if (at < one->count && at < two->count)
            say(b, false, what,
                "the same seed and results: question %u is %s once, %s the other time", at + 1,
                att_setting_text(one->asked[at], a, sizeof a),
                att_setting_text(two->asked[at], c, sizeof c));
        else
            say(b, false, what,
                "the same seed and results give %u questions once, %u the other time, or another "
                "best",
                one->count, two->count);
    }
    att_rehearsal_destroy(one);
    att_rehearsal_destroy(two);
}

static void check_outcomes(bench_t *b)
{
    static const struct {
        att_outcome_t outcome;
        uint32_t every;
        const char *what;
    } cases[] = {
        {ATT_OUTCOME_TIMEOUT, 3, "some time out"}, {ATT_OUTCOME_ILLEGAL, 3, "some are illegal"},
        {ATT_OUTCOME_LOSSY, 3, "some are lost"},   {ATT_OUTCOME_SLOW, 3, "some are too slow"},
        {ATT_OUTCOME_TIMEOUT, 1, "all time out"},  {ATT_OUTCOME_LOSSY, 1, "all are lost"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char what[64];
        att_rehearsal_t *r = att_rehearsal_create(ATT_STAGE_SIX, 3);
        if (r == NULL)
            return;
        r->outcome = cases[i].outcome;
        r->every = cases[i].every;
        r->backwards = true; /* results come in any order */
        snprintf(what, sizeof what, "trials: %s", cases[i].what);
        if (rehearse(b, what, r))
            say(b, true, what, "%u settings asked%s", r->count, r->finished ? "" : " (cut there)");
        att_rehearsal_destroy(r);
    }
}

static void check_one_at_a_time(bench_t *b)
{
    static const char what[] = "one at a time";
    att_rehearsal_t *r = att_rehearsal_create(ATT_STAGE_SIX, 5);
    if (r == NULL)
        return;
    r->most = 1;
    if (rehearse(b, what, r))
        say(b, true, what, "%u settings asked%s", r->count, r->finished ? "" : " (cut there)");
    att_rehearsal_destroy(r);
}

/* A lease that runs out while the strategy waits, and a search that is cut short, as by the end of
 * the job: both must leave the host able to begin another search. */
static void check_abandoned(bench_t *b)
{
    static const char what[] = "cut short";
    att_rehearsal_t *r = att_rehearsal_create(ATT_STAGE_SIX, 9);
    if (r == NULL)
        return;
    r->limit = 3;
    r->leave_open = true;
    if (rehearse(b, what, r))
        say(b, true, what, "a search with open questions was dropped");
    att_rehearsal_destroy(r);
}

static void check_all(bench_t *b, const att_strategy_t *s)
{
    say(b, true, "loads", "ABI %u, %s version %s, %u parameters%s%s%s%s", s->abi, s->name,
        s->version, s->parameter_count, ATT_STRATEGY_HAS(s, check) ? ", which it checks" : "",
        s->flags & ATT_STRATEGY_BATCH ? ", several settings at once" : "",
        ATT_STRATEGY_HAS(s, samples) ? ", says how many samples" : "",
        s->save != NULL ? ", saves" : "");
    att_error_t error;
    int rc = att_strategy_host_check(b->host, b->spec, &error);
    if (rc != ATT_OK) {
        say(b, false, "options", "%s", error.text);
        return;
    }
    check_spaces(b);
    check_determinism(b);
    check_outcomes(b);
    check_one_at_a_time(b);
    check_abandoned(b);
    if (b->asks > 0)
        say(b, true, "speed", "%.0f us an answer, the slowest %.0f us, over %" PRIu64 " answers",
            b->total_us / (double)b->asks, b->slowest_us, b->asks);
}

int att_plugin_check_run(const att_plugin_check_t *check, att_error_t *error)
{
    bench_t b = {.check = check, .findings = check->as_json ? json_array() : NULL};
    const att_strategy_t *strategy;
    char folder[1024];
    if (strlen(check->file) >= sizeof folder)
        return att_fail(error, ATT_EUSAGE, "the name of the file is too long");
    /* The host forks before the library is in this process. */
    strcpy(folder, check->file);
    int rc = att_strategy_host_create(dirname(folder), ATT_HOST_CHILD, check->deadline_s, &b.host,
                                      error);
    if (rc != ATT_OK)
        return rc;
    att_error_t why;
    if (att_plugin_load_probed(check->file, check->deadline_s, &strategy, &why) != ATT_OK) {
        say(&b, false, "loads", "%s", why.text);
    } else {
        snprintf(b.spec, sizeof b.spec, "%s%s%s", strategy->name, check->options[0] ? ":" : "",
                 check->options);
        check_all(&b, strategy);
    }
    att_strategy_host_destroy(b.host);
    if (b.findings != NULL) {
        json_t *root = json_pack("{s:i,s:s,s:i,s:o}", "version", 1, "file", check->file, "failures",
                                 b.failures, "findings", b.findings);
        json_dumpf(root, stdout, JSON_INDENT(1));
        putchar('\n');
        json_decref(root);
    } else {
        printf(b.failures == 0 ? "%s: conforms\n" : "%s: %d failure%s\n", check->file, b.failures,
               b.failures == 1 ? "" : "s");
    }
    return b.failures;
}
