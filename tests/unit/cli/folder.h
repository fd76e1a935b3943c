/* A folder of its own for a test, made before it and removed with everything in it after it. */
#ifndef ATT_TESTS_CLI_FOLDER_H
#define ATT_TESTS_CLI_FOLDER_H

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char test_folder[PATH_MAX];

static inline int make_test_folder(void **state)
{
    const char *above = getenv("TMPDIR");
    snprintf(test_folder, sizeof test_folder, "%s/cli-XXXXXX", above != NULL ? above : "/tmp");
    return mkdtemp(test_folder) == NULL;
}

static inline int remove_entry(const char *path, const struct stat *status, int type,
                               struct FTW *place)
{
    return remove(path);
}

static inline int remove_test_folder(void **state)
{
    return nftw(test_folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static inline void write_test_file(const char *name, const char *text)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", test_folder, name);
    FILE *file = fopen(path, "w");
    if (file == NULL || fputs(text, file) == EOF || fclose(file) != 0)
        abort();
}

#endif
