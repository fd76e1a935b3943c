#include "profile/stream_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define WINDOW 65536u

struct att_stream_reader {
    int file; /* -1: memory */
    const unsigned char *memory;
    uint64_t size;
    att_stream_header_t header;
    att_stream_damage_t damage;
    att_frame_place_t *frames;
    size_t count, capacity;
};

static bool read_at(const struct att_stream_reader *r, uint64_t offset, void *to, size_t bytes)
{
    if (offset > r->size || bytes > r->size - offset)
        return false;
    if (r->file < 0) {
        memcpy(to, r->memory + offset, bytes);
        return true;
    }
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(r->file, (char *)to + done, bytes - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

static size_t entry_bytes(uint32_t type)
{
    static const size_t sizes[ATT_FRAME_TYPES] = {
        [ATT_FRAME_RECORDS] = sizeof(att_stream_record_t),
        [ATT_FRAME_GROUP] = sizeof(att_stream_group_t),
        [ATT_FRAME_MEMBER] = sizeof(att_stream_member_t),
        [ATT_FRAME_TASK] = sizeof(att_stream_task_t),
        [ATT_FRAME_PROCESS] = sizeof(att_stream_process_t),
        [ATT_FRAME_LIST] = sizeof(att_stream_list_t),
        [ATT_FRAME_CLOCK] = sizeof(att_stream_clock_t),
        [ATT_FRAME_DEVICE_CLOCK] = sizeof(att_stream_device_clock_t),
        [ATT_FRAME_LOSS] = sizeof(att_stream_loss_t),
        [ATT_FRAME_MARK] = sizeof(att_stream_mark_t),
        [ATT_FRAME_STATE] = sizeof(att_stream_state_t),
    };
    return type < ATT_FRAME_TYPES ? sizes[type] : 0;
}

static bool is_frame(const struct att_stream_reader *r, uint64_t offset, const att_frame_t *frame)
{
    return frame->magic == ATT_FRAME_MAGIC &&
           frame->header_crc ==
               (uint32_t)crc32(0, (const void *)frame, offsetof(att_frame_t, header_crc)) &&
           frame->bytes <= ATT_FRAME_PAYLOAD &&
           frame->bytes <= r->size - offset - sizeof(att_frame_t);
}

/* The next place from `offset` on where a frame begins, or the end of the file. */
static uint64_t resynchronise(const struct att_stream_reader *r, uint64_t offset)
{
    unsigned char window[WINDOW];
    const uint32_t magic = ATT_FRAME_MAGIC;
    while (r->size >= sizeof(att_frame_t) && offset <= r->size - sizeof(att_frame_t)) {
        size_t bytes = r->size - offset < WINDOW ? (size_t)(r->size - offset) : WINDOW;
        if (!read_at(r, offset, window, bytes))
            break;
        const unsigned char *at = memmem(window, bytes, &magic, sizeof magic);
        if (at == NULL) {
            if (bytes < WINDOW)
                break;
            offset += bytes - (sizeof magic - 1);
            continue;
        }
        offset += (uint64_t)(at - window);
        att_frame_t frame;
        if (read_at(r, offset, &frame, sizeof frame) && is_frame(r, offset, &frame))
            return offset;
        offset++;
    }
    return r->size;
}

static void skip(struct att_stream_reader *r, uint64_t from, uint64_t to)
{
    if (r->damage.skipped_bytes == 0) {
        r->damage.first_at = from;
        r->damage.torn_end = to == r->size;
    }
    r->damage.skipped_bytes += to - from;
}

static int add_frame(struct att_stream_reader *r, uint64_t offset, const att_frame_t *frame)
{
    size_t one = entry_bytes(frame->type);
    if (one == 0)
        return ATT_OK; /* of a later version */
    if (frame->count == 0 || frame->bytes != frame->count * (uint64_t)one) {
        skip(r, offset, offset + sizeof *frame + frame->bytes);
        return ATT_OK;
    }
    if (r->count == r->capacity) {
        size_t capacity = r->capacity == 0 ? 64 : 2 * r->capacity;
        att_frame_place_t *frames = realloc(r->frames, capacity * sizeof *frames);
        if (frames == NULL)
            return -ATT_ENOMEM;
        r->frames = frames;
        r->capacity = capacity;
    }
    r->frames[r->count++] = (att_frame_place_t){.offset = offset + sizeof *frame,
                                                .bytes = frame->bytes,
                                                .count = frame->count,
                                                .payload_crc = frame->payload_crc,
                                                .type = frame->type,
                                                .first_ns = frame->first_ns,
                                                .last_ns = frame->last_ns};
    return ATT_OK;
}

static int read_index(struct att_stream_reader *r)
{
    uint64_t offset = sizeof r->header, next_seq = 0;
    bool any = false;
    while (offset < r->size) {
        att_frame_t frame;
        if (!read_at(r, offset, &frame, sizeof frame) || !is_frame(r, offset, &frame)) {
            uint64_t next = resynchronise(r, offset + 1);
            skip(r, offset, next);
            offset = next;
            continue;
        }
        if (any && frame.seq > next_seq)
            r->damage.missing_frames += frame.seq - next_seq;
        next_seq = frame.seq + 1;
        any = true;
        if (add_frame(r, offset, &frame) != ATT_OK)
            return -ATT_ENOMEM;
        offset += sizeof frame + frame.bytes;
    }
    return ATT_OK;
}

static int read_header(struct att_stream_reader *r, const char *name, att_error_t *error)
{
    att_stream_header_t *h = &r->header;
    if (r->size < sizeof *h)
        return att_fail(error, ATT_EINPUT, "%s is cut at byte %llu, in its header", name,
                        (unsigned long long)r->size);
    if (!read_at(r, 0, h, sizeof *h) || h->magic != ATT_STREAM_MAGIC)
        return att_fail(error, ATT_EINPUT, "%s is no record stream of attune", name);
    if (h->byte_order != ATT_STREAM_ORDER)
        return att_fail(error, ATT_EINPUT,
                        "%s was written on a machine of the other byte order: read it there", name);
    if (h->version != ATT_STREAM_VERSION || h->header_bytes != sizeof *h)
        return att_fail(error, ATT_EINPUT,
                        "%s has version %u of the record stream, this attune reads %u", name,
                        h->version, ATT_STREAM_VERSION);
    h->attune[sizeof h->attune - 1] = '\0';
    h->host[sizeof h->host - 1] = '\0';
    h->run_id[sizeof h->run_id - 1] = '\0';
    return ATT_OK;
}

static int finish_open(struct att_stream_reader *r, const char *name,
                       struct att_stream_reader **out, att_error_t *error)
{
    int status = read_header(r, name, error);
    if (status == ATT_OK && read_index(r) != ATT_OK)
        status = att_fail(error, ATT_ENOMEM, "no memory for the index of %s", name);
    if (status != ATT_OK) {
        att_stream_reader_close(r);
        return status;
    }
    *out = r;
    return ATT_OK;
}

int att_stream_reader_open(const char *path, struct att_stream_reader **out, att_error_t *error)
{
    struct att_stream_reader *r = calloc(1, sizeof *r);
    if (r == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory");
    struct stat about;
    r->file = open(path, O_RDONLY | O_CLOEXEC);
    if (r->file < 0 || fstat(r->file, &about) != 0) {
        int status = att_fail_errno(error, "cannot read %s", path);
        att_stream_reader_close(r);
        return status;
    }
    r->size = (uint64_t)about.st_size; /* what is there now: a job may be writing */
    return finish_open(r, path, out, error);
}

int att_stream_reader_parse(const void *bytes, size_t size, const char *name,
                            struct att_stream_reader **out, att_error_t *error)
{
    struct att_stream_reader *r = calloc(1, sizeof *r);
    if (r == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory");
    r->file = -1;
    r->memory = bytes;
    r->size = size;
    return finish_open(r, name, out, error);
}

void att_stream_reader_close(struct att_stream_reader *r)
{
    if (r == NULL)
        return;
    if (r->file >= 0)
        close(r->file);
    free(r->frames);
    free(r);
}

const att_stream_header_t *att_stream_reader_header(const struct att_stream_reader *r)
{
    return &r->header;
}

const att_stream_damage_t *att_stream_reader_damage(const struct att_stream_reader *r)
{
    return &r->damage;
}

const att_frame_place_t *att_stream_reader_frames(const struct att_stream_reader *r, size_t *count)
{
    *count = r->count;
    return r->frames;
}

int att_stream_reader_payload(const struct att_stream_reader *r, const att_frame_place_t *frame,
                              void *buffer)
{
    return frame->bytes <= ATT_FRAME_PAYLOAD && read_at(r, frame->offset, buffer, frame->bytes) &&
           (uint32_t)crc32(0, buffer, frame->bytes) == frame->payload_crc;
}
