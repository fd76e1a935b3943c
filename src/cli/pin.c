#include "cli/pin.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/names.h"
#include "cli/json_file.h"
#include "cli/run_end.h"
#include "cli/tasks_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_NS      5000000000ull
#define PATIENCE_TASK_NS 500000u /* the sidecar writes thousands of tasks less often */
#define TICK_NS          100000000u

static void print_help(const char *verb)
{
    printf(
        "Usage: attune pin RUN [TASK...]\n"
        "       attune unpin RUN TASK...\n\n"
        "pin holds tasks of a running job where they are: a search stops, what is in force stays,\n"
        "drift is not watched. unpin lets them go on. RUN is the run's folder. TASK is\n"
        "[GROUP:]COLLECTIVE:BYTES, as allreduce:4M or 0x1f2e:allreduce:4M, or 'all'. Without TASK\n"
        "pin lists the tasks. It waits until the sidecar says that it follows.\n\n"
        "  attune %s attune-4711 allreduce:25M\n\n"
        "Exit status: 0; 1 when no task fits, or the sidecar is gone or does not answer within 5 "
        "s;\n"
        "2 wrong usage.\n",
        verb);
}

static const char *group_of(const json_t *task)
{
    return json_string_value(json_object_get(task, "group"));
}

static const char *collective_of(const json_t *task)
{
    return json_string_value(json_object_get(task, "collective"));
}

static const char *phase_of(const json_t *task)
{
    return json_string_value(json_object_get(task, "phase"));
}

static uint64_t bytes_of(const json_t *task)
{
    return (uint64_t)json_integer_value(json_object_get(task, "bytes"));
}

static bool is_word(const char *word)
{
    return word != NULL && word[0] != '\0' &&
           word[strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789")] == '\0';
}

/* Whether a list has what the rest of this file takes for granted, and what a terminal can take. */
static bool are_tasks(const json_t *tasks)
{
    size_t i;
    json_t *task;
    bool good = json_is_array(tasks);
    json_array_foreach(tasks, i, task) good &=
        is_word(group_of(task)) && is_word(phase_of(task)) &&
        att_collective_parse(collective_of(task)) >= 0 &&
        json_integer_value(json_object_get(task, "bytes")) >= 0;
    return good;
}

/* NULL: said why. */
static json_t *read_tasks(const char *run, bool *finished)
{
    char path[PATH_MAX];
    json_t *root = NULL;
    att_error_t error = {""};
    snprintf(path, sizeof path, "%s/tasks.json", run);
    if (att_json_read(path, ATT_TASKS_FILE_MAX, &root, &error) != ATT_OK) {
        att_log(ATT_LOG_ERROR, "%s", error.text);
        return NULL;
    }
    const char *state = json_string_value(json_object_get(root, "state"));
    *finished = state != NULL && strcmp(state, "finished") == 0;
    json_t *tasks = json_incref(json_object_get(root, "tasks"));
    json_decref(root);
    if (are_tasks(tasks))
        return tasks;
    att_log(ATT_LOG_ERROR, "%s: not the tasks of a run", path);
    json_decref(tasks);
    return NULL;
}

static void list(const json_t *tasks)
{
    size_t i;
    json_t *task;
    json_array_foreach(tasks, i, task)
    {
        char bytes[24];
        printf("%s:%s:%s  %s%s\n", group_of(task), collective_of(task),
               att_bytes_text(bytes_of(task), bytes, sizeof bytes), phase_of(task),
               json_is_true(json_object_get(task, "pinned")) ? ", pinned" : "");
    }
}

/* [GROUP:]COLLECTIVE:BYTES or "all"; false when malformed (said). */
static bool valid(const char *word)
{
    char copy[128];
    uint64_t bytes;
    const char *hint = "";
    att_nearest_t nearest;
    snprintf(copy, sizeof copy, "%s", word);
    char *size = strrchr(copy, ':');
    if (strcmp(word, "all") == 0)
        return true;
    if (size != NULL && strlen(word) < sizeof copy) {
        *size++ = '\0';
        char *collective = strrchr(copy, ':');
        collective = collective != NULL ? collective + 1 : copy;
        if (att_collective_parse(collective) >= 0 && att_bytes_parse(size, &bytes) == ATT_OK)
            return true;
        hint = att_collective_nearest(&nearest, collective);
    }
    att_log(ATT_LOG_ERROR, "'%.80s' is no task%s: expected [GROUP:]COLLECTIVE:BYTES or all", word,
            hint);
    return false;
}

static bool fits(const char *word, const json_t *task)
{
    char copy[128];
    uint64_t bytes = 0;
    if (strcmp(word, "all") == 0)
        return true;
    snprintf(copy, sizeof copy, "%s", word);
    char *size = strrchr(copy, ':');
    *size++ = '\0';
    char *collective = strrchr(copy, ':');
    if (collective != NULL)
        *collective++ = '\0';
    att_bytes_parse(size, &bytes);
    return (collective == NULL || strcmp(copy, group_of(task)) == 0) &&
           att_collective_parse(collective != NULL ? collective : copy) ==
               att_collective_parse(collective_of(task)) &&
           bytes == bytes_of(task);
}

/* Marks each task that is to be pinned from now on; returns how many words fit nothing. */
static int choose(json_t *tasks, char **words, int count, bool pin)
{
    int lost = 0;
    for (int w = 0; w < count; w++) {
        size_t i;
        json_t *task;
        int fitting = 0;
        json_array_foreach(tasks, i, task) if (fits(words[w], task))
        {
            fitting++;
            json_object_set_new(task, "pinned", json_boolean(pin));
        }
        if (fitting == 0)
            att_log(ATT_LOG_ERROR, "no task of the run is %.80s; attune pin RUN lists them",
                    words[w]);
        lost += fitting == 0;
    }
    return lost;
}

/* The other side is control/pinning.h. */
static int write_file(const char *run, const json_t *tasks)
{
    char path[PATH_MAX], temporary[PATH_MAX];
    snprintf(path, sizeof path, "%s/pinned", run);
    snprintf(temporary, sizeof temporary, "%s/.pinned.new", run);
    unlink(temporary);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    int bad = file == NULL;
    size_t i;
    json_t *task;
    json_array_foreach(tasks, i, task) if (!bad && json_is_true(json_object_get(task, "pinned")))
        bad |= fprintf(file, "%s %s %llu\n", group_of(task), collective_of(task),
                       (unsigned long long)bytes_of(task)) < 0;
    if (file != NULL)
        bad |= fclose(file) != 0;
    if (bad || rename(temporary, path) != 0) {
        att_log(ATT_LOG_ERROR, "cannot write %s: %s", path, strerror(errno));
        return ATT_ESYSTEM;
    }
    return ATT_OK;
}

static void key_of(const json_t *task, char key[160])
{
    snprintf(key, 160, "%.60s %.40s %llu", group_of(task), collective_of(task),
             (unsigned long long)bytes_of(task));
}

static bool followed(const char *run, const json_t *wanted)
{
    bool finished = false, same = true;
    json_t *now = read_tasks(run, &finished), *pinned = json_object();
    size_t i;
    json_t *task;
    char key[160];
    json_array_foreach(wanted, i, task)
    {
        key_of(task, key);
        json_object_set_new(pinned, key,
                            json_boolean(json_is_true(json_object_get(task, "pinned"))));
    }
    json_array_foreach(now, i, task)
    {
        key_of(task, key);
        const json_t *want = json_object_get(pinned, key);
        same &= want == NULL || json_is_true(want) == json_is_true(json_object_get(task, "pinned"));
    }
    json_decref(pinned);
    json_decref(now);
    return same || finished;
}

/* Whether nobody will follow, said why. `end` was looked at before tasks.json was read. */
static bool is_abandoned(const char *run, const att_run_end_t *end, const json_t *tasks)
{
    att_tasks_t counted = {.count = json_array_size(tasks)};
    if (end->sidecar[0] != '\0')
        att_log(ATT_LOG_ERROR, "the sidecar of %s is gone (%s): nobody can pin or unpin", run,
                end->sidecar);
    else if (att_run_is_quiet(end, &counted))
        att_log(ATT_LOG_ERROR,
                "the sidecar of %s has not reported for %.0f s, it is gone or stopped: nobody can "
                "pin or unpin",
                run, end->report_age_s);
    else
        return false;
    return true;
}

static int await(const char *run, const json_t *tasks)
{
    uint64_t patience_ns = PATIENCE_NS + json_array_size(tasks) * PATIENCE_TASK_NS;
    uint64_t until = att_clock_ns() + patience_ns;
    att_run_end_t end;
    while (att_clock_ns() < until) {
        att_run_end_look(run, &end);
        if (followed(run, tasks))
            return ATT_OK;
        if (is_abandoned(run, &end, tasks))
            return ATT_EFAIL;
        att_clock_sleep_ns(TICK_NS);
    }
    att_log(ATT_LOG_ERROR, "no sidecar has followed within %.0f s: does the job of %s run?",
            (double)patience_ns * 1e-9, run);
    return ATT_EFAIL;
}

static int tell_empty(att_log_level_t level, const char *run)
{
    att_log(level, "%s has no task yet: none of its collectives was called", run);
    return level == ATT_LOG_ERROR ? ATT_EFAIL : ATT_OK;
}

static int set_pins(const char *run, char **words, int count, bool pin)
{
    bool finished = false;
    att_run_end_t end;
    att_run_end_look(run, &end);
    json_t *tasks = read_tasks(run, &finished);
    if (tasks == NULL)
        return ATT_EFAIL;
    int code = ATT_OK;
    if (count == 0) {
        list(tasks);
        if (json_array_size(tasks) == 0)
            code = tell_empty(ATT_LOG_WARN, run);
    } else if (finished) {
        att_log(ATT_LOG_ERROR, "%s has finished: nothing is tuned any more", run);
        code = ATT_EFAIL;
    } else if (json_array_size(tasks) == 0) {
        code = tell_empty(ATT_LOG_ERROR, run);
    } else if (is_abandoned(run, &end, tasks) || choose(tasks, words, count, pin) > 0) {
        code = ATT_EFAIL;
    } else if ((code = write_file(run, tasks)) == ATT_OK) {
        code = await(run, tasks);
    }
    json_decref(tasks);
    return code;
}

static int pin_main(int argc, char **argv, bool pin)
{
    const char *verb = pin ? "pin" : "unpin";
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help(verb);
            return ATT_OK;
        }
        if (argv[i][0] == '-') {
            att_nearest_t nearest;
            att_log(ATT_LOG_ERROR, "no option %.80s%s; attune %s --help", argv[i],
                    att_nearest_choice(&nearest, argv[i], "--help"), verb);
            return ATT_EUSAGE;
        }
        if (i > 1 && !valid(argv[i]))
            return ATT_EUSAGE;
    }
    if (argc < 2 || (!pin && argc < 3)) {
        att_log(ATT_LOG_ERROR, "which %s? attune %s RUN TASK...", argc < 2 ? "run" : "task", verb);
        return ATT_EUSAGE;
    }
    return set_pins(argv[1], argv + 2, argc - 2, pin);
}

int att_pin_main(int argc, char **argv)
{
    return pin_main(argc, argv, true);
}

int att_unpin_main(int argc, char **argv)
{
    return pin_main(argc, argv, false);
}
