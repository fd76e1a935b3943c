#include "profile/trace_damage.h"

#include "profile/stream_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

bool att_trace_damage_of(const char *path, const struct att_stream_reader *reader,
                         att_trace_damage_t *damage)
{
    const att_stream_damage_t *found = att_stream_reader_damage(reader);
    if (found->skipped_bytes == 0)
        return false;
    damage->torn_end = found->torn_end;
    snprintf(damage->text, sizeof damage->text,
             found->torn_end ? "%.300s is cut: from byte %" PRIu64 " on its last %" PRIu64
                               " bytes are no whole frame and are not used"
                             : "%.300s is damaged: from byte %" PRIu64 " on %" PRIu64
                               " bytes are in no whole frame and are not used",
             path, found->first_at, found->skipped_bytes);
    return true;
}

void att_trace_damage_whole(const char *path, const char *why, att_trace_damage_t *damage)
{
    struct stat about;
    damage->torn_end =
        stat(path, &about) == 0 && (size_t)about.st_size < sizeof(att_stream_header_t);
    snprintf(damage->text, sizeof damage->text, "%.340s: nothing of it is used", why);
}
