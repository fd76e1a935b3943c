/*
 * live_gap: how far from the optimum live runs on the model fabric ended.
 *
 * usage: sim_live_gap SURFACE LOAD RUN-FOLDER...
 *
 * For each run folder (one task): calls in trials and comparisons, the noiseless gap of the setting
 * that the run ended with, and the setting. Fails when a run has not settled.
 */
#include "base/names.h"
#include "cli/tasks_file.h"
#include "sim/task.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static int show(struct att_sim_task *task, const att_sim_optimum_t *optimum, int load,
                const char *folder)
{
    char path[PATH_MAX], text[ATT_SETTING_TEXT];
    att_tasks_t tasks;
    att_error_t error = {""};
    snprintf(path, sizeof path, "%s/tasks.json", folder);
    if (att_tasks_read(path, &tasks, &error) != ATT_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    const att_task_row_t *row = tasks.count > 0 ? &tasks.rows[0] : NULL;
    bool settled = row != NULL && strcmp(row->phase, "settled") == 0;
    if (!settled) {
        fprintf(stderr, "%s: not settled (%s)\n", folder, row != NULL ? row->reason : "no task");
    } else {
        att_setting_t tuned = row->kept_default ? ATT_SETTING_KEEP : row->tuned.setting;
        printf("%llu\t%.6f\t%s\n", (unsigned long long)row->calls,
               att_sim_task_us(task, tuned, load) / optimum->us - 1,
               att_setting_text(tuned, text, sizeof text));
    }
    att_tasks_free(&tasks);
    return !settled;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: sim_live_gap SURFACE LOAD RUN-FOLDER...\n");
        return ATT_EUSAGE;
    }
    struct att_surface *surface;
    struct att_sim_task *task;
    att_sim_optimum_t optimum;
    att_sim_task_config_t config = {.collective = -1};
    att_error_t error = {""};
    int rc = att_surface_open(argv[1], &surface, &error);
    if (rc == ATT_OK)
        rc = att_sim_task_create(surface, &config, &task, &error);
    int load = rc == ATT_OK ? att_surface_load_index(surface, argv[2]) : 0;
    if (rc == ATT_OK && load < 0)
        rc = att_fail(&error, ATT_EUSAGE, "%s has no load %s", argv[1], argv[2]);
    if (rc == ATT_OK)
        rc = att_sim_task_optimum(task, load, &optimum, &error);
    if (rc != ATT_OK) {
        fprintf(stderr, "%s\n", error.text);
        return -rc;
    }
    int failed = 0;
    for (int i = 3; i < argc; i++)
        failed |= show(task, &optimum, load, argv[i]);
    att_sim_task_destroy(task);
    att_surface_close(surface);
    return failed;
}
