/* What a sidecar reads of an earlier run's folder (--apply: tasks.json, --quarantine: lists.jsonl),
 * of any bytes: refused with one line, or settings that can be. */
#include "base/names.h"
#include "control/applied.h"
#include "control/quarantine.h"
#include "folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"tasks.json", "lists.jsonl"};

static void clean(void)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(fuzz_folder_path(names[i]));
    rmdir(fuzz_folder());
}

static void check_setting(att_setting_t s)
{
    if (s.algorithm < ATT_ALGORITHM_KEEP || s.algorithm >= ATT_ALGORITHM_COUNT ||
        s.protocol < ATT_PROTOCOL_KEEP || s.protocol >= ATT_PROTOCOL_COUNT ||
        s.transport < ATT_TRANSPORT_KEEP || s.transport >= ATT_TRANSPORT_COUNT)
        abort();
}

static void check_reason(const att_error_t *error)
{
    if (error->text[0] == '\0' || strchr(error->text, '\n') != NULL)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int made;
    if (!made)
        atexit(clean);
    made = 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        fuzz_folder_put(names[i], data, size);
    struct att_applied *applied;
    struct att_quarantine *quarantine;
    att_error_t error = {""};
    if (att_applied_read(fuzz_folder(), &applied, &error) == ATT_OK) {
        for (uint32_t i = 0; i < applied->count; i++)
            check_setting(applied->rows[i].setting);
        att_applied_free(applied);
    } else {
        check_reason(&error);
    }
    if (att_quarantine_read(fuzz_folder(), &quarantine, &error) == ATT_OK) {
        for (uint32_t i = 0; i < quarantine->count; i++)
            check_setting(quarantine->rows[i].setting);
        att_quarantine_free(quarantine);
    } else {
        check_reason(&error);
    }
    return 0;
}
