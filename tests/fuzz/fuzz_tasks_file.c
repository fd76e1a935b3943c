/* A tasks.json of any bytes is refused with one line, or its summary can be printed. */
#include "cli/progress.h"
#include "cli/summary.h"
#include "cli/tasks_file.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void show(const att_tasks_t *tasks)
{
    char *text = NULL, line[200];
    size_t length;
    att_findings_t findings = {.has_fabric = false};
    att_summary_t summary;
    FILE *out = open_memstream(&text, &length);
    if (out == NULL)
        abort();
    att_summary_init(&summary, "fuzz", "none", "", "none", "exit status 0", &findings, tasks);
    att_summary_print(&summary, out);
    fclose(out);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < 0x20 && text[i] != '\n')
            abort(); /* nothing of the file's reaches a terminal as a control character */
    free(text);
    att_progress_text(tasks, 1, line, sizeof line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    att_tasks_t tasks;
    att_error_t error = {""};
    if (att_tasks_parse((const char *)data, size, &tasks, &error) == ATT_OK) {
        show(&tasks);
        att_tasks_free(&tasks);
    } else if (error.text[0] == '\0' || strchr(error.text, '\n') != NULL) {
        abort();
    }
    return 0;
}
