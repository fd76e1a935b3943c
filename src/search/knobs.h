/*
 * knobs: the catalogue of what can be set in NCCL (data/knobs.json): which values are legal for
 * which NCCL, collective, algorithm and protocol, where they can be set, and what is unsafe. The
 * search space, `attune knobs` and `attune doctor` read it; nothing else says what is legal.
 */
#ifndef ATT_SEARCH_KNOBS_H
#define ATT_SEARCH_KNOBS_H

#include "attune/setting.h"
#include "base/status.h"

#include <jansson.h>

typedef enum att_knob_id {
    ATT_KNOB_ALGORITHM = 0,
    ATT_KNOB_PROTOCOL = 1,
    ATT_KNOB_TRANSPORT = 2,
    ATT_KNOB_CHANNELS = 3,
    ATT_KNOB_THREADS = 4,
    ATT_KNOB_CHUNK = 5,
    ATT_KNOB_BUFFER = 6,
    ATT_KNOB_COUNT = 7
} att_knob_id_t;

const char *att_knob_name(int knob);
/* -1 for an unknown word. */
int att_knob_parse(const char *word);

/* "2.28.9" (or "2.28") as NCCL_VERSION_CODE: major * 10000 + minor * 100 + patch. 0 or
 * -ATT_EUSAGE. */
int att_nccl_version_parse(const char *text, int *version);
/* 16 bytes are enough. */
const char *att_nccl_version_text(int version, char *text, size_t size);

#define ATT_KNOB_VALUES 8

/* Which versions, and which collectives, algorithms and protocols (bit masks) a row is about. */
typedef struct att_knob_reach {
    int since, until; /* NCCL_VERSION_CODE, both included */
    uint32_t collectives, algorithms, protocols;
} att_knob_reach_t;

/* What a knob may be. Values allowed: min + i * step up to max, or power_of_two_times * 2^i between
 * min and max, or one of `values`. */
typedef struct att_knob_rule {
    att_knob_reach_t reach;
    bool never;
    uint64_t min, max, step;
    uint64_t power_of_two_times;
    uint64_t values[ATT_KNOB_VALUES];
    uint32_t value_count;
    uint64_t search_min; /* least value worth a trial */
    const char *why, *source;
} att_knob_rule_t;

typedef struct att_knobs att_knobs_t;

/* -ATT_EINPUT names the place in the document. */
int att_knobs_parse(const char *bytes, size_t length, att_knobs_t **knobs, att_error_t *error);
void att_knobs_destroy(att_knobs_t *knobs);
/* The catalogue that came with attune (base/data_file.h), read once in a process and never freed.
 * NULL with the reason when it is not there or malformed. Thread-safe. */
const att_knobs_t *att_knobs_get(att_error_t *error);

/* The document, for what is only printed (scopes, read_back, unsafe, ...). */
const json_t *att_knobs_document(const att_knobs_t *knobs);

/* Pairs with a kernel, as ATT_PAIR_BIT()s. version 0: the newest known. */
uint32_t att_knobs_pairs(const att_knobs_t *knobs, int collective, int version);
/* The first rule of `knob` that is about this, NULL when there is none: anything goes. */
const att_knob_rule_t *att_knobs_rule(const att_knobs_t *knobs, int knob, int version,
                                      int collective, int algorithm, int protocol);
bool att_knob_rule_allows(const att_knob_rule_t *rule, uint64_t value);
/* May a change of this knob change the order in which a collective adds? */
bool att_knobs_change_order(const att_knobs_t *knobs, int collective, int knob);

/* A question: what is negative (words) or has set false is left open. */
typedef struct att_knobs_question {
    int version; /* 0: the newest known */
    int collective, algorithm, protocol, transport;
    bool set[ATT_KNOB_COUNT]; /* value[] of channels, threads, chunk, buffer is asked for */
    uint64_t value[ATT_KNOB_COUNT];
} att_knobs_question_t;

/* The answer: which of the pairs left open make all of it legal, in one collective at least; the
 * rule is that of the first knob refused in all of them, or that allows the last one asked for. */
typedef struct att_knobs_answer {
    bool legal;
    uint32_t pairs;
    int knob; /* that `why` is about */
    const char *why, *source;
} att_knobs_answer_t;

#define ATT_KNOBS_OPEN                                                                             \
    ((att_knobs_question_t){.collective = -1, .algorithm = -1, .protocol = -1, .transport = -1})

void att_knobs_ask(const att_knobs_t *knobs, const att_knobs_question_t *question,
                   att_knobs_answer_t *answer);

#endif
