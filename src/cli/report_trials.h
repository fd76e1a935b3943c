/*
 * report trials: what trials.jsonl tells: for each task how the search went on, trial by trial, and
 * what kinds of trials there were. A line that is no trial is counted and passed over.
 */
#ifndef ATT_CLI_REPORT_TRIALS_H
#define ATT_CLI_REPORT_TRIALS_H

#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* One line of the file. */
typedef struct att_report_trial {
    float speedup; /* baseline median over the trial's; 0: no usable sample */
    uint32_t calls;
    uint8_t phase, outcome; /* indices of att_report_trials_t's words */
    bool keep;              /* NCCL's own choice */
} att_report_trial_t;

typedef struct att_report_search {
    att_report_trial_t *trials;
    uint32_t count;
} att_report_search_t;

#define ATT_REPORT_WORDS 16

typedef struct att_report_tally {
    char word[ATT_REPORT_WORDS][16];
    uint64_t trials[ATT_REPORT_WORDS], calls[ATT_REPORT_WORDS];
    uint32_t count;
} att_report_tally_t;

typedef struct att_report_trials {
    att_report_search_t *searches; /* by task */
    size_t task_count;
    att_report_tally_t phases, outcomes;
    uint64_t lines, unreadable, of_no_task;
} att_report_trials_t;

/* tasks: the report's list, whose group, collective and bytes name each. -ATT_ENOENT: there is no
 * trials.jsonl. */
int att_report_trials_read(const char *folder, const json_t *tasks, att_report_trials_t *trials,
                           att_error_t *error);
void att_report_trials_free(att_report_trials_t *trials);

/* Index of a phase in phases, ATT_REPORT_WORDS when it did not occur. */
uint32_t att_report_word(const att_report_tally_t *tally, const char *word);

#endif
