#include "cli/trace_request.h"

#include "base/clock.h"
#include "cli/folder_glob.h"
#include "cli/json_file.h"
#include "cli/tasks_file.h"
#include "profile/stream.h"
#include "profile/trace_mode.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE_NS 5000000000ull
#define TICK_NS     50000000ull

static int check_running(const char *run, att_error_t *error)
{
    char path[PATH_MAX];
    json_t *tasks = NULL;
    if (access(run, F_OK) != 0)
        return att_fail_errno(error, "%s", run);
    snprintf(path, sizeof path, "%s/tasks.json", run);
    int status = att_json_read(path, ATT_TASKS_FILE_MAX, &tasks, error);
    if (status == -ATT_ENOENT)
        return ATT_OK; /* no report yet */
    if (status == ATT_OK && strcmp(att_json_text_at(tasks, "state"), "finished") == 0)
        status = att_fail(error, ATT_ENOENT, "%s has finished: there is nothing to record", run);
    json_decref(tasks);
    return status;
}

static int write_request(const char *run, const char *mode, uint64_t token, att_error_t *error)
{
    char path[PATH_MAX], temporary[PATH_MAX];
    snprintf(path, sizeof path, "%s/" ATT_STREAM_FOLDER, run);
    if (mkdir(path, 0755) != 0 && errno != EEXIST)
        return att_fail_errno(error, "cannot make %s", path);
    snprintf(path, sizeof path, "%s/" ATT_STREAM_FOLDER "/request", run);
    snprintf(temporary, sizeof temporary, "%s/" ATT_STREAM_FOLDER "/.request.new", run);
    FILE *file = fopen(temporary, "we");
    if (file == NULL)
        return att_fail_errno(error, "cannot write %s", temporary);
    int written = fprintf(file, "%s %" PRIu64 "\n", mode, token);
    if (fclose(file) != 0 || written < 0 || rename(temporary, path) != 0)
        return att_fail_errno(error, "cannot write %s", path);
    return ATT_OK;
}

/* How many agents have followed this request, and how many there are. */
static void count_followers(const char *run, uint64_t token, int *followed, int *agents)
{
    glob_t files;
    *followed = *agents = 0;
    if (att_folder_glob(run, ATT_STREAM_FOLDER "/node-*.json", &files) != 0)
        return;
    for (size_t i = 0; i < files.gl_pathc; i++) {
        json_t *status = json_load_file(files.gl_pathv[i], 0, NULL);
        int nodes = (int)json_integer_value(json_object_get(status, "nodes"));
        if (nodes > *agents)
            *agents = nodes;
        *followed += (uint64_t)json_integer_value(json_object_get(status, "request")) == token;
        json_decref(status);
    }
    globfree(&files);
}

int att_trace_request(const char *run, const char *mode, att_error_t *error)
{
    att_trace_mode_t parsed;
    int status = att_trace_mode_parse(mode, "--trace", &parsed, error);
    if (status == ATT_OK)
        status = check_running(run, error);
    uint64_t token = att_clock_ns();
    if (status == ATT_OK)
        status = write_request(run, mode, token, error);
    if (status != ATT_OK)
        return status;
    int followed = 0, agents = 0;
    while (att_clock_ns() - token < PATIENCE_NS) {
        count_followers(run, token, &followed, &agents);
        if (agents > 0 && followed == agents)
            return ATT_OK;
        att_clock_sleep_ns(TICK_NS);
    }
    if (followed > 0)
        return ATT_OK; /* agents elsewhere write to folders of their own */
    return att_fail(error, ATT_ETIMEOUT,
                    "no sidecar has answered within 5 s: does the job of %s still run?", run);
}
