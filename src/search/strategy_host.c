#include "search/strategy_host.h"

#include "base/clock.h"
#include "search/child.h"
#include "search/instance.h"
#include "search/plugin.h"
#include "search/probe.h"
#include "search/wire.h"
#include "search/worker.h"

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define MOST_SETTINGS 64

struct att_strategy_host {
    char *path;
    double deadline_s;
    struct att_child *child; /* NULL in process */
    att_host_usage_t usage;
};

/* A connection to a worker: requests that await their answer, and since when. */
typedef struct att_link {
    struct att_strategy_host *host;
    struct att_wire *wire;
    int worker;
    uint32_t open; /* requests not answered */
    uint64_t since_ns;
} att_link_t;

struct att_search {
    struct att_strategy_host *host;
    att_space_t *space;
    struct att_instance *instance; /* in process */
    att_link_t link;               /* in a child */
    uint64_t offline_samples;      /* counted in the host's usage so far */
    bool asked;                    /* an ask is open */
    uint32_t most;
    bool answered;
    att_setting_t settings[MOST_SETTINGS];
    uint32_t samples[MOST_SETTINGS];
    uint32_t count;
    att_setting_t best;
    int failed; /* sticky */
    att_error_t why;
};

int att_strategy_host_create(const char *path, att_host_mode_t mode, double deadline_s,
                             struct att_strategy_host **out, att_error_t *error)
{
    struct att_strategy_host *host = calloc(1, sizeof *host);
    char *whole = att_plugin_path(path);
    if (host == NULL || whole == NULL) {
        free(host);
        free(whole);
        return att_fail(error, ATT_ENOMEM, "no memory for a strategy host");
    }
    host->path = whole;
    host->deadline_s = deadline_s;
    int rc = ATT_OK;
    if (mode == ATT_HOST_CHILD)
        rc = att_child_start(att_worker_serve, &host->child, error);
    if (rc != ATT_OK) {
        free(host->path);
        free(host);
        return rc;
    }
    *out = host;
    return ATT_OK;
}

void att_strategy_host_destroy(struct att_strategy_host *host)
{
    if (host == NULL)
        return;
    att_child_stop(host->child);
    free(host->path);
    free(host);
}

int att_strategy_host_list(const char *path, att_plugin_fn each, void *context, att_error_t *error)
{
    char *whole = att_plugin_path(path);
    if (whole == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory to list strategies");
    int rc = att_plugin_each(whole, each, context, error);
    free(whole);
    return rc;
}

void att_strategy_host_usage(const struct att_strategy_host *host, att_host_usage_t *usage)
{
    *usage = host->usage;
}

/* ---- link ---- */

static int link_open(struct att_strategy_host *host, att_link_t *link, att_error_t *error)
{
    int fd;
    int rc = att_child_worker(host->child, &link->worker, &fd, error);
    if (rc != ATT_OK)
        return rc;
    link->host = host;
    link->wire = att_wire_open(fd);
    if (link->wire == NULL) {
        att_child_release(host->child, link->worker);
        return att_fail(error, ATT_ENOMEM, "no memory for a search");
    }
    return ATT_OK;
}

static void link_close(att_link_t *link)
{
    if (link->wire == NULL)
        return;
    /* With a request open the worker may hang in it; otherwise it sees the end of file. */
    if (link->open > 0)
        att_child_kill(link->host->child, link->worker);
    att_wire_close(link->wire);
    att_child_release(link->host->child, link->worker);
    link->wire = NULL;
}

/* A failed put shows up as an ended worker when the answer is awaited. */
static void link_request(att_link_t *link, uint32_t kind, const att_wire_part_t *parts,
                         unsigned count)
{
    if (link->open++ == 0)
        link->since_ns = att_clock_ns();
    (void)att_wire_put(link->wire, kind, parts, count);
}

static void link_begin(att_link_t *link, uint32_t kind, const char *path, const char *spec,
                       const att_space_t *space, uint64_t seed)
{
    uint32_t path_length = (uint32_t)strlen(path), spec_length = (uint32_t)strlen(spec);
    link_request(
        link, kind,
        (att_wire_part_t[]){{&seed, sizeof seed},
                            {&path_length, sizeof path_length},
                            {path, path_length},
                            {&spec_length, sizeof spec_length},
                            {spec, spec_length},
                            {space, sizeof *space},
                            {space->subspaces, space->subspace_count * sizeof *space->subspaces}},
        7);
}

static int ended(int status, att_error_t *error)
{
    if (WIFSIGNALED(status))
        return att_fail(error, ATT_EPLUGIN, "the strategy crashed (signal %d, %s)",
                        WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) == 127)
        return att_fail(error, ATT_EPLUGIN, "no process could be started for the strategy");
    return att_fail(error, ATT_EPLUGIN, "the strategy ended its process (exit status %d)",
                    WEXITSTATUS(status));
}

/* 1 and the next answer, 0 not yet, negative: the worker crashed, hung or broke the protocol. */
static int link_answer(att_link_t *link, att_worker_answer_t *head, att_wire_reader_t *body,
                       att_error_t *error)
{
    uint32_t kind;
    const uint8_t *payload;
    size_t length;
    int flushed = att_wire_flush(link->wire);
    int n = att_wire_get(link->wire, &kind, &payload, &length);
    if (n > 0) {
        *body = (att_wire_reader_t){.at = payload, .left = length};
        att_wire_read(body, head, sizeof *head);
        if (kind != ATT_WORKER_ANSWER || body->bad || link->open == 0) {
            att_child_kill(link->host->child, link->worker);
            return att_fail(error, ATT_EPLUGIN, "the strategy's process broke the protocol");
        }
        link->open--;
        link->since_ns = att_clock_ns();
        return 1;
    }
    int status;
    int over = att_child_ended(link->host->child, link->worker, &status);
    if (over > 0)
        return ended(status, error);
    if (over < 0)
        return att_fail(error, ATT_EPLUGIN, "the strategy process is gone");
    double waited = (double)(att_clock_ns() - link->since_ns) * 1e-9;
    if (waited > link->host->deadline_s) {
        att_child_kill(link->host->child, link->worker);
        return n < 0 || flushed < 0
                   ? att_fail(error, ATT_EPLUGIN, "the strategy closed its connection")
                   : att_fail(error, ATT_EPLUGIN, "the strategy gave no answer within %g s",
                              link->host->deadline_s);
    }
    return 0;
}

static int answer_status(const att_worker_answer_t *head, att_wire_reader_t *body,
                         att_error_t *error)
{
    if (head->status == ATT_OK)
        return ATT_OK;
    size_t length = body->left;
    const char *text = att_wire_peek(body, length);
    if (head->status > 0 || head->status <= -ATT_STATUS_COUNT)
        return att_fail(error, ATT_EPLUGIN, "the strategy's process broke the protocol");
    return att_fail(error, (att_status_t)-head->status, "%.*s", (int)length, text);
}

typedef struct att_question {
    const char *path, *spec;
} att_question_t;

static void try_check(void *context)
{
    const att_question_t *question = context;
    (void)att_instance_check(question->path, question->spec, NULL);
}

/* Elsewhere first: the strategy may crash, hang or exit when it is loaded or asked. */
static int check_here(const struct att_strategy_host *host, const char *spec, att_error_t *error)
{
    att_question_t question = {host->path, spec};
    char what[320];
    snprintf(what, sizeof what, "strategy %.200s: when loaded and asked about its options it",
             spec);
    int rc = att_probe(try_check, &question, ATT_PROBE_DEADLINE_S, what, error);
    return rc == ATT_OK ? att_instance_check(host->path, spec, error) : rc;
}

int att_strategy_host_check(struct att_strategy_host *host, const char *spec, att_error_t *error)
{
    if (host->child == NULL)
        return check_here(host, spec, error);
    static const att_space_t no_space = {.abi = ATT_STRATEGY_ABI, .size = sizeof no_space};
    att_link_t link = {0};
    int rc = link_open(host, &link, error);
    if (rc != ATT_OK)
        return rc;
    link_begin(&link, ATT_WORKER_CHECK, host->path, spec, &no_space, 0);
    att_worker_answer_t head;
    att_wire_reader_t body;
    att_error_t why = {""};
    while ((rc = link_answer(&link, &head, &body, &why)) == 0) {
        struct pollfd wait = {.fd = att_wire_fd(link.wire), .events = POLLIN};
        (void)poll(&wait, 1, 20);
    }
    if (rc > 0)
        rc = answer_status(&head, &body, error);
    else
        rc = att_fail(error, (att_status_t)-rc, "%.200s: %.200s", spec, why.text);
    link_close(&link);
    return rc;
}

/* ---- search ---- */

int att_search_begin(struct att_strategy_host *host, const char *spec, const att_space_t *space,
                     uint64_t seed, struct att_search **out, att_error_t *error)
{
    struct att_search *search = calloc(1, sizeof *search);
    att_space_t *copy = att_space_copy(space);
    if (search == NULL || copy == NULL) {
        free(search);
        free(copy);
        return att_fail(error, ATT_ENOMEM, "no memory for a search");
    }
    search->host = host;
    search->space = copy;
    search->best = ATT_SETTING_KEEP;
    int rc = host->child == NULL
                 ? att_instance_create(host->path, spec, space, seed, &search->instance, error)
                 : link_open(host, &search->link, error);
    if (rc != ATT_OK) {
        free(copy);
        free(search);
        return rc;
    }
    if (host->child != NULL)
        link_begin(&search->link, ATT_WORKER_BEGIN, host->path, spec, space, seed);
    *out = search;
    return ATT_OK;
}

static int failed(struct att_search *search, att_error_t *error)
{
    return att_fail(error, (att_status_t)-search->failed, "%s", search->why.text);
}

int att_search_ask(struct att_search *search, uint32_t max, att_error_t *error)
{
    if (search->failed != ATT_OK)
        return failed(search, error);
    if (search->asked)
        return att_fail(error, ATT_EBUSY, "the strategy was asked already");
    search->most = max < MOST_SETTINGS ? max : MOST_SETTINGS;
    search->asked = true;
    search->answered = false;
    search->count = 0;
    if (search->instance == NULL) {
        link_request(&search->link, ATT_WORKER_ASK,
                     (att_wire_part_t[]){{&search->most, sizeof search->most}}, 1);
        return ATT_OK;
    }
    uint64_t begin_ns = att_clock_ns();
    search->failed = att_instance_ask(search->instance, search->settings, search->samples,
                                      search->most, &search->count, &search->why);
    search->host->usage.ask_ns += att_clock_ns() - begin_ns;
    search->host->usage.asks++;
    uint64_t offline = att_instance_offline_samples(search->instance);
    search->host->usage.offline_samples += offline - search->offline_samples;
    search->offline_samples = offline;
    if (search->failed == ATT_OK)
        search->failed = att_instance_best(search->instance, &search->best, &search->why);
    search->answered = true;
    return ATT_OK;
}

/* Take an answer of the worker in. */
static int take(struct att_search *search, const att_worker_answer_t *head, att_wire_reader_t *body)
{
    int rc = answer_status(head, body, &search->why);
    if (rc != ATT_OK || head->request != ATT_WORKER_ASK)
        return rc;
    if (head->count > search->most)
        return att_instance_sane(search->space, NULL, search->most, head->count, &search->why);
    att_setting_t best;
    att_wire_read(body, search->settings, head->count * sizeof *search->settings);
    att_wire_read(body, search->samples, head->count * sizeof *search->samples);
    att_wire_read(body, &best, sizeof best);
    if (body->bad)
        return att_fail(&search->why, ATT_EPLUGIN, "the strategy's process broke the protocol");
    rc =
        att_instance_sane(search->space, search->settings, search->most, head->count, &search->why);
    if (rc == ATT_OK && !att_setting_is_keep(best))
        rc = att_instance_sane(search->space, &best, 1, 1, &search->why);
    if (rc != ATT_OK)
        return rc;
    search->count = head->count;
    search->best = best;
    search->answered = true;
    return ATT_OK;
}

int att_search_poll(struct att_search *search, att_setting_t *settings, uint32_t *count,
                    att_error_t *error)
{
    if (!search->asked && search->failed == ATT_OK)
        return 0;
    while (search->failed == ATT_OK && !search->answered) {
        att_worker_answer_t head;
        att_wire_reader_t body;
        int rc = link_answer(&search->link, &head, &body, &search->why);
        if (rc == 0)
            return 0;
        search->failed = rc < 0 ? rc : take(search, &head, &body);
    }
    if (search->failed != ATT_OK)
        return failed(search, error);
    memcpy(settings, search->settings, search->count * sizeof *settings);
    *count = search->count;
    search->asked = false;
    return 1;
}

uint32_t att_search_samples(const struct att_search *search, uint32_t index)
{
    uint32_t samples = index < search->count ? search->samples[index] : 0;
    return samples < ATT_STRATEGY_SAMPLES ? samples : ATT_STRATEGY_SAMPLES;
}

int att_search_tell(struct att_search *search, const att_setting_t *setting,
                    const att_result_t *result, att_error_t *error)
{
    if (search->failed != ATT_OK)
        return failed(search, error);
    if (search->instance != NULL)
        search->failed = att_instance_tell(search->instance, setting, result, &search->why);
    else /* when the worker is gone, the next ask finds out how it ended */
        (void)att_wire_put(
            search->link.wire, ATT_WORKER_TELL,
            (att_wire_part_t[]){{setting, sizeof *setting},
                                {result, sizeof *result},
                                {result->samples_us, result->sample_count * sizeof(double)}},
            3);
    return search->failed == ATT_OK ? ATT_OK : failed(search, error);
}

int att_search_best(struct att_search *search, att_setting_t *best, att_error_t *error)
{
    if (search->failed != ATT_OK)
        return failed(search, error);
    if (search->instance != NULL)
        search->failed = att_instance_best(search->instance, &search->best, &search->why);
    if (search->failed != ATT_OK)
        return failed(search, error);
    *best = search->best;
    return ATT_OK;
}

void att_search_end(struct att_search *search)
{
    if (search == NULL)
        return;
    att_instance_destroy(search->instance);
    link_close(&search->link);
    free(search->space);
    free(search);
}
