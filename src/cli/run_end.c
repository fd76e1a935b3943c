#include "cli/run_end.h"

#include "cli/json_file.h"
#include "cli/report_file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#define MANIFEST_MAX (4u << 20)

static double age_s(const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct stat s;
    struct timespec now;
    snprintf(path, sizeof path, "%.4000s/%s", folder, name);
    if (stat(path, &s) != 0)
        return 0;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)(now.tv_sec - s.st_mtim.tv_sec) +
           (double)(now.tv_nsec - s.st_mtim.tv_nsec) * 1e-9;
}

void att_run_end_look(const char *folder, att_run_end_t *end)
{
    char *bytes;
    size_t length;
    json_t *manifest;
    *end = (att_run_end_t){.report_age_s = age_s(folder, "tasks.json")};
    if (end->report_age_s == 0)
        end->report_age_s = age_s(folder, "tasks.json.gz");
    if (att_report_file_read(folder, "manifest.json", MANIFEST_MAX, &bytes, &length, NULL) !=
        ATT_OK)
        return;
    if (att_json_parse(bytes, length, &manifest, NULL) == ATT_OK) {
        snprintf(end->sidecar, sizeof end->sidecar, "%s",
                 att_json_text_at(json_object_get(manifest, "sidecar"), "end"));
        json_decref(manifest);
    }
    free(bytes);
    for (char *c = end->sidecar; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
            *c = '?';
}

bool att_run_is_quiet(const att_run_end_t *end, const att_tasks_t *tasks)
{
    return end->report_age_s > ATT_RUN_QUIET_S + ATT_RUN_QUIET_TASK_S * (double)tasks->count;
}

const char *att_run_end_text(const att_run_end_t *end, const att_tasks_t *tasks,
                             char text[ATT_RUN_END_TEXT])
{
    text[0] = '\0';
    if (tasks->finished)
        return text;
    if (end->sidecar[0] != '\0')
        snprintf(text, ATT_RUN_END_TEXT,
                 "not finished: the sidecar (%s) left no closing report; numbers are those of its "
                 "last one",
                 end->sidecar);
    else if (att_run_is_quiet(end, tasks))
        snprintf(text, ATT_RUN_END_TEXT,
                 "not finished, and no report for %.0f s: the sidecar is gone or stopped; numbers "
                 "are those of its last report",
                 end->report_age_s);
    return text;
}

bool att_run_under_way(const char *folder)
{
    char path[PATH_MAX], text[ATT_RUN_END_TEXT];
    att_run_end_t end;
    att_tasks_t tasks;
    att_run_end_look(folder, &end);
    snprintf(path, sizeof path, "%.4000s/tasks.json", folder);
    if (att_tasks_read(path, &tasks, NULL) != ATT_OK)
        return false;
    bool under_way = !tasks.finished && att_run_end_text(&end, &tasks, text)[0] == '\0';
    att_tasks_free(&tasks);
    return under_way;
}
