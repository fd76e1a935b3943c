#include "hook/chain.h"

#include "base/log.h"
#include "hook/abi/tuner_v2.h"
#include "hook/abi/tuner_v3.h"
#include "hook/abi/tuner_v4.h"
#include "hook/abi/tuner_v6.h"
#include "hook/chain_library.h"
#include "hook/chain_profiler.h"
#include "hook/hook.h"
#include "hook/library.h"
#include "hook/tuner.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The other tuner; abi 0: there is none. Set once, before the first context exists. */
static struct {
    uint32_t abi;
    union {
        const void *symbol;
        const att_tuner_v2_t *v2;
        const att_tuner_v3_t *v3;
        const att_tuner_v4_t *v4;
        const att_tuner_v5_t *v5;
        const att_tuner_v6_t *v6;
    };
} other;
static pthread_once_t look_once = PTHREAD_ONCE_INIT;
static const att_tuner_start_t *first_start;

typedef struct link {
    void *ours, *theirs;
    bool dropped; /* their init failed */
} link_t;

/* Newest symbol that this NCCL would look for; attune's own is none. */
static bool take_symbol(void *library, uint32_t newest)
{
    const void *const own[] = {NULL,
                               NULL,
                               &ncclTunerPlugin_v2,
                               &ncclTunerPlugin_v3,
                               &ncclTunerPlugin_v4,
                               &ncclTunerPlugin_v5,
                               &ncclTunerPlugin_v6};
    for (uint32_t abi = newest; library != NULL && abi >= 2; abi--) {
        char name[32];
        snprintf(name, sizeof name, "ncclTunerPlugin_v%u", abi);
        const void *symbol = dlsym(library, name);
        if (symbol == own[abi])
            continue;
        if (symbol != NULL) {
            other.symbol = symbol;
            other.abi = abi;
            return true;
        }
    }
    return false;
}

/* Attune itself under the name of another. */
static bool is_own(void *library)
{
    return library != NULL && dlsym(library, "ncclTunerPlugin_v6") == &ncclTunerPlugin_v6;
}

static void look(void)
{
    const char *value = getenv("ATTUNE_CHAIN_TUNER");
    bool asked = value != NULL && value[0] != '\0';
    const char *where = asked ? value : "libnccl-tuner.so";
    if (asked && strcasecmp(value, "none") == 0)
        return;
    void *library = att_chain_open(where, "nccl-tuner");
    bool found = take_symbol(library, first_start->abi);
    if (!found && (library == NULL || is_own(library))) {
        where = "the net plugin";
        found = take_symbol(att_chain_net_library(att_library_version(first_start->logger)),
                            first_start->abi);
        if (found && asked)
            att_hook_say(first_start->logger,
                         "tuner %s cannot be loaded: as NCCL does, the net "
                         "plugin is asked for one",
                         value);
    }
    if (found)
        att_hook_say(first_start->logger,
                     "tuner %s (%s, ncclTunerPlugin_v%u) is asked first: its choice is kept unless "
                     "another one is faster",
                     other.v2->name, where, other.abi);
    else if (asked)
        att_hook_say(first_start->logger,
                     "tuner %s is not asked: it cannot be loaded, or has no tuner for this NCCL",
                     value);
}

static int init_other(link_t *link, const att_tuner_start_t *s)
{
    switch (other.abi) {
    case 2:
    case 3:
    case 4:
        return other.v4->init(s->ranks, s->nodes, s->logger, &link->theirs);
    default:
        return other.v5->init(&link->theirs, s->comm_id, s->ranks, s->nodes, s->logger, s->domains,
                              s->constants);
    }
}

static int init_ours(void **context, const att_tuner_start_t *s)
{
    if (s->abi == 2)
        return att_tuner_init_idle(context, s->logger,
                                   "this NCCL has no cost table for a tuner (since 2.22.3)");
    int result = att_tuner_init(context, s->comm_id, s->ranks, s->nodes, s->logger, s->abi);
    if (att_chain_profiler_on())
        att_chain_profiler_sync();
    return result;
}

int att_chain_init(void **context, const att_tuner_start_t *start)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    first_start = start;
    pthread_once(&look_once, look);
    pthread_mutex_unlock(&lock);
    if (other.abi == 0)
        return init_ours(context, start);
    link_t *link = calloc(1, sizeof *link);
    if (link == NULL)
        return ATT_NCCL_SYSTEM_ERROR; /* as NCCL does when it has no memory */
    if (other.abi > start->abi) {
        link->dropped = true; /* another NCCL in this process, older than the first */
    } else if (init_other(link, start) != ATT_NCCL_SUCCESS) {
        link->dropped = true;
        att_log(ATT_LOG_WARN, "tuner %s failed to start: not asked for this communicator",
                other.v2->name);
    }
    *context = link;
    return init_ours(&link->ours, start);
}

/* As NCCL wraps it (src/plugin/tuner/tuner_v2.cc). */
static int decide_v2(void *theirs, const att_tuner_question_t *q, int *channels)
{
    const float *nvls = q->table + ATT_ALGORITHM_NVLS * q->protocols;
    const float *nvls_tree = q->table + ATT_ALGORITHM_NVLS_TREE * q->protocols;
    const float *collnet = q->table + ATT_ALGORITHM_COLLNET_CHAIN * q->protocols;
    int algorithm = -1, protocol = -1;
    int result = other.v2->get_coll_info(
        theirs, q->collective, q->bytes, collnet[ATT_PROTOCOL_SIMPLE] >= 0,
        nvls[ATT_PROTOCOL_SIMPLE] >= 0 || nvls_tree[ATT_PROTOCOL_SIMPLE] >= 0, q->pipe_ops,
        &algorithm, &protocol, channels);
    if (algorithm >= 0 && algorithm < q->algorithms && protocol >= 0 && protocol < q->protocols &&
        q->table[algorithm * q->protocols + protocol] >= 0)
        q->table[algorithm * q->protocols + protocol] = 0;
    return result;
}

static int decide_other(void *theirs, const att_tuner_question_t *q, int *channels)
{
    float **costs = (float **)q->table;
    switch (other.abi) {
    case 2:
        return decide_v2(theirs, q, channels);
    case 3:
        return other.v3->get_coll_info(theirs, q->collective, q->bytes, q->pipe_ops, costs,
                                       q->algorithms, q->protocols, channels);
    case 4:
        return other.v4->get_coll_info(theirs, q->collective, q->bytes, q->pipe_ops, costs,
                                       q->algorithms, q->protocols, q->registered, channels);
    default:
        return other.v5->get_coll_info(theirs, q->collective, q->bytes, q->pipe_ops, costs,
                                       q->algorithms, q->protocols, q->registered, channels);
    }
}

/* Theirs into NCCL's table, ours into a copy of what NCCL filled in: where ours names a pair, it
 * replaces the whole answer; where it keeps, theirs stands. */
static __attribute__((noinline)) int decide_both(link_t *link, const att_tuner_question_t *q,
                                                 int *channels)
{
    float before[ATT_PAIR_COUNT], own[ATT_PAIR_COUNT];
    size_t cells = (size_t)q->algorithms * (size_t)q->protocols;
    int own_channels = 0;
    if (cells > ATT_PAIR_COUNT) /* an NCCL that attune does not know: theirs alone */
        return decide_other(link->theirs, q, channels);
    memcpy(before, q->table, cells * sizeof *before);
    int result = decide_other(link->theirs, q, channels);
    if (result != ATT_NCCL_SUCCESS)
        return result; /* NCCL fails the call, as it would without attune */
    for (size_t i = 0; i < cells; i++)
        before[i] = q->table[i] < 0 ? q->table[i] : before[i]; /* what they rule out stays so */
    memcpy(own, before, cells * sizeof *own);
    result = att_tuner_decide(link->ours, q->collective, q->bytes, own, q->algorithms, q->protocols,
                              &own_channels);
    if (result != ATT_NCCL_SUCCESS)
        return result;
    if (memcmp(own, before, cells * sizeof *own) != 0) {
        memcpy(q->table, own, cells * sizeof *own);
        *channels = own_channels;
    } else if (own_channels > 0) {
        *channels = own_channels;
    }
    return ATT_NCCL_SUCCESS;
}

static int decide(void *context, const att_tuner_question_t *q, int *channels)
{
    if (__builtin_expect(other.abi == 0, 1))
        return att_tuner_decide(context, q->collective, q->bytes, q->table, q->algorithms,
                                q->protocols, channels);
    link_t *link = context;
    if (link->dropped)
        return att_tuner_decide(link->ours, q->collective, q->bytes, q->table, q->algorithms,
                                q->protocols, channels);
    return decide_both(link, q, channels);
}

int att_chain_decide(void *context, const att_tuner_question_t *q, int *channels)
{
    int result = decide(context, q, channels);
    if (att_chain_profiler_on()) /* stamps may have been switched */
        att_chain_profiler_sync();
    return result;
}

int att_chain_decide_v2(void *context, int collective, size_t bytes, int collnet, int nvls,
                        int pipe_ops, int *algorithm, int *protocol, int *channels)
{
    const link_t *link = context;
    if (other.abi != 2 || link->dropped)
        return ATT_NCCL_SUCCESS;
    return other.v2->get_coll_info(link->theirs, collective, bytes, collnet, nvls, pipe_ops,
                                   algorithm, protocol, channels);
}

int att_chain_chunk(void *context, int collective, size_t bytes, int algorithm, int protocol,
                    int channels, size_t *chunk)
{
    if (__builtin_expect(other.abi == 0, 1))
        return att_tuner_chunk(context, collective, algorithm, protocol, chunk);
    const link_t *link = context;
    if (other.abi >= 6 && !link->dropped && other.v6->get_chunk_size != NULL) {
        int result = other.v6->get_chunk_size(link->theirs, collective, bytes, algorithm, protocol,
                                              channels, chunk);
        if (result != ATT_NCCL_SUCCESS)
            return result;
    }
    return att_tuner_chunk(link->ours, collective, algorithm, protocol, chunk);
}

int att_chain_finalize(void *context)
{
    if (other.abi == 0)
        return att_tuner_finalize(context);
    link_t *link = context;
    if (link == NULL)
        return ATT_NCCL_SUCCESS;
    int result = ATT_NCCL_SUCCESS;
    if (!link->dropped)
        result = other.abi < 5 ? other.v4->destroy(link->theirs) : other.v5->finalize(link->theirs);
    att_tuner_finalize(link->ours);
    free(link);
    return result;
}
