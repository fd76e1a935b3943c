/*
 * strategy: the ABI between attune and a search plugin.
 *
 * A strategy is a shared library `libattune-strategy-<name>.so` that exports one constant
 * `const att_strategy_t attune_strategy`. attune checks `abi` first, then `size`, and prints the
 * reason when it refuses. The library is never unloaded.
 *
 * attune asks for settings, measures them on the job's own calls and tells what it measured:
 *
 *     check(options) -> create(space, options) -> [ask -> tell ...] -> best -> destroy
 *
 * All calls of one search come from one thread, in a process of their own without the job's
 * memory. A call that does not return before its deadline ends the search; the job keeps NCCL's
 * choice. A strategy must be deterministic: the same space, options, seed and results give the
 * same questions.
 *
 * Errors: every op returns 0, or a negative ATT_STRATEGY_E... that ends the search of this task.
 */
#ifndef ATTUNE_STRATEGY_H
#define ATTUNE_STRATEGY_H

#include "attune/setting.h"

#include <assert.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ATT_STRATEGY_ABI 1u

enum {
    ATT_STRATEGY_OK       = 0,
    ATT_STRATEGY_ENOMEM   = -1,
    ATT_STRATEGY_EOPTION  = -2, /* a parameter has a value that it cannot take: check; or not in
                                   this space: create */
    ATT_STRATEGY_EINVALID = -3, /* anything else; the log names the op */
};

/* One combination of algorithm, protocol and transport, with the values of the resource knobs.
 * A knob with min = max = 0 can only be kept. Legal values are min, min+step, ..., <= max; for
 * chunk_bytes 0 ("keep") is legal too. */
typedef struct att_subspace {
    int8_t algorithm; /* att_algorithm_t, never KEEP */
    int8_t protocol;  /* att_protocol_t, never KEEP */
    int8_t transport; /* att_transport_t, KEEP where it cannot be chosen */
    int8_t reserved;
    uint16_t channels_min, channels_max, channels_step;
    uint16_t threads_min, threads_max, threads_step;
    uint32_t chunk_min, chunk_max, chunk_step; /* bytes */
    float prior_us; /* NCCL's own cost estimate in microseconds, negative when unknown */
} att_subspace_t;
static_assert(sizeof(att_subspace_t) == 32, "strategy ABI 1");

/* What is searched. Owned by attune, valid until destroy. */
typedef struct att_space {
    uint32_t abi;        /* ATT_STRATEGY_ABI */
    uint32_t size;       /* sizeof(att_space_t) of the host */
    uint64_t bytes;      /* message bytes as NCCL's tuner counts them (AllGather and
                            ReduceScatter: all ranks together) */
    uint32_t collective; /* att_collective_t */
    uint32_t ranks;
    uint32_t nodes;
    uint32_t subspace_count; /* >= 1 */
    const att_subspace_t *subspaces;
    att_setting_t incumbent; /* NCCL's choice as far as it is known: algorithm, protocol and
                                channels really used, chunk 0; or all KEEP */
} att_space_t;
static_assert(sizeof(void *) != 8 || sizeof(att_space_t) == 56, "strategy ABI 1");

typedef enum att_outcome {
    ATT_OUTCOME_OK      = 0, /* samples are valid */
    ATT_OUTCOME_TIMEOUT = 1, /* the trial never came back (lease ran out) */
    ATT_OUTCOME_ILLEGAL = 2, /* in the space, but it must not run here (quarantined); not run. A
                                setting outside the space ends the search. */
    ATT_OUTCOME_LOSSY   = 3, /* run, but too few usable samples */
    ATT_OUTCOME_SLOW    = 4  /* cut short: slower than --max-slowdown allows; samples are valid */
} att_outcome_t;

/* What was measured for one setting. Durations in microseconds. */
typedef struct att_result {
    uint32_t abi;  /* ATT_STRATEGY_ABI */
    uint32_t size; /* sizeof(att_result_t) of the host */
    uint32_t outcome;      /* att_outcome_t */
    uint32_t sample_count; /* 0 unless outcome is OK or SLOW */
    const double *samples_us; /* valid during tell only */
    double median_us;         /* of the samples; 0 without samples */
    double mean_us;
    double stddev_us;
    double baseline_median_us; /* of the setting in force between trials, measured next to this
                                  one: NCCL's choice, or the winner of an earlier search; 0
                                  unknown. Compare median_us / baseline_median_us: the job drifts */
    uint32_t baseline_count;
    uint32_t calls; /* calls of the job that the trial took, discarded ones included */

    /* From here on only where `size` says so. */
    double collective_us; /* where a sample is the duration of a step that the collective overlaps:
                             mean of the collective alone in the same calls; 0: a sample is the
                             collective itself */
} att_result_t;
static_assert(sizeof(void *) != 8 || sizeof(att_result_t) == 72, "strategy ABI 1");

typedef enum att_parameter_type {
    ATT_PARAMETER_INT    = 0, /* int64_t */
    ATT_PARAMETER_REAL   = 1, /* double */
    ATT_PARAMETER_BOOL   = 2, /* 0 or 1 in the integer field */
    ATT_PARAMETER_CHOICE = 3, /* one word of `choices` */
    ATT_PARAMETER_STRING = 4
} att_parameter_type_t;

/* One parameter that the strategy understands, as `attune plugins` lists it. */
typedef struct att_parameter {
    const char *name;
    uint32_t type; /* att_parameter_type_t */
    uint32_t reserved;
    const char *default_text; /* parsed like a value of the user's */
    const char *choices;      /* "a|b|c" for CHOICE, else NULL */
    const char *help;         /* one line, with the unit */
} att_parameter_t;

/* The value of a parameter, already parsed and checked by attune. */
typedef struct att_option {
    const char *name;
    const char *text; /* as the user wrote it, or the default */
    int64_t integer;  /* INT, BOOL; for CHOICE the index of the word in `choices` */
    double real;      /* REAL, and INT as a double */
} att_option_t;

typedef struct att_options {
    uint32_t abi;  /* ATT_STRATEGY_ABI */
    uint32_t size; /* sizeof(att_options_t) of the host */
    uint64_t seed;
    uint32_t option_count; /* = parameter_count, in the order of `parameters` */
    uint32_t reserved;
    const att_option_t *options;
} att_options_t;

/* Flags of a strategy. */
#define ATT_STRATEGY_BATCH 1u /* ask can give several settings before the first tell */

typedef struct att_strategy {
    uint32_t abi;  /* ATT_STRATEGY_ABI */
    uint32_t size; /* sizeof(att_strategy_t) of the plugin */
    const char *name;    /* [a-z0-9_]+, equal to the <name> of the file */
    const char *version;
    const char *description; /* one line */
    const att_parameter_t *parameters;
    uint32_t parameter_count;
    uint32_t flags;

    /* Begin a search. `space` and `options` stay valid until destroy. After an error *state is not
     * used and destroy is not called. */
    int (*create)(const att_space_t *space, const att_options_t *options, void **state);

    /* Write up to `max` settings to try and their number to *count. *count = 0 means: finished,
     * unless questions are still open (asked, not told), then it means: wait for those. Each
     * setting asked is told exactly once, in any order; it may be asked again later. */
    int (*ask)(void *state, att_setting_t *settings, uint32_t max, uint32_t *count);

    /* The result of one setting. */
    int (*tell)(void *state, const att_setting_t *setting, const att_result_t *result);

    /* The best setting so far; ATT_SETTING_KEEP when nothing beat NCCL's choice. */
    int (*best)(void *state, att_setting_t *setting);

    /* Optional (NULL): write the state as bytes, and read it back into a fresh create. save with
     * buffer = NULL sets *length only. */
    int (*save)(void *state, void *buffer, uint64_t capacity, uint64_t *length);
    int (*load)(void *state, const void *buffer, uint64_t length);

    void (*destroy)(void *state); /* NULL is fine */

    /* Optional (NULL, or left out: `size` ends before it): samples taken outside of this search
     * that it has used so far, for instance the recorded ones that a model was trained on. Whoever
     * compares strategies charges each of them as one call of the job. */
    uint64_t (*offline_samples)(void *state);

    /* Optional, likewise: how many usable samples the trial of this setting, given by the latest
     * ask, is to take: 1..ATT_STRATEGY_SAMPLES. 0: as many as the user wants (--samples). */
    uint32_t (*samples)(void *state, const att_setting_t *setting);

    /* Optional, likewise: can a search begin with these parameters, whatever the space? attune asks
     * before the job starts and again before each create, which sees checked values only. If not:
     * ATT_STRATEGY_EOPTION, and in `why`, empty so far, the one line that the user is to read.
     * `size` is at least ATT_STRATEGY_WHY bytes. att_option_refuse writes such a line. */
    int (*check)(const att_options_t *options, char *why, size_t size);
} att_strategy_t;
static_assert(sizeof(void *) != 8 || sizeof(att_strategy_t) == 128, "strategy ABI 1");

#define ATT_STRATEGY_SIZE_LEAST offsetof(att_strategy_t, offline_samples)
/* An optional op at the end that the plugin's struct has. */
#define ATT_STRATEGY_HAS(s, op)                                                                    \
    ((s)->size >= offsetof(att_strategy_t, op) + sizeof((s)->op) && (s)->op != NULL)
#define ATT_STRATEGY_SAMPLES    64u /* of one trial at most */
#define ATT_STRATEGY_WHY        256u

#define ATT_STRATEGY_SYMBOL "attune_strategy"
#define ATT_STRATEGY_EXPORT __attribute__((visibility("default")))

/* For check: `parameter budget: "0" is not accepted (1 to 299)`, where `accepted` says what is.
 * Returns ATT_STRATEGY_EOPTION. */
static inline int att_option_refuse(const att_option_t *option, const char *accepted, char *why,
                                    size_t size)
{
    snprintf(why, size, "parameter %s: \"%s\" is not accepted (%s)", option->name, option->text,
             accepted);
    return ATT_STRATEGY_EOPTION;
}

/* True when `setting` lies in subspace `s` (the knobs of att_subspace_t explain the rule). */
static inline bool att_subspace_contains(const att_subspace_t *s, att_setting_t x)
{
    if (x.algorithm != s->algorithm || x.protocol != s->protocol || x.transport != s->transport)
        return false;
    if (s->channels_max == 0
            ? x.channels != 0
            : x.channels < s->channels_min || x.channels > s->channels_max ||
                  (s->channels_step > 1 && (x.channels - s->channels_min) % s->channels_step != 0))
        return false;
    if (s->threads_max == 0
            ? x.threads != 0
            : x.threads < s->threads_min || x.threads > s->threads_max ||
                  (s->threads_step > 1 && (x.threads - s->threads_min) % s->threads_step != 0))
        return false;
    if (x.chunk_bytes == 0)
        return true;
    return s->chunk_max != 0 && x.chunk_bytes >= s->chunk_min && x.chunk_bytes <= s->chunk_max &&
           (s->chunk_step <= 1 || (x.chunk_bytes - s->chunk_min) % s->chunk_step == 0);
}

#ifdef __cplusplus
}
#endif

#endif
