/*
 * stream reader: one file of a stream, by its frames. Takes any bytes: what does not check is
 * skipped and counted, the rest is used. Keeps an index of frames, not the file.
 */
#ifndef ATT_PROFILE_STREAM_READER_H
#define ATT_PROFILE_STREAM_READER_H

#include "base/status.h"
#include "profile/stream.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct att_frame_place {
    uint64_t offset; /* of the payload */
    uint32_t bytes, count;
    uint32_t payload_crc;
    uint32_t type;
    int64_t first_ns, last_ns;
} att_frame_place_t;

typedef struct att_stream_damage {
    uint64_t skipped_bytes;  /* belonged to no good frame; a torn end counts here */
    uint64_t first_at;       /* where in the file the first of them are */
    bool torn_end;           /* they are its end and nothing else */
    uint64_t missing_frames; /* gaps in the numbers: dropped while writing, or skipped here */
} att_stream_damage_t;

struct att_stream_reader;

/* -ATT_EINPUT: no stream, another version or byte order (the text names `path`). */
int att_stream_reader_open(const char *path, struct att_stream_reader **reader, att_error_t *error);
/* The same from memory, which must stay; `name` is for messages. */
int att_stream_reader_parse(const void *bytes, size_t size, const char *name,
                            struct att_stream_reader **reader, att_error_t *error);
void att_stream_reader_close(struct att_stream_reader *reader); /* NULL is fine */

const att_stream_header_t *att_stream_reader_header(const struct att_stream_reader *reader);
const att_stream_damage_t *att_stream_reader_damage(const struct att_stream_reader *reader);
/* Frames of known type whose header is good, in order of the file. */
const att_frame_place_t *att_stream_reader_frames(const struct att_stream_reader *reader,
                                                  size_t *count);
/* The payload into `buffer` (ATT_FRAME_PAYLOAD bytes). False: it does not check. Threads may read
 * different frames at the same time. */
int att_stream_reader_payload(const struct att_stream_reader *reader,
                              const att_frame_place_t *frame, void *buffer);

#endif
