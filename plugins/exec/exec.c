/*
 * exec: a strategy in any language: starts a program and asks it in JSON lines.
 *
 *     attune run --strategy "exec:command=python3 mine.py" -- ...
 *
 * docs/write-a-strategy.md describes the lines, examples/strategies has programs. What goes wrong
 * with the program (its end, silence, nonsense) ends the search with one line on standard error;
 * the job keeps NCCL's choice.
 */
#include "attune/strategy.h"

#include "message.h"
#include "program.h"

#include <stdio.h>
#include <stdlib.h>

enum { P_COMMAND, P_TIMEOUT, P_COUNT };

static const att_parameter_t parameters[P_COUNT] = {
    {"command", ATT_PARAMETER_STRING, 0, "", NULL, "program and arguments, for /bin/sh; no comma"},
    {"timeout", ATT_PARAMETER_REAL, 0, "8", NULL, "seconds that an answer may take, above 0"},
};

#define MOST 64 /* settings of one answer */

struct state {
    struct program *program;
    char why[300];
    uint32_t count; /* of the latest answer to ask */
    att_setting_t settings[MOST];
    uint32_t samples[MOST];
};

static int complain(const struct state *s)
{
    fprintf(stderr, "attune: strategy exec: %s\n", s->why);
    return ATT_STRATEGY_EINVALID;
}

/* Send a line and free it; with `answer` wait for the line that comes back. */
static int talk(struct state *s, char *line, const char **answer)
{
    int rc = line == NULL ? -1 : program_put(s->program, line, s->why, sizeof s->why);
    if (line == NULL)
        snprintf(s->why, sizeof s->why, "no memory");
    free(line);
    if (rc == 0 && answer != NULL) {
        *answer = program_get(s->program, s->why, sizeof s->why);
        rc = *answer != NULL ? 0 : -1;
    }
    return rc;
}

static void destroy(void *state)
{
    struct state *s = state;
    if (s != NULL)
        program_close(s->program);
    free(s);
}

static int check(const att_options_t *options, char *why, size_t size)
{
    const att_option_t *o = options->options;
    if (!(o[P_TIMEOUT].real > 0) || o[P_TIMEOUT].real > 1e6)
        return att_option_refuse(&o[P_TIMEOUT], "above 0, at most 1000000 s", why, size);
    if (o[P_COMMAND].text[0] == '\0')
        return att_option_refuse(&o[P_COMMAND], "a program is needed", why, size);
    return ATT_STRATEGY_OK;
}

static int create(const att_space_t *space, const att_options_t *options, void **state)
{
    const att_option_t *o = options->options;
    struct state *s = calloc(1, sizeof *s);
    if (s == NULL)
        return ATT_STRATEGY_ENOMEM;
    const char *answer;
    s->program = program_start(o[P_COMMAND].text, o[P_TIMEOUT].real, s->why, sizeof s->why);
    if (s->program == NULL || talk(s, message_create(space, options->seed), &answer) != 0 ||
        message_ready(answer, s->why, sizeof s->why) != 0) {
        int rc = complain(s);
        destroy(s);
        return rc;
    }
    *state = s;
    return ATT_STRATEGY_OK;
}

static int ask(void *state, att_setting_t *settings, uint32_t max, uint32_t *count)
{
    struct state *s = state;
    const char *answer;
    max = max < MOST ? max : MOST;
    if (talk(s, message_ask(max), &answer) != 0 ||
        message_settings(answer, s->settings, s->samples, max, &s->count, s->why, sizeof s->why) !=
            0)
        return complain(s);
    for (uint32_t i = 0; i < s->count; i++)
        settings[i] = s->settings[i];
    *count = s->count;
    return ATT_STRATEGY_OK;
}

static uint32_t samples(void *state, const att_setting_t *setting)
{
    const struct state *s = state;
    for (uint32_t i = 0; i < s->count; i++)
        if (att_setting_equal(s->settings[i], *setting))
            return s->samples[i];
    return 0;
}

static int tell(void *state, const att_setting_t *setting, const att_result_t *result)
{
    struct state *s = state;
    return talk(s, message_tell(setting, result), NULL) == 0 ? ATT_STRATEGY_OK : complain(s);
}

static int best(void *state, att_setting_t *setting)
{
    struct state *s = state;
    const char *answer;
    char *line = NULL;
    if (asprintf(&line, "{\"op\":\"best\"}\n") < 0)
        line = NULL;
    if (talk(s, line, &answer) != 0 || message_best(answer, setting, s->why, sizeof s->why) != 0)
        return complain(s);
    return ATT_STRATEGY_OK;
}

ATT_STRATEGY_EXPORT const att_strategy_t attune_strategy = {
    .abi = ATT_STRATEGY_ABI,
    .size = sizeof attune_strategy,
    .name = "exec",
    .version = "1",
    .description = "asks a program in any language, in JSON lines",
    .parameters = parameters,
    .parameter_count = P_COUNT,
    .flags = ATT_STRATEGY_BATCH,
    .create = create,
    .ask = ask,
    .tell = tell,
    .best = best,
    .destroy = destroy,
    .samples = samples,
    .check = check,
};
