/*
 * forget_clock FILE: rewrites the CLOCK frames of a record stream as frames of a type that no
 * reader knows, with their checksums: what a node whose clock was never calibrated leaves.
 */
#include "profile/stream_writer.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    FILE *file = argc == 2 ? fopen(argv[1], "r+b") : NULL;
    att_stream_header_t header;
    if (file == NULL || fread(&header, sizeof header, 1, file) != 1)
        return 1;
    static unsigned char payload[ATT_FRAME_PAYLOAD];
    for (att_frame_t frame; fread(&frame, sizeof frame, 1, file) == 1;) {
        if (frame.bytes > sizeof payload || fread(payload, 1, frame.bytes, file) != frame.bytes)
            return 1;
        if (frame.type != ATT_FRAME_CLOCK)
            continue;
        frame.type = 99;
        att_frame_seal(&frame, payload);
        long after = ftell(file);
        if (fseek(file, after - (long)frame.bytes - (long)sizeof frame, SEEK_SET) != 0 ||
            fwrite(&frame, sizeof frame, 1, file) != 1 || fseek(file, after, SEEK_SET) != 0)
            return 1;
    }
    return fclose(file) != 0;
}
