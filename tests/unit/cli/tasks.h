/* The tasks that the tests of the command share: tests/data/tasks/two-tasks.json. */
#ifndef ATT_TESTS_CLI_TASKS_H
#define ATT_TESTS_CLI_TASKS_H

#include "cli/tasks_file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static inline const char *two_tasks_path(char *path)
{
    snprintf(path, PATH_MAX, "%s/tasks/two-tasks.json", getenv("ATTUNE_TEST_DATA"));
    return path;
}

static inline void read_two_tasks(att_tasks_t *tasks)
{
    char path[PATH_MAX];
    att_error_t error = {""};
    if (att_tasks_read(two_tasks_path(path), tasks, &error) != ATT_OK) {
        fprintf(stderr, "%s\n", error.text);
        abort();
    }
}

#endif
