#include "folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *fuzz_folder(void)
{
    static char folder[] = "/tmp/att-fuzz-XXXXXX";
    static int made;
    if (!made && mkdtemp(folder) == NULL)
        abort();
    made = 1;
    return folder;
}

const char *fuzz_folder_path(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    return path;
}

void fuzz_folder_put(const char *name, const uint8_t *data, size_t size)
{
    int fd = open(fuzz_folder_path(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    close(fd);
}
