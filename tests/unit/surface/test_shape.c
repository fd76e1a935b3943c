/* Shapes: what a bump is, lines of a recording, and figure 3's lines on the model of its machine.
 */
#include "surface/shape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void a_bump_is_slower_than_both_sides(void **state)
{
    static const struct {
        double times[6];
        size_t count;
        double bump;
    } rows[] = {
        {{3, 2, 1, 2, 3}, 5, 0},
        {{1, 2, 3}, 3, 0},
        {{3, 2, 1}, 3, 0},
        {{2, 2, 2, 2}, 4, 0}, /* flat is fine */
        {{10, 12, 8}, 3, 0.2},
        {{10, 9, 9.9, 5, 11}, 5, 0.1},
        {{4, 1, 5, 2, 3, 2.5}, 6, 1.5},
        {{1, 2}, 2, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_float_equal(att_shape_bump(rows[i].times, rows[i].count), rows[i].bump, 1e-9);
}

static struct att_surface *parse(const char *text)
{
    struct att_surface *surface;
    att_error_t error = {""};
    if (att_surface_parse(text, strlen(text), &surface, &error) != ATT_OK)
        fail_msg("%s", error.text);
    return surface;
}

static void lines_are_counted_by_knob(void **state)
{
    struct att_surface *s =
        parse("collective,ranks,bytes,algorithm,protocol,channels,chunk,time_us\n"
              "allreduce,2,1024,keep,keep,keep,keep,50\n"
              "allreduce,2,1024,ring,ll,1,4096,10\n"
              "allreduce,2,1024,ring,ll,2,4096,12\n"
              "allreduce,2,1024,ring,ll,3,4096,9\n"
              "allreduce,2,1024,ring,ll,1,8192,10\n"
              "allreduce,2,1024,ring,ll,2,8192,9\n"
              "allreduce,2,1024,ring,ll,3,8192,11\n"
              "allreduce,2,1024,ring,ll,1,keep,1\n"
              "allreduce,2,1024,ring,ll,1,16384,8\n"
              "allreduce,2,1024,tree,ll,1,4096,1\n");
    att_shape_count_t counts[ATT_SHAPE_KNOBS];
    assert_int_equal(att_surface_shape(s, ATT_COLLECTIVE_ALL_REDUCE, 1024, 0, 0.1, counts, NULL),
                     ATT_OK);
    assert_int_equal(counts[ATT_SHAPE_CHANNELS].lines, 2);
    assert_int_equal(counts[ATT_SHAPE_CHANNELS].bent, 1);
    assert_int_equal(counts[ATT_SHAPE_CHANNELS].bent_more, 1);
    assert_float_equal(counts[ATT_SHAPE_CHANNELS].worst, 0.2, 1e-9);
    /* 4K, 8K, 16K at one channel; "keep" is no place on the line */
    assert_int_equal(counts[ATT_SHAPE_CHUNK].lines, 1);
    assert_int_equal(counts[ATT_SHAPE_CHUNK].bent, 0);
    assert_int_equal(counts[ATT_SHAPE_THREADS].lines, 0);
    assert_int_equal(att_surface_shape(s, ATT_COLLECTIVE_ALL_REDUCE, 1024, 1, 0.1, counts, NULL),
                     -ATT_ENOENT);
    assert_int_equal(att_surface_shape(s, ATT_COLLECTIVE_ALL_GATHER, 1024, 0, 0.1, counts, NULL),
                     -ATT_ENOENT);
    att_surface_close(s);
}

/* Figure 3 shows these lines with one peak each. Whole rounds make the model's ragged by less than
 * 2.5 %. */
static void published_lines_have_one_peak(void **state)
{
    static const struct {
        int channels, threads, chunk_kib;
    } rows[] = {{0, 96, 80}, {0, 96, 20}, {2, 0, 120}, {4, 0, 120}};
    struct att_surface *surface;
    assert_int_equal(att_surface_open("a40-nvlink-8-allgather", &surface, NULL), ATT_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double times[64];
        size_t count = 0;
        int by_channels = rows[i].channels == 0;
        for (int v = by_channels ? 1 : 64; v <= (by_channels ? 64 : 640);
             v += by_channels ? 1 : 32) {
            att_setting_t x = {.algorithm = ATT_ALGORITHM_RING,
                               .protocol = ATT_PROTOCOL_SIMPLE,
                               .transport = ATT_TRANSPORT_P2P,
                               .channels = (uint16_t)(by_channels ? v : rows[i].channels),
                               .threads = (uint16_t)(by_channels ? rows[i].threads : v),
                               .chunk_bytes = (uint32_t)rows[i].chunk_kib * 1024};
            times[count++] =
                att_surface_duration_us(surface, ATT_COLLECTIVE_ALL_GATHER, 80ull << 20, x, 0);
        }
        double bump = att_shape_bump(times, count);
        print_message("figure 3, %d channels, %d threads, %d KiB: largest bump %.2f %%\n",
                      rows[i].channels, rows[i].threads, rows[i].chunk_kib, 100 * bump);
        assert_true(bump <= 0.025);
    }
    att_surface_close(surface);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bump_is_slower_than_both_sides),
        cmocka_unit_test(lines_are_counted_by_knob),
        cmocka_unit_test(published_lines_have_one_peak),
    };
    return cmocka_run_group_tests_name("surface_shape", tests, NULL, NULL);
}
