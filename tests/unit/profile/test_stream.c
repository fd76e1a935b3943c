/* Streams: what is written is read back; damage costs what it hit; rings and limits hold. */
#include "profile/stream_reader.h"
#include "profile/stream_writer.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static char folder[] = "/tmp/attune-stream-XXXXXX";

static int make_folder(void **state)
{
    strcpy(folder, "/tmp/attune-stream-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        unlinkat(dirfd(d), e->d_name, 0);
    if (d != NULL)
        closedir(d);
    return rmdir(folder);
}

static struct att_stream_writer *writer_of(bool ring, uint64_t limit)
{
    struct att_stream_writer *w = NULL;
    att_stream_options_t options = {
        .folder = folder, .ring = ring, .limit_bytes = limit, .header = {.node = 3, .nodes = 4}};
    att_error_t error;
    assert_int_equal(att_stream_writer_create(&options, &w, &error), ATT_OK);
    return w;
}

static void put(struct att_stream_writer *w, uint64_t call)
{
    att_stream_record_t r = {
        .call = call, .start_ns = (int64_t)call * 100 + 1, .stop_ns = (int64_t)call * 100 + 50};
    att_stream_writer_record(w, &r, r.start_ns, r.stop_ns);
}

static char *path_of(uint32_t part, const char *kind)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/node-0003-%06u%s.records", folder, part, kind);
    return path;
}

/* Records of a file in order; the first call in *first. */
static uint64_t count_records(const struct att_stream_reader *reader, uint64_t *first)
{
    static unsigned char payload[ATT_FRAME_PAYLOAD];
    size_t count;
    uint64_t records = 0;
    const att_frame_place_t *frames = att_stream_reader_frames(reader, &count);
    for (size_t i = 0; i < count; i++) {
        if (frames[i].type != ATT_FRAME_RECORDS ||
            !att_stream_reader_payload(reader, &frames[i], payload))
            continue;
        const att_stream_record_t *r = (const void *)payload;
        if (records == 0)
            *first = r[0].call;
        for (uint32_t k = 0; k < frames[i].count; k++)
            assert_true(r[k].start_ns == (int64_t)r[k].call * 100 + 1);
        assert_true(frames[i].first_ns == r[0].start_ns);
        assert_true(frames[i].last_ns == r[frames[i].count - 1].stop_ns);
        records += frames[i].count;
    }
    return records;
}

static void written_is_read(void **state)
{
    struct att_stream_writer *w = writer_of(false, 1 << 30);
    att_stream_group_t group = {.hash = 7, .ranks = 4};
    att_stream_writer_define(w, ATT_FRAME_GROUP, 0, &group, sizeof group);
    for (uint64_t i = 0; i < 2000; i++)
        put(w, i);
    att_stream_writer_destroy(w);
    struct att_stream_reader *reader;
    att_error_t error;
    assert_int_equal(att_stream_reader_open(path_of(1, ""), &reader, &error), ATT_OK);
    assert_int_equal(att_stream_reader_header(reader)->node, 3);
    uint64_t first = 9;
    assert_int_equal(count_records(reader, &first), 2000);
    assert_int_equal(first, 0);
    assert_int_equal(att_stream_reader_damage(reader)->missing_frames, 0);
    assert_int_equal(att_stream_reader_damage(reader)->skipped_bytes, 0);
    att_stream_reader_close(reader);
    /* A second recording of the same node goes on behind the first. */
    w = writer_of(false, 1 << 30);
    put(w, 1);
    att_stream_writer_destroy(w);
    assert_int_equal(access(path_of(2, ""), F_OK), 0);
}

static void a_torn_end_costs_the_last_frame(void **state)
{
    struct att_stream_writer *w = writer_of(false, 1 << 30);
    for (uint64_t i = 0; i < 2 * ATT_FRAME_FULL; i++)
        put(w, i);
    att_stream_writer_destroy(w);
    struct stat about;
    stat(path_of(1, ""), &about);
    for (off_t cut = 1; cut < 20000; cut += 997) {
        assert_int_equal(truncate(path_of(1, ""), about.st_size - cut), 0);
        struct att_stream_reader *reader;
        att_error_t error;
        uint64_t first = 0;
        assert_int_equal(att_stream_reader_open(path_of(1, ""), &reader, &error), ATT_OK);
        assert_int_equal(count_records(reader, &first), ATT_FRAME_FULL);
        const att_stream_damage_t *damage = att_stream_reader_damage(reader);
        assert_true(damage->skipped_bytes > 0 && damage->torn_end);
        assert_int_equal(damage->first_at + damage->skipped_bytes, about.st_size - cut);
        att_stream_reader_close(reader);
    }
}

static void damage_in_the_middle_is_skipped(void **state)
{
    struct att_stream_writer *w = writer_of(false, 1 << 30);
    for (uint64_t i = 0; i < 3 * ATT_FRAME_FULL; i++)
        put(w, i);
    att_stream_writer_destroy(w);
    FILE *file = fopen(path_of(1, ""), "r+b");
    /* The second frame's header: it is lost, and the third is found again. */
    long frame = (long)(sizeof(att_frame_t) + ATT_FRAME_FULL * sizeof(att_stream_record_t));
    fseek(file, (long)sizeof(att_stream_header_t) + frame + 8, SEEK_SET);
    fputc(0x5a, file);
    fclose(file);
    struct att_stream_reader *reader;
    att_error_t error;
    uint64_t first = 0;
    assert_int_equal(att_stream_reader_open(path_of(1, ""), &reader, &error), ATT_OK);
    assert_int_equal(count_records(reader, &first), 2 * ATT_FRAME_FULL);
    assert_int_equal(att_stream_reader_damage(reader)->missing_frames, 1);
    assert_int_equal(att_stream_reader_damage(reader)->skipped_bytes, frame);
    assert_int_equal(att_stream_reader_damage(reader)->first_at,
                     (long)sizeof(att_stream_header_t) + frame);
    assert_false(att_stream_reader_damage(reader)->torn_end);
    att_stream_reader_close(reader);
}

static void a_ring_holds_the_latest_and_never_grows(void **state)
{
    struct att_stream_writer *w = writer_of(true, ATT_STREAM_RING);
    att_stream_group_t group = {.hash = 7, .ranks = 4};
    att_stream_writer_define(w, ATT_FRAME_GROUP, 0, &group, sizeof group);
    uint64_t last = 0;
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < 5000; i++)
            put(w, last++);
        att_stream_writer_wait(w);
        uint64_t bytes = 0;
        for (uint32_t part = 1; part < 200; part++) {
            struct stat about;
            if (stat(path_of(part, ".ring"), &about) == 0)
                bytes += (uint64_t)about.st_size;
        }
        assert_in_range(bytes, 1, ATT_STREAM_RING);
    }
    att_stream_counts_t counts;
    att_stream_writer_counts(w, &counts);
    assert_int_equal(counts.dropped, 0);
    att_stream_writer_destroy(w);
    uint64_t records = 0;
    uint32_t parts = 0;
    for (uint32_t part = 1; part < 200; part++) {
        struct att_stream_reader *reader;
        att_error_t error;
        if (access(path_of(part, ".ring"), F_OK) != 0)
            continue;
        assert_int_equal(att_stream_reader_open(path_of(part, ".ring"), &reader, &error), ATT_OK);
        size_t count;
        const att_frame_place_t *frames = att_stream_reader_frames(reader, &count);
        assert_int_equal(frames[0].type, ATT_FRAME_GROUP); /* each part can be read alone */
        uint64_t first = 0;
        records += count_records(reader, &first);
        parts++;
        att_stream_reader_close(reader);
    }
    assert_in_range(parts, ATT_STREAM_PARTS - 1, ATT_STREAM_PARTS);
    assert_in_range(records, 40000, 60000);
}

static void the_limit_ends_a_plain_file_and_counts(void **state)
{
    struct att_stream_writer *w = writer_of(false, 1 << 20);
    for (uint64_t i = 0; i < 30000; i++) {
        put(w, i);
        if (i % 5000 == 0)
            att_stream_writer_wait(w);
    }
    att_stream_writer_flush(w);
    att_stream_counts_t counts;
    att_stream_writer_counts(w, &counts);
    att_stream_writer_destroy(w);
    struct stat about;
    stat(path_of(1, ""), &about);
    assert_in_range(about.st_size, 1 << 19, 1 << 20);
    struct att_stream_reader *reader;
    att_error_t error;
    uint64_t first = 0;
    assert_int_equal(att_stream_reader_open(path_of(1, ""), &reader, &error), ATT_OK);
    assert_int_equal(count_records(reader, &first), 30000 - counts.dropped);
    att_stream_reader_close(reader);
}

static void other_files_are_refused(void **state)
{
    struct att_stream_reader *reader;
    att_error_t error;
    att_stream_header_t header = {.magic = ATT_STREAM_MAGIC,
                                  .version = ATT_STREAM_VERSION + 1,
                                  .header_bytes = sizeof header,
                                  .byte_order = ATT_STREAM_ORDER};
    assert_int_equal(att_stream_reader_parse("no", 2, "x", &reader, &error), -ATT_EINPUT);
    assert_int_equal(att_stream_reader_parse(&header, sizeof header, "x", &reader, &error),
                     -ATT_EINPUT);
    header.version = ATT_STREAM_VERSION;
    header.byte_order = 0x04030201;
    assert_int_equal(att_stream_reader_parse(&header, sizeof header, "x", &reader, &error),
                     -ATT_EINPUT);
    header.byte_order = ATT_STREAM_ORDER;
    assert_int_equal(att_stream_reader_parse(&header, sizeof header, "x", &reader, &error), ATT_OK);
    att_stream_reader_close(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(written_is_read, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_torn_end_costs_the_last_frame, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(damage_in_the_middle_is_skipped, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(a_ring_holds_the_latest_and_never_grows, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(the_limit_ends_a_plain_file_and_counts, make_folder,
                                        remove_folder),
        cmocka_unit_test(other_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
