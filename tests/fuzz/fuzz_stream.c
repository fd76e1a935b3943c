/* A record stream of any bytes is refused with one line, or its frames are read without harm. */
#include "profile/stream_reader.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct att_stream_reader *reader;
    att_error_t error = {""};
    if (att_stream_reader_parse(data, size, "input", &reader, &error) != ATT_OK) {
        if (error.text[0] == '\0' || strchr(error.text, '\n') != NULL)
            abort();
        return 0;
    }
    static unsigned char payload[ATT_FRAME_PAYLOAD];
    size_t count;
    const att_frame_place_t *frames = att_stream_reader_frames(reader, &count);
    const att_stream_damage_t *damage = att_stream_reader_damage(reader);
    uint64_t held = 0;
    for (size_t i = 0; i < count; i++) {
        if (frames[i].count == 0 || frames[i].bytes > ATT_FRAME_PAYLOAD ||
            frames[i].offset + frames[i].bytes > size)
            abort();
        held += frames[i].bytes;
        att_stream_reader_payload(reader, &frames[i], payload);
    }
    if (held + damage->skipped_bytes > size || damage->first_at + damage->skipped_bytes > size ||
        (damage->torn_end && damage->first_at + damage->skipped_bytes != size))
        abort();
    att_stream_reader_close(reader);
    return 0;
}
