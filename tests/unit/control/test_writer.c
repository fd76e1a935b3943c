/* Files that are replaced by a thread, and a file system that stalls. */
#include "control/writer.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[PATH_MAX];

static int make_folder(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/att-writer-XXXXXX", tmp != NULL ? tmp : "/tmp");
    return mkdtemp(folder) == NULL;
}

static const char *in_folder(const char *name, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%.4000s/%s", folder, name);
    return path;
}

static int remove_folder(void **state)
{
    (void)state;
    char path[PATH_MAX];
    unlink(in_folder("a", path));
    unlink(in_folder("b", path));
    return rmdir(folder);
}

static int put(struct att_writer *w, const char *name, const char *text)
{
    char path[PATH_MAX];
    return att_writer_put(w, in_folder(name, path), strdup(text), strlen(text));
}

static void assert_holds(const char *name, const char *text)
{
    char path[PATH_MAX], got[64] = "";
    FILE *file = fopen(in_folder(name, path), "r");
    assert_non_null(file);
    size_t n = fread(got, 1, sizeof got - 1, file);
    fclose(file);
    assert_int_equal(n, strlen(text));
    assert_string_equal(got, text);
}

static void what_was_put_last_is_there_after_a_flush(void **state)
{
    (void)state;
    struct att_writer *w = NULL;
    att_error_t error;
    att_writer_flush(NULL);
    att_writer_destroy(NULL);
    assert_int_equal(att_writer_create(&w, &error), ATT_OK);
    att_writer_flush(w);
    for (int i = 0; i < 1000; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        assert_int_equal(put(w, i % 2 ? "a" : "b", text), ATT_OK);
    }
    att_writer_flush(w);
    assert_holds("a", "999");
    assert_holds("b", "998");
    assert_int_equal(put(w, "a", "end"), ATT_OK);
    att_writer_destroy(w); /* writes what is left */
    assert_holds("a", "end");
}

static char *twice(const void *data, size_t *length)
{
    char *text = NULL;
    int size = asprintf(&text, "%s%s", (const char *)data, (const char *)data);
    *length = (size_t)size;
    return size >= 0 ? text : NULL;
}

static void a_text_is_made_by_the_writer(void **state)
{
    (void)state;
    struct att_writer *w = NULL;
    att_error_t error;
    char path[PATH_MAX];
    assert_int_equal(att_writer_create(&w, &error), ATT_OK);
    in_folder("a", path);
    for (int i = 0; i < 100; i++) /* most are left out */
        assert_int_equal(att_writer_make(w, path, twice, strdup("ab")), ATT_OK);
    att_writer_flush(w);
    assert_holds("a", "abab");
    assert_int_equal(put(w, "a", "text"), ATT_OK);
    att_writer_flush(w);
    assert_holds("a", "text");
    assert_int_equal(att_writer_make(w, path, twice, strdup("c")), ATT_OK);
    att_writer_destroy(w);
    assert_holds("a", "cc");
}

/* A pipe that nobody reads stands where the new file would: opening it does not return. */
static void a_stall_holds_nobody_up(void **state)
{
    (void)state;
    struct att_writer *w = NULL;
    att_error_t error;
    char stall[PATH_MAX];
    assert_int_equal(mkfifo(in_folder(".a.new", stall), 0600), 0);
    assert_int_equal(att_writer_create(&w, &error), ATT_OK);
    put(w, "a", "first");
    usleep(20000); /* likely it has begun by then; the test holds either way */
    for (int i = 0; i < 100; i++)
        assert_int_equal(put(w, i % 2 ? "a" : "b", "later"), ATT_OK);
    int reader = open(stall, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* it goes on */
    assert_true(reader >= 0);
    att_writer_flush(w);
    close(reader);
    put(w, "a", "later"); /* until now the pipe may stand there */
    att_writer_destroy(w);
    assert_holds("a", "later");
    assert_holds("b", "later");
}

static void what_cannot_be_written_costs_nothing_else(void **state)
{
    (void)state;
    struct att_writer *w = NULL;
    att_error_t error;
    assert_int_equal(att_writer_create(&w, &error), ATT_OK);
    assert_int_equal(put(w, "nowhere/c", "x"), ATT_OK); /* logged */
    assert_int_equal(put(w, "a", "y"), ATT_OK);
    att_writer_flush(w);
    assert_holds("a", "y");
    for (int i = 0; i < ATT_WRITER_FILES - 2; i++) {
        char name[32];
        snprintf(name, sizeof name, "nowhere/%d", i);
        assert_int_equal(put(w, name, "z"), ATT_OK);
    }
    assert_int_equal(put(w, "one-too-many", "z"), -ATT_ENOMEM);
    att_writer_destroy(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_put_last_is_there_after_a_flush),
        cmocka_unit_test(a_text_is_made_by_the_writer),
        cmocka_unit_test(a_stall_holds_nobody_up),
        cmocka_unit_test(what_cannot_be_written_costs_nothing_else),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
