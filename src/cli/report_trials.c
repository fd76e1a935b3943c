#include "cli/report_trials.h"

#include "cli/report_file.h"
#include "profile/room.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct work {
    att_report_trials_t *trials;
    json_t *index; /* "group collective bytes" -> number of the task */
} work_t;

static void key_of(const json_t *object, char key[160])
{
    const char *group = json_string_value(json_object_get(object, "group"));
    const char *collective = json_string_value(json_object_get(object, "collective"));
    snprintf(key, 160, "%.60s %.40s %lld", group != NULL ? group : "",
             collective != NULL ? collective : "",
             (long long)json_integer_value(json_object_get(object, "bytes")));
}

uint32_t att_report_word(const att_report_tally_t *tally, const char *word)
{
    for (uint32_t i = 0; i < tally->count; i++)
        if (strcmp(tally->word[i], word) == 0)
            return i;
    return ATT_REPORT_WORDS;
}

/* A file from elsewhere may hold any word: the last place takes those that have no other. */
static uint8_t count_word(att_report_tally_t *tally, const json_t *word, uint32_t calls)
{
    const char *text = json_string_value(word);
    char cut[16];
    snprintf(cut, sizeof cut, "%.15s", text != NULL && text[0] != '\0' ? text : "unknown");
    uint32_t i = att_report_word(tally, cut);
    if (i == ATT_REPORT_WORDS && tally->count < ATT_REPORT_WORDS) {
        i = tally->count++;
        snprintf(tally->word[i], sizeof tally->word[i], "%s",
                 i == ATT_REPORT_WORDS - 1 ? "other" : cut);
    }
    i = i < ATT_REPORT_WORDS ? i : ATT_REPORT_WORDS - 1;
    tally->trials[i]++;
    tally->calls[i] += calls;
    return (uint8_t)i;
}

static int take_trial(work_t *w, const json_t *line)
{
    char key[160];
    key_of(line, key);
    att_report_trials_t *t = w->trials;
    json_int_t calls = json_integer_value(json_object_get(line, "calls"));
    uint32_t count = calls < 0 || calls > UINT32_MAX ? 0 : (uint32_t)calls;
    uint8_t phase = count_word(&t->phases, json_object_get(line, "phase"), count);
    uint8_t outcome = count_word(&t->outcomes, json_object_get(line, "outcome"), count);
    const json_t *task = json_object_get(w->index, key);
    if (task == NULL) {
        t->of_no_task++;
        return ATT_OK;
    }
    double us = json_number_value(json_object_get(line, "median_us"));
    double baseline = json_number_value(json_object_get(line, "baseline_us"));
    double speedup = us > 0 && baseline > 0 ? baseline / us : 0;
    const char *algorithm =
        json_string_value(json_object_get(json_object_get(line, "setting"), "algorithm"));
    att_report_search_t *search = &t->searches[json_integer_value(task)];
    if (att_room_append(&search->trials, search->count, sizeof *search->trials) != ATT_OK)
        return -ATT_ENOMEM;
    search->trials[search->count++] =
        (att_report_trial_t){.speedup = isfinite(speedup) ? (float)speedup : 0,
                             .calls = count,
                             .phase = phase,
                             .outcome = outcome,
                             .keep = algorithm != NULL && strcmp(algorithm, "keep") == 0};
    return ATT_OK;
}

static int take_line(void *context, char *text, size_t length)
{
    work_t *w = context;
    w->trials->lines++;
    json_t *line = json_loadb(text, length, 0, NULL);
    int status = ATT_OK;
    if (!json_is_object(line))
        w->trials->unreadable++;
    else if (json_object_get(line, "trial") != NULL)
        status = take_trial(w, line);
    json_decref(line);
    return status;
}

int att_report_trials_read(const char *folder, const json_t *tasks, att_report_trials_t *trials,
                           att_error_t *error)
{
    *trials = (att_report_trials_t){.task_count = json_array_size(tasks)};
    work_t w = {.trials = trials, .index = json_object()};
    trials->searches = calloc(trials->task_count + 1, sizeof *trials->searches);
    size_t i, skipped = 0;
    json_t *task;
    json_array_foreach(tasks, i, task)
    {
        char key[160];
        key_of(task, key);
        json_object_set_new(w.index, key, json_integer((json_int_t)i));
    }
    int status =
        trials->searches == NULL || w.index == NULL
            ? att_fail(error, ATT_ENOMEM, "no memory")
            : att_report_file_lines(folder, "trials.jsonl", take_line, &w, &skipped, error);
    json_decref(w.index);
    trials->unreadable += skipped;
    if (status == -ATT_ENOMEM)
        att_fail(error, ATT_ENOMEM, "no memory");
    if (status != ATT_OK)
        att_report_trials_free(trials);
    return status;
}

void att_report_trials_free(att_report_trials_t *trials)
{
    for (size_t i = 0; trials->searches != NULL && i < trials->task_count; i++)
        free(trials->searches[i].trials);
    free(trials->searches);
    *trials = (att_report_trials_t){0};
}
