/* folder: a folder of its own for a target whose parser reads files. */
#ifndef FUZZ_FOLDER_H
#define FUZZ_FOLDER_H

#include <stddef.h>
#include <stdint.h>

/* Makes it, once a process. */
const char *fuzz_folder(void);
/* Of a file in there; valid until the next call. */
const char *fuzz_folder_path(const char *name);
void fuzz_folder_put(const char *name, const uint8_t *data, size_t size);

#endif
