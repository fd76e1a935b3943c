#include "patch.h"

#include <string.h>

bool fuzz_patch_next(const uint8_t **data, size_t *size, fuzz_patch_t *patch)
{
    if (*size < sizeof *patch)
        return false;
    memcpy(patch, *data, sizeof *patch);
    *data += sizeof *patch;
    *size -= sizeof *patch;
    return true;
}

static void write_at(void *entry, size_t size, const fuzz_patch_t *patch)
{
    memcpy((char *)entry + patch->offset % (size - 3), &patch->value, sizeof patch->value);
}

void fuzz_patch_apply(att_segment_memory_t *m, const fuzz_patch_t *patch)
{
    uint32_t e = patch->entry % 8;
    switch (patch->op % 7) {
    case 0:
        write_at(&m->header, sizeof m->header, patch);
        break;
    case 1:
        write_at(&m->groups[e], sizeof m->groups[e], patch);
        break;
    case 2:
        write_at(&m->members[e], sizeof m->members[e], patch);
        break;
    case 3:
        write_at(&m->tasks[e], sizeof m->tasks[e], patch);
        break;
    case 4:
        write_at(&m->lanes[e], sizeof m->lanes[e], patch);
        break;
    case 5:
        write_at(&m->processes[e], sizeof m->processes[e], patch);
        break;
    default:
        write_at(&m->rings[e % 2], offsetof(att_ring_t, cells) + 8 * sizeof(att_cell_t), patch);
    }
    fuzz_patch_waits(m);
}

void fuzz_patch_waits(att_segment_memory_t *m)
{
    m->header.wait_ns = 1000;
    m->header.in_doubt_ns = 1000;
}
