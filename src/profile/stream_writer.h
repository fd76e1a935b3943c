/*
 * stream writer: puts frames into the files of one node's stream. Bounded memory and disk.
 *
 * The owner's thread collects and never waits for the disk: a thread of the writer does that. A
 * full queue, a full disk and the size limit drop records and count them; definitions are kept.
 * In ring mode files are parts of 1/8 of the size; the oldest goes before the next begins, and each
 * part repeats the definitions, so that every part can be read alone.
 */
#ifndef ATT_PROFILE_STREAM_WRITER_H
#define ATT_PROFILE_STREAM_WRITER_H

#include "base/status.h"
#include "profile/stream.h"

#include <stdbool.h>

#define ATT_STREAM_PARTS 8          /* of a ring */
#define ATT_STREAM_QUEUE (8u << 20) /* bytes that may wait for the disk */
#define ATT_STREAM_RING  (4u << 20) /* smallest ring */

typedef struct att_stream_options {
    const char *folder; /* RUN/trace; made when it is not there */
    bool ring;
    uint64_t limit_bytes;       /* ring: of all parts together; else the file ends there */
    att_stream_header_t header; /* but for magic, version, sizes and part */
} att_stream_options_t;

struct att_stream_writer;

int att_stream_writer_create(const att_stream_options_t *options, struct att_stream_writer **writer,
                             att_error_t *error);
/* Everything is on disk when it returns. NULL is fine. */
void att_stream_writer_destroy(struct att_stream_writer *writer);

/* A definition: the last one of (type, key) is repeated in each part. 0 or -ATT_ENOMEM. */
int att_stream_writer_define(struct att_stream_writer *writer, att_frame_type_t type, uint64_t key,
                             const void *payload, uint32_t bytes);
/* A frame that is not repeated. */
int att_stream_writer_note(struct att_stream_writer *writer, att_frame_type_t type,
                           const void *payload, uint32_t bytes);
/* One record; [first, last] is what the frame's bounds must cover, 0, 0 = nothing. */
void att_stream_writer_record(struct att_stream_writer *writer, const att_stream_record_t *record,
                              int64_t first_ns, int64_t last_ns);
/* Hand everything collected to the disk's thread: about five times a second. */
void att_stream_writer_flush(struct att_stream_writer *writer);

/* Until the disk has caught up: for who makes streams faster than a disk is. */
void att_stream_writer_wait(struct att_stream_writer *writer);

typedef struct att_stream_counts {
    uint64_t records, dropped, bytes; /* given, lost of these, handed to the disk */
} att_stream_counts_t;
void att_stream_writer_counts(const struct att_stream_writer *writer, att_stream_counts_t *counts);

/* Fill a frame's header for this payload (also for tests). */
void att_frame_seal(att_frame_t *frame, const void *payload);

#endif
