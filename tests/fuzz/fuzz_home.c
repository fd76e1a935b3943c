/* What a helper is sent by whoever finds its port, and what a rank gets back. */
#include "base/home.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static att_segment_memory_t *memory;
static const uint8_t key[16] = "sixteen bytes..";

static void prepare(void)
{
    static const float costs[ATT_PAIR_COUNT];
    memory = calloc(1, sizeof *memory);
    if (memory == NULL)
        abort();
    uint32_t group = att_segment_group(memory, 7, 2, 2);
    att_segment_task(memory, group, 4, 64, 3, costs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    att_home_request_t request;
    att_home_reply_t reply = {0};
    if (memory == NULL)
        prepare();
    if (size < sizeof request)
        return 0;
    memcpy(&request, data, sizeof request);
    data += sizeof request;
    size -= sizeof request;
    att_segment_task_t *task = &memory->tasks[0];
    atomic_store(&task->home, ATT_HOME_WORD(5, ATT_HOME_OPEN));
    int own_key = size > 0 && data[0] % 2 != 0; /* else the guess must fail */
    if (own_key) {
        request.magic = ATT_HOME_MAGIC;
        memcpy(request.key, key, sizeof key);
    }
    int status = att_home_answer(memory, key, &request, &reply);
    uint64_t word = atomic_load(&task->home);
    /* Without the key nothing changes, and nobody can commit. */
    if ((!own_key && memcmp(request.key, key, sizeof key) != 0 &&
         (status == ATT_OK || word != ATT_HOME_WORD(5, ATT_HOME_OPEN))) ||
        ATT_HOME_STATE(word) == ATT_HOME_COMMITTED)
        abort();
    if (size >= sizeof reply) {
        memcpy(&reply, data, sizeof reply);
        att_home_state_t state = att_home_read(&request, &reply);
        if (state != ATT_HOME_NONE && state != ATT_HOME_COMMITTED && state != ATT_HOME_ABORTED)
            abort();
    }
    return 0;
}
