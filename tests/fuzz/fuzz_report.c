/* Any bytes as every file of a run folder: refused with one line, or a page in which nothing of
 * them is markup; and the folder as one side of a comparison. */
#include "cli/compare.h"
#include "cli/counters_missing.h"
#include "cli/report_page.h"
#include "folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"tasks.json", "trials.jsonl", "manifest.json",
                                    "environment.txt", "counters/node-0000.jsonl"};

static void clean(void)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(fuzz_folder_path(names[i]));
    unlink(fuzz_folder_path("page.html"));
    rmdir(fuzz_folder_path("counters"));
    rmdir(fuzz_folder());
}

static void check_page(void)
{
    static char page[1 << 22];
    FILE *file = fopen(fuzz_folder_path("page.html"), "r");
    size_t length = file != NULL ? fread(page, 1, sizeof page - 1, file) : 0;
    if (file == NULL)
        abort();
    fclose(file);
    page[length] = '\0';
    int scripts = 0;
    for (const char *at = page; (at = strstr(at, "<script")) != NULL; at++)
        scripts++;
    if (scripts != 1 || strstr(page, "{{") != NULL || strlen(page) != length)
        abort();
}

/* Nothing of a file reaches a terminal as a control character. */
static void check_table(const att_compare_t *c)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    if (out == NULL)
        abort();
    att_compare_print(c, out);
    fclose(out);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < 0x20 && text[i] != '\n')
            abort();
    free(text);
}

static void check_line(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int made;
    if (!made) {
        if (mkdir(fuzz_folder_path("counters"), 0700) != 0)
            abort();
        atexit(clean);
        made = 1;
    }
    if (size > 65536)
        return 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        fuzz_folder_put(names[i], data, size);
    check_line(att_counters_missing(fuzz_folder(), "on,perf::TASK-CLOCK,nosuch:::event",
                                    (char[ATT_COUNTERS_MISSING]){""}));
    /* What is no tasks.json is still a good many things. */
    for (int round = 0; round < 2; round++) {
        att_report_run_t run;
        att_error_t error = {""};
        if (round == 1)
            unlink(fuzz_folder_path(names[0]));
        int status = att_report_run_read(fuzz_folder(), &run, &error);
        if (status == ATT_OK) {
            check_line(run.end);
            if (att_report_page(&run, fuzz_folder_path("page.html"), &error) != ATT_OK)
                abort();
            att_report_run_free(&run);
            /* Texts may hold braces of their own. */
            if (memmem(data, size, "{{", 2) == NULL)
                check_page();
        } else if (error.text[0] == '\0' || strchr(error.text, '\n') != NULL) {
            abort();
        }
        att_compare_side_t a, b;
        if (att_compare_side_read(fuzz_folder(), &a, &error) != ATT_OK)
            continue;
        if (att_compare_side_read(fuzz_folder(), &b, &error) != ATT_OK)
            abort();
        att_compare_t c;
        if (att_compare_make(&a, &b, -1, &c, &error) == ATT_OK) {
            check_table(&c);
            check_line(a.end);
            if (c.better + c.worse + c.only_a + c.only_b != 0)
                abort();
            att_compare_free(&c);
        }
        att_compare_side_free(&a);
        att_compare_side_free(&b);
    }
    return 0;
}
