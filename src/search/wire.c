#include "search/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct att_wire_head {
    uint32_t length;
    uint32_t kind;
} att_wire_head_t;

typedef struct att_wire_buffer {
    uint8_t *bytes;
    size_t used, size;
} att_wire_buffer_t;

struct att_wire {
    int fd;
    att_wire_buffer_t in, out;
    size_t taken; /* bytes of `in` that the last message used */
};

static int reserve(att_wire_buffer_t *buffer, size_t more)
{
    if (buffer->used + more <= buffer->size)
        return 0;
    size_t size = (buffer->used + more) * 2;
    uint8_t *bytes = realloc(buffer->bytes, size);
    if (bytes == NULL)
        return -1;
    buffer->bytes = bytes;
    buffer->size = size;
    return 0;
}

static void drop(att_wire_buffer_t *buffer, size_t count)
{
    buffer->used -= count;
    if (buffer->used > 0 && count > 0)
        memmove(buffer->bytes, buffer->bytes + count, buffer->used);
}

struct att_wire *att_wire_open(int fd)
{
    struct att_wire *wire = calloc(1, sizeof *wire);
    if (wire == NULL)
        close(fd);
    else
        wire->fd = fd;
    return wire;
}

void att_wire_close(struct att_wire *wire)
{
    if (wire == NULL)
        return;
    close(wire->fd);
    free(wire->in.bytes);
    free(wire->out.bytes);
    free(wire);
}

int att_wire_fd(const struct att_wire *wire)
{
    return wire->fd;
}

int att_wire_put(struct att_wire *wire, uint32_t kind, const att_wire_part_t *parts, unsigned count)
{
    size_t length = 0;
    for (unsigned i = 0; i < count; i++)
        length += parts[i].length;
    att_wire_head_t head = {(uint32_t)length, kind};
    if (length > ATT_WIRE_LONGEST || reserve(&wire->out, sizeof head + length) != 0)
        return -1;
    memcpy(wire->out.bytes + wire->out.used, &head, sizeof head);
    wire->out.used += sizeof head;
    for (unsigned i = 0; i < count; i++) {
        if (parts[i].length > 0)
            memcpy(wire->out.bytes + wire->out.used, parts[i].bytes, parts[i].length);
        wire->out.used += parts[i].length;
    }
    return att_wire_flush(wire);
}

int att_wire_flush(struct att_wire *wire)
{
    while (wire->out.used > 0) {
        ssize_t n = send(wire->fd, wire->out.bytes, wire->out.used, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        if (n < 0)
            return -1;
        drop(&wire->out, (size_t)n);
    }
    return 0;
}

int att_wire_get(struct att_wire *wire, uint32_t *kind, const uint8_t **payload, size_t *length)
{
    drop(&wire->in, wire->taken);
    wire->taken = 0;
    for (;;) {
        att_wire_head_t head;
        if (wire->in.used >= sizeof head) {
            memcpy(&head, wire->in.bytes, sizeof head);
            if (head.length > ATT_WIRE_LONGEST)
                return -1;
            if (wire->in.used >= sizeof head + head.length) {
                *kind = head.kind;
                *payload = wire->in.bytes + sizeof head;
                *length = head.length;
                wire->taken = sizeof head + head.length;
                return 1;
            }
        }
        if (reserve(&wire->in, 4096) != 0)
            return -1;
        ssize_t n =
            recv(wire->fd, wire->in.bytes + wire->in.used, wire->in.size - wire->in.used, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        if (n <= 0)
            return -1;
        wire->in.used += (size_t)n;
    }
}

const void *att_wire_peek(att_wire_reader_t *reader, size_t length)
{
    if (reader->bad || reader->left < length) {
        reader->bad = 1;
        return NULL;
    }
    const void *at = reader->at;
    reader->at += length;
    reader->left -= length;
    return at;
}

void att_wire_read(att_wire_reader_t *reader, void *out, size_t length)
{
    const void *at = att_wire_peek(reader, length);
    if (at != NULL)
        memcpy(out, at, length);
    else
        memset(out, 0, length);
}
