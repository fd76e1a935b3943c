/* The file of a sweep that attune record converts, of any bytes: refused with one line, or surfaces
 * in the folder that was named, and nowhere else, each of which can be read. */
#include "cli/bench_convert.h"
#include "surface/surface.h"

#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char top[] = "/tmp/att-fuzz-XXXXXX", input[PATH_MAX], out[PATH_MAX];

static void clean(void)
{
    unlink(input);
    rmdir(out);
    rmdir(top);
}

static void start(void)
{
    if (mkdtemp(top) == NULL)
        abort();
    snprintf(input, sizeof input, "%s/sweep.json", top);
    snprintf(out, sizeof out, "%s/out", top);
    if (mkdir(out, 0700) != 0 || freopen("/dev/null", "w", stdout) == NULL)
        abort();
    atexit(clean);
}

static size_t files_in(const char *folder, glob_t *found)
{
    char pattern[PATH_MAX + 8];
    snprintf(pattern, sizeof pattern, "%s/*", folder);
    return glob(pattern, GLOB_PERIOD, NULL, found) == 0 ? found->gl_pathc : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (input[0] == '\0')
        start();
    int fd = open(input, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    close(fd);
    att_record_options_t options = {.from_sweep = input, .out = out, .prefix = "fuzz"};
    att_error_t error = {""};
    int rc = att_bench_convert(&options, &error);
    if (rc != ATT_OK && (error.text[0] == '\0' || strchr(error.text, '\n') != NULL))
        abort();
    glob_t found;
    size_t count = files_in(top, &found);
    globfree(&found);
    if (count != 4) /* ".", "..", the input, the folder */
        abort();
    count = files_in(out, &found);
    for (size_t i = 0; i < count; i++) {
        const char *path = found.gl_pathv[i];
        struct att_surface *surface;
        if (strcmp(path + strlen(path) - 2, "/.") == 0 ||
            strcmp(path + strlen(path) - 3, "/..") == 0)
            continue;
        if (att_surface_open(path, &surface, &error) != ATT_OK) {
            fprintf(stderr, "%s\n", error.text);
            abort();
        }
        att_surface_close(surface);
        unlink(path);
    }
    globfree(&found);
    return 0;
}
