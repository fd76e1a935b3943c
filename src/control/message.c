#include "control/message.h"

#include <string.h>

static size_t body_bytes(const att_message_t *m)
{
    switch (m->type) {
    case ATT_MESSAGE_REGISTER:
        return offsetof(att_message_t, body.ranks.rank[m->count]) - offsetof(att_message_t, body);
    case ATT_MESSAGE_NODES:
        return offsetof(att_message_t, body.agents.agent[m->count]) - offsetof(att_message_t, body);
    case ATT_MESSAGE_PARTS:
        return m->count * sizeof m->body.part[0];
    case ATT_MESSAGE_PLACE:
        return sizeof m->body.place;
    case ATT_MESSAGE_END:
    case ATT_MESSAGE_ENDED:
        return sizeof m->body.reason;
    case ATT_MESSAGE_PATH:
        return sizeof m->body.path;
    case ATT_MESSAGE_REACHED:
        return sizeof m->body.reached;
    case ATT_MESSAGE_TIMING:
        return sizeof m->body.on;
    case ATT_MESSAGE_PREPARE:
        return sizeof m->body.prepare;
    case ATT_MESSAGE_VOTE:
        return sizeof m->body.ballot;
    case ATT_MESSAGE_OUTCOME:
    case ATT_MESSAGE_RECORDED:
        return sizeof m->body.outcome;
    case ATT_MESSAGE_FACTS:
        return sizeof m->body.facts;
    case ATT_MESSAGE_REPORT:
        return sizeof m->body.report;
    case ATT_MESSAGE_COVERAGE:
        return sizeof m->body.node;
    case ATT_MESSAGE_LIST:
        return sizeof m->body.list;
    case ATT_MESSAGE_OVER:
        return sizeof m->body.over;
    case ATT_MESSAGE_TRIAL:
        return offsetof(att_message_t, body.trial.samples_us[m->count]) -
               offsetof(att_message_t, body);
    default:
        return 0; /* RETIRE, ASK, GRANT, RETURN, TAKE, TAKEN, GIVE */
    }
}

static uint32_t most_of(uint32_t type)
{
    return type == ATT_MESSAGE_REGISTER || type == ATT_MESSAGE_NODES ? ATT_RANKS_A_SLICE
           : type == ATT_MESSAGE_PARTS                               ? ATT_PARTS_A_SLICE
           : type == ATT_MESSAGE_TRIAL                               ? ATT_SAMPLES_A_SLICE
                                                                     : UINT32_MAX;
}

uint32_t att_message_bytes(const att_message_t *m)
{
    if (m->type == 0 || m->type >= ATT_MESSAGE_TYPES || m->count > most_of(m->type))
        return 0;
    return (uint32_t)(offsetof(att_message_t, body) + body_bytes(m));
}

int att_message_read(const void *bytes, uint32_t size, att_message_t *m)
{
    if (size < offsetof(att_message_t, body) || size > sizeof *m)
        return -ATT_EINPUT;
    memset(m, 0, offsetof(att_message_t, body));
    memcpy(m, bytes, size);
    return att_message_bytes(m) == size ? ATT_OK : -ATT_EINPUT;
}

uint64_t att_message_records(const att_message_t *message)
{
    uint64_t records = 0;
    for (uint32_t i = 0; message->type == ATT_MESSAGE_PARTS && i < message->count; i++)
        records += message->body.part[i].ranks;
    return records;
}
