/* What `attune top` shows: never more than the screen holds, nothing of the file's that could steer
 * a terminal, and in lines only what changed. */
#include "cli/top_screen.h"
#include "cli/top_view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static att_task_row_t rows[40];
static att_tasks_t tasks;

static int fill(void **state)
{
    (void)state;
    memset(rows, 0, sizeof rows);
    for (int i = 0; i < 40; i++) {
        rows[i] = (att_task_row_t){.ranks = 8,
                                   .nodes = 1,
                                   .collective = ATT_COLLECTIVE_ALL_GATHER,
                                   .bytes = 1u << (i % 20 + 10),
                                   .trials = (uint64_t)i,
                                   .late_rank = -1};
        snprintf(rows[i].group, sizeof rows[i].group, "0x%d", i % 2);
        strcpy(rows[i].phase, "search");
    }
    rows[0].bytes = 8000000;
    rows[0].native.median_us = 1000;
    rows[0].tuned.median_us = 500;
    rows[0].now_us = 700;
    rows[0].late_rank = 5;
    rows[0].late_us = 1500;
    tasks = (att_tasks_t){.rows = rows, .count = 40};
    tasks.cost.run_us = 12.5e6;
    return 0;
}

static char *screen(const att_top_view_t *view, int height, int width, size_t first, size_t *count)
{
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    *count = att_top_screen(view, height, width, first, "\n", out);
    fclose(out);
    return text;
}

static void bandwidths_and_late_rank(void **state)
{
    size_t count;
    tasks.count = 1;
    char *text =
        screen(&(att_top_view_t){.name = "run", .tasks = &tasks, .end = {.report_age_s = 0.5}}, 24,
               120, 0, &count);
    assert_int_equal(count, 2);
    assert_non_null(strstr(text, "attune top  run  12 s  running\n"));
    assert_non_null(strstr(text, "group 0x0  8 ranks, 1 node\n"));
    /* 8 MB in 700, 1000 and 500 us, 7/8 of it */
    assert_non_null(strstr(
        text, "  allgather 8000000    search          0      10.00      7.00     14.00   2.00x  "
              "5 (+1.5 ms)\n"));
    free(text);
    rows[0].now_age_s = 20;
    text = screen(&(att_top_view_t){.name = "run", .tasks = &tasks, .end = {.report_age_s = 9}}, 24,
                  120, 0, &count);
    assert_non_null(strstr(text, "(10.00)"));
    assert_non_null(strstr(text, "NO REPORT for 9 s"));
    free(text);
    text = screen(&(att_top_view_t){.name = "run", .tasks = &tasks, .end = {"exit status 1", 1}},
                  24, 120, 0, &count);
    assert_non_null(strstr(text, "NOT FINISHED: the sidecar is gone (exit status 1)"));
    free(text);
    tasks.finished = true;
    text = screen(&(att_top_view_t){.name = "run", .tasks = &tasks, .end = {.report_age_s = 900}},
                  24, 120, 0, &count);
    assert_non_null(strstr(text, "  finished\n"));
    free(text);
    text = screen(&(att_top_view_t){.name = "run"}, 24, 120, 0, &count);
    assert_non_null(strstr(text, "waiting"));
    free(text);
}

static void every_size_of_screen(void **state)
{
    strcpy(rows[3].group, "\033[2J\xc3\xa9\x9b");
    rows[3].ranks = 9;
    for (int height = 0; height < 60; height += height < 10 ? 1 : 7)
        for (int width = 0; width < 200; width += width < 20 ? 1 : 23)
            for (size_t first = 0; first < 100; first += 33) {
                size_t count;
                char *text = screen(&(att_top_view_t){.name = "run", .tasks = &tasks}, height,
                                    width, first, &count);
                int lines = 0;
                assert_int_equal(count, 43); /* 40 tasks of three groups */
                for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
                    assert_true(end - line <= width);
                    for (char *c = line; c < end; c++)
                        assert_true(*c >= 0x20 && *c < 0x7f);
                    lines++;
                }
                assert_true(lines <= height);
                free(text);
            }
}

static void the_list_moves_and_ends(void **state)
{
    size_t count;
    att_top_view_t view = {.name = "run", .tasks = &tasks};
    char *text = screen(&view, 15, 120, 0, &count);
    assert_int_equal(count, 42);
    assert_non_null(strstr(text, "-- 1 to 10 of 42;"));
    free(text);
    text = screen(&view, 15, 120, 1000, &count);
    assert_non_null(strstr(text, "-- 33 to 42 of 42;"));
    free(text);
    text = screen(&view, 46, 120, 0, &count);
    assert_null(strstr(text, "-- "));
    assert_non_null(strstr(text, "group 0x1"));
    free(text);
}

/* As a job of many nodes has: the time must not grow as groups times tasks. */
static void a_list_of_many_groups(void **state)
{
    enum { COUNT = 60000, GROUPS = COUNT / 2 };
    size_t count;
    att_task_row_t *many = calloc(COUNT, sizeof *many);
    assert_non_null(many);
    for (uint32_t i = 0; i < COUNT; i++) {
        many[i] = rows[1];
        many[i].bytes = 1000 + i;
        snprintf(many[i].group, sizeof many[i].group, "0x%x", i % GROUPS);
    }
    att_tasks_t all = {.rows = many, .count = COUNT};
    att_top_view_t view = {.name = "run", .tasks = &all};
    clock_t began = clock(); /* of the processor: others may use it too */
    char *text = screen(&view, 25, 120, 3, &count);
    assert_true(clock() - began < 5 * CLOCKS_PER_SEC);
    assert_int_equal(count, COUNT + GROUPS);
    /* Each group is a line and two tasks, which are far apart in the file. */
    assert_null(strstr(text, "group 0x0 "));
    assert_non_null(strstr(text, "group 0x1 "));
    assert_non_null(strstr(text, "allgather 31001 "));
    assert_non_null(strstr(text, "-- 4 to 23 of 90000;"));
    free(text);
    free(many);
}

static char *lines(att_top_seen_t **seen, size_t *count)
{
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    assert_int_equal(
        att_top_lines(&(att_top_view_t){.name = "run", .tasks = &tasks}, seen, count, out), ATT_OK);
    fclose(out);
    return text;
}

static void lines_tell_what_changed(void **state)
{
    att_top_seen_t *seen = NULL;
    size_t count = 0;
    tasks.count = 2;
    char *text = lines(&seen, &count);
    assert_string_equal(text,
                        "12.5 s: allgather 8000000 x8 0x0 search: 0 trials, busbw now 10.00, "
                        "default 7.00, best 14.00 GB/s (2.00x), late rank 5 (+1.5 ms)\n"
                        "12.5 s: allgather 2K x8 0x1 search: 1 trials, busbw now -, default -, "
                        "best - GB/s (-)\n");
    free(text);
    text = lines(&seen, &count);
    assert_string_equal(text, "");
    free(text);
    tasks.count = 3;
    rows[1].trials++;
    rows[0].late_rank = -1;
    text = lines(&seen, &count);
    assert_non_null(strstr(text, "0x1 search: 2 trials"));
    assert_non_null(strstr(text, "(2.00x)\n"));
    assert_non_null(strstr(text, "allgather 4K"));
    free(text);
    free(seen);
}

static void keys(void **state)
{
    static const struct {
        const char *bytes;
        att_top_key_t key;
        size_t used;
    } cases[] = {{"q", ATT_TOP_QUIT, 1},        {"\033[A", ATT_TOP_UP, 3},
                 {"\033OBq", ATT_TOP_DOWN, 3},  {"\033[6~", ATT_TOP_PAGE_DOWN, 4},
                 {"\033[9~", ATT_TOP_NONE, 1},  {"\033", ATT_TOP_NONE, 1},
                 {"\xff\xfe", ATT_TOP_NONE, 1}, {"G", ATT_TOP_END, 1},
                 {"", ATT_TOP_NONE, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t used = 99;
        assert_int_equal(att_top_key_parse(cases[i].bytes, strlen(cases[i].bytes), &used),
                         cases[i].key);
        assert_int_equal(used, cases[i].used);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(bandwidths_and_late_rank, fill),
        cmocka_unit_test_setup(every_size_of_screen, fill),
        cmocka_unit_test_setup(the_list_moves_and_ends, fill),
        cmocka_unit_test_setup(a_list_of_many_groups, fill),
        cmocka_unit_test_setup(lines_tell_what_changed, fill),
        cmocka_unit_test(keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
