#include "control/kind.h"

#include "base/config.h"
#include "control/task_inside.h"
#include "search/kin.h"
#include "search/statistics.h"

#include <string.h>

#define PATIENCE_NS 5000000000ull /* without a call of the other one, */
#define PATIENCE    8             /* and as many calls of its own as are usual in this time */
#define NEAR        16            /* sizes that differ by less than this part are alike */

void att_kind_join(struct att_task *t)
{
    t->next = t->shared->tasks;
    t->shared->tasks = t;
}

void att_kind_leave(struct att_task *t)
{
    struct att_task **link = &t->shared->tasks;
    while (*link != NULL) {
        struct att_task *other = *link;
        if (other->awaited == t) {
            other->awaited = NULL;
            att_optimizer_await(other->optimizer, false);
        }
        if (other == t)
            *link = t->next;
        else
            link = &other->next;
    }
}

static bool near_in_size(uint64_t a, uint64_t b)
{
    return a < b ? b - a <= a / NEAR : a - b <= b / NEAR;
}

/* Where the step is to be short it is what the collective takes by itself that is alike, as the
 * step is one and the same for all. */
static bool take_alike(const att_source_t *a, const att_source_t *b)
{
    return !a->step || att_kin_same_time(att_median(a->duration_us, a->durations),
                                         att_median(b->duration_us, b->durations));
}

static bool alike(const struct att_task *a, const struct att_task *b)
{
    if (a->task->collective != b->task->collective ||
        !near_in_size(a->task->bytes, b->task->bytes) ||
        a->task->legal_pairs != b->task->legal_pairs || a->group->ranks != b->group->ranks ||
        a->group->nodes != b->group->nodes || a->lane_count != b->lane_count ||
        (a->reach == NULL) != (b->reach == NULL) ||
        (a->reach != NULL && a->reach->place->agents != b->reach->place->agents) ||
        a->source.reduction != b->source.reduction || !take_alike(&a->source, &b->source) ||
        !att_setting_equal(a->source.native, b->source.native))
        return false;
    att_identity_t of_a = att_task_identity(a), of_b = att_task_identity(b);
    return of_a.nccl_version == of_b.nccl_version && strcmp(of_a.device, of_b.device) == 0;
}

/* How long a task that awaits another goes without a call of that one: steps of a job may take many
 * seconds, so that time alone tells nothing. */
static uint64_t patience_ns(const struct att_task *t, uint64_t now_ns)
{
    uint64_t calls = t->calls_seen - t->awaited_calls;
    return PATIENCE_NS + PATIENCE * ((now_ns - t->awaited_since_ns) / (calls + 1));
}

/* Searching itself, and called by the job. */
static bool is_on_its_way(const struct att_task *t, const att_optimizer_status_t *status,
                          const struct att_task *waits, uint64_t now_ns)
{
    return t->awaited == NULL && !t->pinned && status->phase < ATT_PHASE_SETTLED &&
           now_ns < t->list_since_ns + patience_ns(waits, now_ns);
}

/* That a step shows no gain may be its noise; and not one sample of NCCL's choice shows nothing. */
static bool tells(const struct att_task *t, const att_optimizer_status_t *status)
{
    return t->source.step ? !status->kept_default : status->baseline_us > 0;
}

/* 1: it has come to an end that tells something, 0: it may still, -1: it will not. */
static int end_of(const struct att_task *t, att_optimizer_status_t *status,
                  const struct att_task *waits, uint64_t now_ns)
{
    if (t->state != ATT_TASK_TUNING || t->withdrawn)
        return -1;
    att_optimizer_status(t->optimizer, status);
    if (status->phase == ATT_PHASE_SETTLED)
        return tells(t, status) ? 1 : -1;
    return is_on_its_way(t, status, waits, now_ns) ? 0 : -1;
}

/* Where the step is to be short, lists of one would be in the steps of the other. */
static bool share_steps(const struct att_task *a, const struct att_task *b)
{
    return a->source.step && b->source.step && a->task->group == b->task->group;
}

/* One of its kind that has settled, else one that is being searched; where steps are shared the
 * other way round, and there it need not be of its kind. */
static struct att_task *find(const struct att_task *t, uint64_t now_ns)
{
    struct att_task *settled = NULL, *searches = NULL;
    att_optimizer_status_t status;
    for (struct att_task *other = t->shared->tasks; other != NULL; other = other->next) {
        if (other == t || other->state != ATT_TASK_TUNING)
            continue;
        bool kin = alike(t, other);
        int end = kin || share_steps(t, other) ? end_of(other, &status, t, now_ns) : -1;
        if (end == 1 && kin)
            settled = other;
        if (end == 0)
            searches = other;
    }
    bool first = settled != NULL && (searches == NULL || !share_steps(t, searches));
    return first ? settled : searches;
}

static void look(struct att_task *t, uint64_t now_ns)
{
    t->awaited = find(t, now_ns);
    att_optimizer_await(t->optimizer, t->awaited != NULL);
}

void att_kind_begin(struct att_task *t, uint64_t now_ns)
{
    att_optimizer_status_t status;
    att_optimizer_status(t->optimizer, &status);
    t->list_since_ns = t->awaited_since_ns = now_ns;
    t->awaited_calls = t->calls_seen;
    if (!t->shared->config->search_each && status.phase == ATT_PHASE_BASELINE)
        look(t, now_ns);
}

/* While it rests, its budget used up, it has no stamps, which alone show progress: that the job
 * calls it must do for those that await it. */
static void note_rest(struct att_task *t)
{
    if (!att_optimizer_wants_timing(t->optimizer) && t->list_since_ns < t->pulse.last_ns)
        t->list_since_ns = t->pulse.last_ns;
}

bool att_kind_waits(struct att_task *t, uint64_t now_ns)
{
    if (t->awaited == NULL) {
        note_rest(t);
        return false;
    }
    att_optimizer_status_t status;
    int end = end_of(t->awaited, &status, t, now_ns);
    if (end == 0)
        return true;
    if (end < 0 || t->source.step) { /* another one may be first */
        look(t, now_ns);
        end = t->awaited != NULL ? end_of(t->awaited, &status, t, now_ns) : -1;
    }
    if (end == 0)
        return true;
    t->awaited = NULL;
    t->list_since_ns = now_ns;
    if (end == 1)
        att_optimizer_follow(t->optimizer, status.kept_default ? ATT_SETTING_KEEP : status.best,
                             t->source.step ? 0 : status.baseline_us);
    return false;
}
