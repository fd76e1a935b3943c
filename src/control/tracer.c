#include "control/tracer.h"

#include "base/clock.h"
#include "base/log.h"
#include "profile/device_clock.h"
#include "profile/stream_writer.h"
#include "profile/trace_mode.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_NS       200000000ull  /* requests, flush */
#define STATUS_NS     1000000000ull /* status file, losses */
#define CLOCK_POINTS  256           /* kept for a recording that starts later, and per part */
#define DEVICE_CLOCKS 256
#define DEVICE_POINTS 64 /* a device, repeated in each part */

/* A GPU's timer as one process sees it. */
typedef struct device {
    uint64_t clock_id;
    uint32_t process;
    uint64_t points;
    att_device_clock_t clock;
} device_t;

struct att_tracer {
    const att_config_t *config;
    struct att_node *node;
    const att_node_clock_t *clock;
    uint32_t self, agents;
    char folder[PATH_MAX - 64];
    att_trace_mode_t mode;
    uint64_t token; /* of the request that was followed last */
    uint64_t looked_ns, status_ns;
    struct att_stream_writer *writer; /* NULL: not recording */
    att_stream_counts_t before;       /* of recordings that have ended */
    att_stream_loss_t told;
    uint8_t groups[ATT_GROUPS], members[ATT_MEMBERS], tasks[ATT_TASKS], processes[ATT_PROCESSES];
    uint32_t listed[ATT_TASKS]; /* txn of the last list written */
    uint32_t marked;            /* processes that were told to send marks */
    att_stream_clock_t points[CLOCK_POINTS];
    uint64_t point_count;
    device_t devices[DEVICE_CLOCKS];
    uint32_t device_count;
};

int att_tracer_create(const att_config_t *config, struct att_node *node,
                      const att_node_clock_t *clock, uint32_t self, uint32_t agents,
                      struct att_tracer **out, att_error_t *error)
{
    att_trace_mode_t mode;
    int status = att_trace_mode_parse(config->trace, "--trace", &mode, error);
    if (status != ATT_OK)
        return status;
    struct att_tracer *t = calloc(1, sizeof *t);
    if (t == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory");
    t->config = config;
    t->node = node;
    t->clock = clock;
    t->self = self;
    t->agents = agents;
    t->mode = mode;
    snprintf(t->folder, sizeof t->folder, "%s/" ATT_STREAM_FOLDER, config->run_dir);
    /* The first agent's clock is the reference. */
    if (self == 0)
        att_tracer_clock(t, &(att_stream_clock_t){.at_ns = att_node_clock_now(clock)});
    *out = t;
    return ATT_OK;
}

int att_tracer_active(const struct att_tracer *t)
{
    return t->writer != NULL;
}

/* --- what describes the records -----------------------------------------------------------------
 */

static void define(struct att_tracer *t, att_frame_type_t type, uint64_t key, const void *payload,
                   size_t bytes)
{
    static att_log_site_t site;
    if (att_stream_writer_define(t->writer, type, key, payload, (uint32_t)bytes) == -ATT_ENOMEM)
        att_log_limited(&site, ATT_LOG_ERROR, "no memory for the trace's descriptions");
}

static void describe_group(struct att_tracer *t, uint32_t index)
{
    const att_segment_group_t *group = &att_node_memory(t->node)->groups[index];
    if (index >= ATT_GROUPS || t->groups[index] || !att_segment_is_filled(&group->state))
        return;
    t->groups[index] = 1;
    att_stream_group_t out = {
        .hash = group->hash, .index = index, .ranks = group->ranks, .nodes = group->nodes};
    define(t, ATT_FRAME_GROUP, index, &out, sizeof out);
}

static void describe_process(struct att_tracer *t, uint32_t index)
{
    const att_segment_process_t *process = &att_node_memory(t->node)->processes[index];
    if (index >= ATT_PROCESSES || t->processes[index] || !att_segment_is_filled(&process->state))
        return;
    t->processes[index] = 1;
    att_stream_process_t out = {.index = index, .pid = process->pid};
    snprintf(out.program, sizeof out.program, "%s", process->program);
    define(t, ATT_FRAME_PROCESS, index, &out, sizeof out);
}

static void describe_member(struct att_tracer *t, uint32_t index)
{
    const att_segment_member_t *member = &att_node_memory(t->node)->members[index];
    if (t->members[index] || !att_segment_is_filled(&member->state))
        return;
    describe_group(t, member->group);
    describe_process(t, member->process);
    t->members[index] = 1;
    att_stream_member_t out = {.index = index,
                               .group = member->group,
                               .process = member->process,
                               .rank = member->rank,
                               .clock_kind = member->clock_kind,
                               .nccl_version = member->nccl_version,
                               .clock_id = member->clock_id};
    memcpy(out.device_id, member->device_id, sizeof out.device_id);
    define(t, ATT_FRAME_MEMBER, index, &out, sizeof out);
}

static void describe_task(struct att_tracer *t, uint32_t index)
{
    const att_segment_task_t *task = &att_node_memory(t->node)->tasks[index];
    if (t->tasks[index] || !att_segment_is_filled(&task->state))
        return;
    describe_group(t, task->group);
    t->tasks[index] = 1;
    att_stream_task_t out = {.bytes = task->bytes,
                             .index = index,
                             .group = task->group,
                             .collective = task->collective,
                             .legal_pairs = task->legal_pairs};
    define(t, ATT_FRAME_TASK, index, &out, sizeof out);
}

/* A committed list is in the segment until the next one is prepared, which takes a round. */
static void look_for_lists(struct att_tracer *t)
{
    att_segment_memory_t *m = att_node_memory(t->node);
    uint32_t count = att_node_task_count(t->node);
    for (uint32_t i = 0; i < count; i++) {
        const att_segment_task_t *task = &m->tasks[i];
        uint64_t home = atomic_load_explicit(&task->home, memory_order_acquire);
        const att_schedule_t *schedule = &task->schedule;
        if (!att_segment_is_filled(&task->state) || ATT_HOME_STATE(home) != ATT_HOME_COMMITTED ||
            ATT_HOME_TXN(home) != schedule->txn || schedule->txn == t->listed[i] ||
            schedule->count == 0 || schedule->count > ATT_STREAM_LIST_ENTRIES)
            continue;
        t->listed[i] = schedule->txn;
        describe_task(t, i);
        att_stream_list_t out = {.task = i,
                                 .txn = schedule->txn,
                                 .count = schedule->count,
                                 .at_ns = att_node_clock_now(t->clock)};
        for (uint32_t k = 0; k < schedule->count; k++) {
            out.entries[k].first_call = schedule->entries[k].first_call;
            out.entries[k].setting = schedule->entries[k].setting;
        }
        define(t, ATT_FRAME_LIST, i, &out, sizeof out);
    }
}

static void ask_for_marks(struct att_tracer *t, uint32_t wanted)
{
    att_segment_memory_t *m = att_node_memory(t->node);
    uint32_t count = atomic_load(&m->header.process_count);
    for (uint32_t p = 0; p < count && p < ATT_PROCESSES; p++)
        atomic_store_explicit(&m->processes[p].marks, wanted, memory_order_relaxed);
    t->marked = count;
}

/* --- records ------------------------------------------------------------------------------------
 */

static void put_device_point(struct att_tracer *t, device_t *device,
                             const att_device_clock_point_t *point)
{
    uint32_t index = (uint32_t)(device - t->devices);
    att_stream_device_clock_t out = {.clock_id = device->clock_id,
                                     .at_ns = point->at_ns,
                                     .offset_ns = point->offset_ns,
                                     .uncertainty_ns = point->uncertainty_ns,
                                     .process = device->process};
    define(t, ATT_FRAME_DEVICE_CLOCK, index * DEVICE_POINTS + device->points++ % DEVICE_POINTS,
           &out, sizeof out);
}

static void tie_device(struct att_tracer *t, const att_segment_member_t *member,
                       const att_stream_record_t *r)
{
    device_t *device = NULL;
    for (uint32_t i = 0; i < t->device_count && device == NULL; i++)
        if (t->devices[i].clock_id == member->clock_id && t->devices[i].process == r->process)
            device = &t->devices[i];
    if (device == NULL) {
        static att_log_site_t site;
        if (t->device_count == DEVICE_CLOCKS) {
            att_log_limited(&site, ATT_LOG_WARN,
                            "trace: more than %d clocks of GPUs: those beyond are not tied to the "
                            "nodes' clocks",
                            DEVICE_CLOCKS);
            return;
        }
        device = &t->devices[t->device_count++];
        *device = (device_t){.clock_id = member->clock_id, .process = r->process};
    }
    att_device_clock_point_t point;
    if (att_device_clock_add(&device->clock, r->decided_ns, r->start_ns, r->stop_ns, r->seen_ns,
                             &point))
        put_device_point(t, device, &point);
}

static void put_mark(struct att_tracer *t, const att_record_t *record)
{
    const att_segment_memory_t *m = att_node_memory(t->node);
    describe_process(t, record->process);
    /* The program read its communicator's clock: that of the process's members. */
    uint32_t kind = ATT_CLOCK_HOST, count = atomic_load(&m->header.member_count);
    for (uint32_t i = 0; i < count && i < ATT_MEMBERS; i++)
        if (m->members[i].process == record->process &&
            m->members[i].clock_kind == ATT_CLOCK_VIRTUAL)
            kind = ATT_CLOCK_VIRTUAL;
    att_stream_mark_t out = {.iteration = record->call,
                             .time_ns = kind == ATT_CLOCK_HOST
                                            ? att_node_clock_of(t->clock, record->start_ns)
                                            : (int64_t)record->start_ns,
                             .process = record->process,
                             .rank = (uint32_t)record->nccl_seq,
                             .clock_kind = kind};
    att_stream_writer_note(t->writer, ATT_FRAME_MARK, &out, sizeof out);
}

void att_tracer_record(struct att_tracer *t, const att_record_t *record)
{
    if (t->writer == NULL)
        return;
    if (record->source == ATT_TIME_MARK) {
        if (record->process < ATT_PROCESSES)
            put_mark(t, record);
        return;
    }
    const att_segment_member_t *member = &att_node_memory(t->node)->members[record->member];
    describe_member(t, record->member);
    describe_task(t, record->task);
    bool host = member->clock_kind == ATT_CLOCK_HOST;
    att_stream_record_t out = {
        .call = record->call,
        .start_ns =
            host ? att_node_clock_of(t->clock, record->start_ns) : (int64_t)record->start_ns,
        .stop_ns = host ? att_node_clock_of(t->clock, record->stop_ns) : (int64_t)record->stop_ns,
        .decided_ns = att_node_clock_of(t->clock, record->decided_ns),
        .seen_ns = att_node_clock_of(t->clock, record->seen_ns),
        .nccl_seq = (uint32_t)record->nccl_seq,
        .task = record->task,
        .member = record->member,
        .process = record->process,
        .txn = record->txn,
        .chunk_bytes = record->chunk_bytes,
        .channels = record->channels,
        .threads = record->threads,
        .algorithm = record->algorithm,
        .protocol = record->protocol,
        .untimed = record->untimed,
        .datatype = record->datatype,
    };
    bool timed = record->untimed == ATT_UNTIMED_NO;
    bool virtual_time = member->clock_kind == ATT_CLOCK_VIRTUAL;
    if (timed && !host && !virtual_time)
        tie_device(t, member, &out);
    att_stream_writer_record(t->writer, &out,
                             !timed         ? 0
                             : virtual_time ? out.start_ns
                                            : out.decided_ns,
                             !timed         ? 0
                             : virtual_time ? out.stop_ns
                                            : out.seen_ns);
}

void att_tracer_clock(struct att_tracer *t, const att_stream_clock_t *point)
{
    uint64_t slot = t->point_count++ % CLOCK_POINTS;
    t->points[slot] = *point;
    if (t->writer != NULL)
        define(t, ATT_FRAME_CLOCK, slot, point, sizeof *point);
}

/* --- start and stop -----------------------------------------------------------------------------
 */

static void note_state(struct att_tracer *t, uint32_t recording)
{
    att_stream_state_t state = {
        .at_ns = att_node_clock_now(t->clock), .recording = recording, .ring = t->mode.ring};
    att_stream_writer_note(t->writer, ATT_FRAME_STATE, &state, sizeof state);
}

static void start(struct att_tracer *t)
{
    const att_segment_header_t *header = &att_node_memory(t->node)->header;
    att_stream_options_t options = {.folder = t->folder,
                                    .ring = t->mode.ring,
                                    .limit_bytes = t->mode.limit_bytes,
                                    .header = {.node = t->self, .nodes = t->agents}};
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    options.header.opened_ns = (uint64_t)att_node_clock_now(t->clock);
    options.header.opened_unix_ns = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec;
    memcpy(options.header.node_id, header->node_id, sizeof options.header.node_id);
    snprintf(options.header.attune, sizeof options.header.attune, "%.15s", ATTUNE_VERSION);
    snprintf(options.header.run_id, sizeof options.header.run_id, "%.63s", header->run_id);
    gethostname(options.header.host, sizeof options.header.host - 1);
    options.header.injected_offset_ns = t->clock->injected_offset_ns;
    options.header.injected_drift = t->clock->injected_drift;
    att_error_t error = {""};
    if ((mkdir(t->config->run_dir, 0755) != 0 && errno != EEXIST) ||
        att_stream_writer_create(&options, &t->writer, &error) != ATT_OK) {
        att_log(ATT_LOG_ERROR, "no trace: %s",
                t->writer == NULL && error.text[0] != '\0' ? error.text : strerror(errno));
        t->writer = NULL;
        t->mode.on = false;
        return;
    }
    memset(t->groups, 0, sizeof t->groups);
    memset(t->members, 0, sizeof t->members);
    memset(t->tasks, 0, sizeof t->tasks);
    memset(t->processes, 0, sizeof t->processes);
    memset(t->listed, 0, sizeof t->listed);
    memset(t->devices, 0, sizeof t->devices);
    t->device_count = 0;
    uint64_t kept = t->point_count < CLOCK_POINTS ? t->point_count : CLOCK_POINTS;
    for (uint64_t i = t->point_count - kept; i < t->point_count; i++)
        define(t, ATT_FRAME_CLOCK, i % CLOCK_POINTS, &t->points[i % CLOCK_POINTS],
               sizeof t->points[0]);
    note_state(t, 1);
    ask_for_marks(t, 1);
}

static void note_losses(struct att_tracer *t)
{
    att_stream_counts_t counts;
    att_stream_writer_counts(t->writer, &counts);
    att_stream_loss_t loss = {.ring_dropped = att_node_dropped(t->node),
                              .writer_dropped = t->before.dropped + counts.dropped,
                              .records = t->before.records + counts.records};
    if (memcmp(&loss, &t->told, sizeof loss) == 0)
        return;
    t->told = loss;
    att_stream_writer_note(t->writer, ATT_FRAME_LOSS, &loss, sizeof loss);
}

static void stop(struct att_tracer *t)
{
    if (t->writer == NULL)
        return;
    for (uint32_t i = 0; i < t->device_count; i++) {
        att_device_clock_point_t point;
        if (att_device_clock_finish(&t->devices[i].clock, &point))
            put_device_point(t, &t->devices[i], &point);
    }
    note_losses(t);
    note_state(t, 0);
    att_stream_counts_t counts;
    att_stream_writer_counts(t->writer, &counts);
    t->before.records += counts.records;
    t->before.dropped += counts.dropped;
    t->before.bytes += counts.bytes;
    att_stream_writer_destroy(t->writer);
    t->writer = NULL;
    ask_for_marks(t, 0);
}

static void write_status(struct att_tracer *t)
{
    char path[PATH_MAX], temporary[PATH_MAX], mode[40];
    snprintf(path, sizeof path, "%s/node-%04u.json", t->folder, t->self);
    snprintf(temporary, sizeof temporary, "%s/.node-%04u.json.new", t->folder, t->self);
    att_stream_counts_t counts = {0};
    if (t->writer != NULL)
        att_stream_writer_counts(t->writer, &counts);
    FILE *file = fopen(temporary, "we");
    if (file == NULL)
        return;
    fprintf(file,
            "{\"version\":1,\"node\":%u,\"nodes\":%u,\"recording\":%s,\"mode\":\"%s\","
            "\"request\":%" PRIu64 ",\"records\":%" PRIu64 ",\"lost\":%" PRIu64
            ",\"clock_points\":%" PRIu64 "}\n",
            t->self, t->agents, t->writer != NULL ? "true" : "false",
            att_trace_mode_text(&t->mode, mode, sizeof mode), t->token,
            t->before.records + counts.records,
            t->before.dropped + counts.dropped + att_node_dropped(t->node), t->point_count);
    if (fclose(file) == 0)
        rename(temporary, path);
}

/* "MODE TOKEN" of the request file, when it is another one than before. */
static bool follow_request(struct att_tracer *t)
{
    char path[PATH_MAX], text[64];
    unsigned long long token;
    snprintf(path, sizeof path, "%s/request", t->folder);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    int fields = fscanf(file, "%63s %llu", text, &token);
    fclose(file);
    att_trace_mode_t mode;
    att_error_t error;
    if (fields != 2 || token == t->token)
        return false;
    t->token = token;
    if (att_trace_mode_parse(text, path, &mode, &error) != ATT_OK) {
        att_log(ATT_LOG_WARN, "%s", error.text);
        return false;
    }
    stop(t);
    t->mode = mode;
    return true;
}

void att_tracer_step(struct att_tracer *t, uint64_t now_ns)
{
    if (t->config->run_dir[0] == '\0')
        return;
    if (t->writer != NULL) {
        look_for_lists(t);
        if (atomic_load(&att_node_memory(t->node)->header.process_count) != t->marked)
            ask_for_marks(t, 1);
    }
    if (now_ns - t->looked_ns < LOOK_NS && t->looked_ns != 0)
        return;
    t->looked_ns = now_ns;
    bool asked = follow_request(t);
    if (t->mode.on && t->writer == NULL)
        start(t);
    if (t->writer != NULL && now_ns - t->status_ns >= STATUS_NS)
        note_losses(t);
    if (t->writer != NULL)
        att_stream_writer_flush(t->writer);
    if (asked || (t->writer != NULL && now_ns - t->status_ns >= STATUS_NS)) {
        t->status_ns = now_ns;
        write_status(t);
    }
}

void att_tracer_destroy(struct att_tracer *t)
{
    if (t == NULL)
        return;
    bool wrote = t->writer != NULL || t->before.records > 0;
    stop(t);
    t->mode.on = false;
    if (wrote)
        write_status(t);
    free(t);
}
