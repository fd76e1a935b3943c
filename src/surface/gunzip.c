#include "surface/gunzip.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int att_gunzip_is(const char *bytes, size_t length)
{
    return length >= 2 && (unsigned char)bytes[0] == 0x1f && (unsigned char)bytes[1] == 0x8b;
}

#ifdef ATTUNE_HAVE_ZLIB

#include <zlib.h>

#define WINDOW_GZIP (15 + 16) /* largest window, gzip header (zlib.h, inflateInit2) */

/* Room for more output; what is beyond the limit is not asked for. */
static int grow(char **out, size_t *room, size_t limit, att_error_t *error)
{
    if (*room == limit)
        return att_fail(error, ATT_EINPUT, "larger than %zu bytes when inflated", limit);
    size_t more = *room == 0 ? 65536 : 2 * *room;
    if (more > limit)
        more = limit;
    char *larger = realloc(*out, more);
    if (larger == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for %zu bytes", more);
    *out = larger;
    *room = more;
    return ATT_OK;
}

int att_gunzip(const char *bytes, size_t length, size_t limit, char **inflated,
               size_t *inflated_length, att_error_t *error)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)length};
    char *out = NULL;
    size_t room = 0, used = 0;
    if (length > limit)
        return att_fail(error, ATT_EINPUT, "larger than %zu bytes", limit);
    if (inflateInit2(&stream, WINDOW_GZIP) != Z_OK)
        return att_fail(error, ATT_ENOMEM, "no memory to inflate");
    int status = ATT_OK, state = Z_OK;
    while (status == ATT_OK && state != Z_STREAM_END) {
        if (used == room)
            status = grow(&out, &room, limit, error);
        if (status != ATT_OK)
            break;
        stream.next_out = (Bytef *)out + used;
        stream.avail_out = (uInt)(room - used);
        state = inflate(&stream, Z_NO_FLUSH);
        used = room - stream.avail_out;
        if (state == Z_BUF_ERROR || (state == Z_OK && stream.avail_in == 0 && used < room))
            status = att_fail(error, ATT_EINPUT, "compressed data end early (truncated?)");
        else if (state != Z_OK && state != Z_STREAM_END)
            status = att_fail(error, ATT_EINPUT, "compressed data are damaged");
        else if (state == Z_STREAM_END && stream.avail_in > 0)
            status =
                att_fail(error, ATT_EINPUT, "%u bytes follow the compressed data", stream.avail_in);
    }
    inflateEnd(&stream);
    if (status != ATT_OK) {
        free(out);
        return status;
    }
    *inflated = out;
    *inflated_length = used;
    return ATT_OK;
}

#else

int att_gunzip(const char *bytes, size_t length, size_t limit, char **inflated,
               size_t *inflated_length, att_error_t *error)
{
    return att_fail(error, ATT_EUNSUPPORTED,
                    "compressed, and this attune was built without zlib; gunzip it first");
}

#endif
