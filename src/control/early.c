#include "control/early.h"

#include "base/log.h"

#include <inttypes.h>
#include <stdlib.h>

bool att_early_keep(att_early_t *early, uint32_t from, const att_message_t *message)
{
    static att_log_site_t site;
    att_early_message_t *e = early->count < ATT_TASKS ? malloc(sizeof *e) : NULL;
    if (e == NULL) {
        att_log_limited(&site, ATT_LOG_WARN,
                        "group 0x%" PRIx64 ": a message of agent %u is lost: too many came before "
                        "its place in the group",
                        message->group.hash, from);
        return false;
    }
    *e = (att_early_message_t){.from = from, .message = *message};
    if (early->last != NULL)
        early->last->next = e;
    else
        early->first = e;
    early->last = e;
    early->count++;
    early->records += att_message_records(message);
    return true;
}

att_early_message_t *att_early_take(att_early_t *early)
{
    att_early_message_t *e = early->first;
    if (e == NULL)
        return NULL;
    early->first = e->next;
    early->records -= att_message_records(&e->message);
    if (early->first == NULL)
        early->last = NULL;
    return e;
}

void att_early_clear(att_early_t *early)
{
    att_early_message_t *e;
    while ((e = att_early_take(early)) != NULL)
        free(e);
}
