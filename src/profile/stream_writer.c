#include "profile/stream_writer.h"

#include "base/clock.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define BLOCK_BYTES (ATT_FRAME_PAYLOAD + 4096)
#define BUCKETS     256u

/* What the disk's thread gets: bytes to append, or the next part to begin. */
typedef struct block {
    struct block *next;
    uint32_t bytes, capacity;
    uint32_t records; /* lost when it cannot be written */
    bool new_part;
    unsigned char data[];
} block_t;

typedef struct definition {
    struct definition *next;      /* of its bucket */
    struct definition *next_made; /* in order of appearance */
    uint64_t key;
    uint32_t type, bytes;
    unsigned char *payload;
} definition_t;

struct att_stream_writer {
    att_stream_options_t options;
    char folder[PATH_MAX - 64];
    uint64_t part_limit;
    /* owner's side */
    uint64_t seq;
    uint64_t part_bytes; /* handed over for the current part */
    bool ended;          /* the limit is reached */
    definition_t *buckets[BUCKETS], *made, **made_end;
    att_stream_record_t records[ATT_FRAME_FULL];
    uint32_t record_count;
    int64_t first_ns, last_ns;
    block_t *open; /* being filled */
    att_stream_counts_t counts;
    /* between the two */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    block_t *queue, **queue_end;
    uint64_t queued_bytes;
    bool closing;
    _Atomic uint64_t disk_dropped;
    /* the disk's side */
    pthread_t thread;
    int file;
    uint32_t part, first_part;
    bool failed;
};

void att_frame_seal(att_frame_t *frame, const void *payload)
{
    frame->magic = ATT_FRAME_MAGIC;
    frame->payload_crc = (uint32_t)crc32(0, payload, frame->bytes);
    frame->header_crc = (uint32_t)crc32(0, (const void *)frame, offsetof(att_frame_t, header_crc));
}

/* --- the disk's side ----------------------------------------------------------------------------
 */

static void part_path(const struct att_stream_writer *w, uint32_t part, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/node-%04u-%06u%s.records", w->folder, w->options.header.node, part,
             w->options.ring ? ".ring" : "");
}

static bool append(struct att_stream_writer *w, const void *bytes, size_t size)
{
    const char *from = bytes;
    while (size > 0) {
        ssize_t written = write(w->file, from, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        from += written;
        size -= (size_t)written;
    }
    return true;
}

static bool begin_part(struct att_stream_writer *w)
{
    char path[PATH_MAX];
    if (w->file >= 0)
        close(w->file);
    w->part++;
    while (w->options.ring && w->part - w->first_part >= ATT_STREAM_PARTS) {
        part_path(w, w->first_part++, path);
        unlink(path);
    }
    part_path(w, w->part, path);
    w->file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
    att_stream_header_t header = w->options.header;
    header.magic = ATT_STREAM_MAGIC;
    header.version = ATT_STREAM_VERSION;
    header.header_bytes = sizeof header;
    header.byte_order = ATT_STREAM_ORDER;
    header.part = w->part;
    return w->file >= 0 && append(w, &header, sizeof header);
}

static void write_block(struct att_stream_writer *w, const block_t *block)
{
    if (block->new_part && !w->failed && !begin_part(w))
        w->failed = true;
    if (!w->failed && !append(w, block->data, block->bytes))
        w->failed = true;
    if (!w->failed)
        return;
    static att_log_site_t site;
    att_log_limited(&site, ATT_LOG_ERROR, "cannot write the trace in %s: %s; records are lost",
                    w->folder, strerror(errno));
    atomic_fetch_add(&w->disk_dropped, block->records);
}

static void *disk_main(void *context)
{
    struct att_stream_writer *w = context;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (w->queue == NULL && !w->closing)
            pthread_cond_wait(&w->wake, &w->lock);
        block_t *block = w->queue;
        if (block == NULL)
            break;
        w->queue = block->next;
        if (w->queue == NULL)
            w->queue_end = &w->queue;
        pthread_mutex_unlock(&w->lock);
        write_block(w, block);
        pthread_mutex_lock(&w->lock);
        w->queued_bytes -= block->bytes;
        free(block);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* --- the owner's side ---------------------------------------------------------------------------
 */

static void hand_over(struct att_stream_writer *w)
{
    block_t *block = w->open;
    w->open = NULL;
    if (block == NULL)
        return;
    w->counts.bytes += block->bytes;
    pthread_mutex_lock(&w->lock);
    *w->queue_end = block;
    w->queue_end = &block->next;
    w->queued_bytes += block->bytes;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
}

static bool disk_is_behind(struct att_stream_writer *w)
{
    pthread_mutex_lock(&w->lock);
    bool behind = w->queued_bytes > ATT_STREAM_QUEUE;
    pthread_mutex_unlock(&w->lock);
    return behind;
}

static block_t *room(struct att_stream_writer *w, uint32_t bytes)
{
    if (w->open != NULL && w->open->capacity - w->open->bytes < bytes)
        hand_over(w);
    if (w->open == NULL) {
        uint32_t capacity = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        w->open = malloc(sizeof *w->open + capacity);
        if (w->open != NULL)
            *w->open = (block_t){.capacity = capacity};
    }
    return w->open;
}

static int put_frame(struct att_stream_writer *w, att_frame_t frame, const void *payload)
{
    block_t *block = room(w, (uint32_t)sizeof frame + frame.bytes);
    if (block == NULL)
        return -ATT_ENOMEM;
    frame.seq = w->seq++;
    att_frame_seal(&frame, payload);
    memcpy(block->data + block->bytes, &frame, sizeof frame);
    memcpy(block->data + block->bytes + sizeof frame, payload, frame.bytes);
    block->bytes += (uint32_t)sizeof frame + frame.bytes;
    w->part_bytes += sizeof frame + frame.bytes;
    return ATT_OK;
}

static int put_definitions(struct att_stream_writer *w)
{
    int status = ATT_OK;
    for (const definition_t *d = w->made; d != NULL && status == ATT_OK; d = d->next_made) {
        /* Many lists must not crowd out the records of a small ring. */
        if (d->type == ATT_FRAME_LIST && w->options.ring && w->part_bytes > w->part_limit / 2)
            continue;
        status = put_frame(
            w, (att_frame_t){.type = (uint16_t)d->type, .bytes = d->bytes, .count = 1}, d->payload);
    }
    return status;
}

static int next_part(struct att_stream_writer *w)
{
    hand_over(w);
    w->part_bytes = sizeof(att_stream_header_t);
    block_t *block = room(w, 0);
    if (block == NULL)
        return -ATT_ENOMEM;
    block->new_part = true;
    return put_definitions(w);
}

/* Make sure that so many bytes may follow. */
static bool within_limit(struct att_stream_writer *w, uint64_t bytes)
{
    if (w->part_bytes + bytes <= w->part_limit)
        return true;
    if (w->options.ring)
        return next_part(w) == ATT_OK && w->part_bytes + bytes <= w->part_limit;
    if (!w->ended)
        att_log(ATT_LOG_WARN, "the trace in %s has reached its limit of %.1f GB: it ends here",
                w->folder, (double)w->part_limit * 1e-9);
    w->ended = true;
    return false;
}

static void put_records(struct att_stream_writer *w)
{
    uint32_t count = w->record_count;
    if (count == 0)
        return;
    w->record_count = 0;
    att_frame_t frame = {.type = ATT_FRAME_RECORDS,
                         .bytes = count * (uint32_t)sizeof w->records[0],
                         .count = count,
                         .first_ns = w->first_ns,
                         .last_ns = w->last_ns};
    w->first_ns = w->last_ns = 0;
    if (!within_limit(w, sizeof frame + frame.bytes) || disk_is_behind(w) ||
        put_frame(w, frame, w->records) != ATT_OK) {
        w->counts.dropped += count;
        w->seq++; /* a reader sees the gap */
        return;
    }
    w->open->records += count;
}

void att_stream_writer_record(struct att_stream_writer *w, const att_stream_record_t *record,
                              int64_t first_ns, int64_t last_ns)
{
    w->counts.records++;
    w->records[w->record_count++] = *record;
    if (last_ns != 0) {
        if (w->last_ns == 0 || first_ns < w->first_ns)
            w->first_ns = first_ns;
        if (w->last_ns == 0 || last_ns > w->last_ns)
            w->last_ns = last_ns;
    }
    if (w->record_count == ATT_FRAME_FULL)
        put_records(w);
}

static definition_t *find_definition(struct att_stream_writer *w, uint32_t type, uint64_t key)
{
    definition_t **bucket = &w->buckets[(key * 31 + type) % BUCKETS];
    for (definition_t *d = *bucket; d != NULL; d = d->next)
        if (d->type == type && d->key == key)
            return d;
    definition_t *d = calloc(1, sizeof *d);
    if (d == NULL)
        return NULL;
    d->type = type;
    d->key = key;
    d->next = *bucket;
    *bucket = d;
    *w->made_end = d;
    w->made_end = &d->next_made;
    return d;
}

int att_stream_writer_define(struct att_stream_writer *w, att_frame_type_t type, uint64_t key,
                             const void *payload, uint32_t bytes)
{
    unsigned char *copy = malloc(bytes);
    definition_t *d = copy != NULL ? find_definition(w, type, key) : NULL;
    if (d == NULL) {
        free(copy);
        return -ATT_ENOMEM;
    }
    memcpy(copy, payload, bytes);
    free(d->payload);
    d->payload = copy;
    d->bytes = bytes;
    return att_stream_writer_note(w, type, payload, bytes);
}

int att_stream_writer_note(struct att_stream_writer *w, att_frame_type_t type, const void *payload,
                           uint32_t bytes)
{
    /* A few definitions beyond the limit of a plain file are better than records without them. */
    if (w->options.ring && !within_limit(w, sizeof(att_frame_t) + bytes))
        return -ATT_EFULL;
    return put_frame(w, (att_frame_t){.type = (uint16_t)type, .bytes = bytes, .count = 1}, payload);
}

void att_stream_writer_flush(struct att_stream_writer *w)
{
    put_records(w);
    hand_over(w);
}

void att_stream_writer_wait(struct att_stream_writer *w)
{
    att_stream_writer_flush(w);
    for (bool waiting = true; waiting;) {
        pthread_mutex_lock(&w->lock);
        waiting = w->queued_bytes > 0;
        pthread_mutex_unlock(&w->lock);
        if (waiting)
            att_clock_sleep_ns(1000000);
    }
}

void att_stream_writer_counts(const struct att_stream_writer *w, att_stream_counts_t *counts)
{
    *counts = w->counts;
    counts->dropped += atomic_load(&w->disk_dropped);
}

/* Parts that earlier recordings of this node left: numbers go on behind them. */
static void find_parts(struct att_stream_writer *w)
{
    bool any_ring = false;
    DIR *folder = opendir(w->folder);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        unsigned node, part;
        char kind[24];
        if (sscanf(entry->d_name, "node-%u-%u%23s", &node, &part, kind) != 3 ||
            node != w->options.header.node)
            continue;
        if (part > w->part)
            w->part = part;
        if (strcmp(kind, ".ring.records") == 0 && (!any_ring || part < w->first_part)) {
            w->first_part = part;
            any_ring = true;
        }
    }
    if (folder != NULL)
        closedir(folder);
    if (!any_ring)
        w->first_part = w->part + 1;
}

int att_stream_writer_create(const att_stream_options_t *options, struct att_stream_writer **out,
                             att_error_t *error)
{
    if (options->ring && options->limit_bytes < ATT_STREAM_RING)
        return att_fail(error, ATT_EUSAGE, "a ring needs at least %u MiB", ATT_STREAM_RING >> 20);
    if (mkdir(options->folder, 0755) != 0 && errno != EEXIST)
        return att_fail_errno(error, "cannot make %s", options->folder);
    struct att_stream_writer *w = calloc(1, sizeof *w);
    if (w == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory");
    w->options = *options;
    snprintf(w->folder, sizeof w->folder, "%s", options->folder);
    w->part_limit = options->ring ? options->limit_bytes / ATT_STREAM_PARTS : options->limit_bytes;
    w->made_end = &w->made;
    w->queue_end = &w->queue;
    w->file = -1;
    find_parts(w);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    if (!begin_part(w)) {
        int status = att_fail_errno(error, "cannot write in %s", w->folder);
        free(w);
        return status;
    }
    w->part_bytes = sizeof(att_stream_header_t);
    if (pthread_create(&w->thread, NULL, disk_main, w) != 0) {
        close(w->file);
        free(w);
        return att_fail(error, ATT_ESYSTEM, "cannot start the thread that writes the trace");
    }
    *out = w;
    return ATT_OK;
}

void att_stream_writer_destroy(struct att_stream_writer *w)
{
    if (w == NULL)
        return;
    att_stream_writer_flush(w);
    pthread_mutex_lock(&w->lock);
    w->closing = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    close(w->file);
    while (w->made != NULL) {
        definition_t *d = w->made;
        w->made = d->next_made;
        free(d->payload);
        free(d);
    }
    free(w);
}
