#include "profile/trace.h"

#include "attune/record.h"
#include "base/segment.h"
#include "profile/room.h"
#include "profile/stream_reader.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A GPU's timer, as one process tied it to its node. */
typedef struct device_model {
    uint32_t node, process;
    uint64_t clock_id;
    att_clock_model_t model;
} device_model_t;

typedef struct stream_file {
    struct att_stream_reader *reader;
    uint32_t node;
} stream_file_t;

struct att_trace {
    stream_file_t *files;
    uint32_t file_count;
    att_catalog_t catalog;
    att_clock_model_t *clocks; /* per node */
    bool *is_reference;
    att_trace_node_t *nodes;
    device_model_t *devices;
    uint32_t device_count;
    uint32_t *device_of; /* per member, NONE: the node's clock or the virtual one */
    att_trace_list_t *lists;
    uint32_t list_count;
    att_trace_mark_t *marks;
    uint32_t mark_count;
    att_trace_damage_t *damage;
    uint32_t damage_count;
    att_trace_facts_t facts;
};

/* --- files --------------------------------------------------------------------------------------
 */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names of the record files in the folder, sorted: a node's parts follow each other. */
static int list_files(const char *folder, char ***names, uint32_t *count, att_error_t *error)
{
    *names = NULL;
    *count = 0;
    DIR *d = opendir(folder);
    if (d == NULL && errno != ENOENT)
        return att_fail_errno(error, "cannot read %s", folder);
    for (struct dirent *entry; d != NULL && (entry = readdir(d)) != NULL;) {
        size_t length = strlen(entry->d_name);
        if (length < 9 || strcmp(entry->d_name + length - 8, ".records") != 0)
            continue;
        char *name = strdup(entry->d_name);
        if (name == NULL || att_room_append(names, *count, sizeof **names) != ATT_OK) {
            free(name);
            closedir(d);
            return att_fail(error, ATT_ENOMEM, "no memory");
        }
        (*names)[(*count)++] = name;
    }
    if (d != NULL)
        closedir(d);
    if (*count > 0)
        qsort(*names, *count, sizeof **names, by_name);
    return ATT_OK;
}

/* -ATT_ENOMEM. `reader` is NULL for a file that is no stream: the rest is good. */
static int note_damage(struct att_trace *t, const char *path,
                       const struct att_stream_reader *reader, const char *why)
{
    att_trace_damage_t damage;
    if (reader != NULL && !att_trace_damage_of(path, reader, &damage))
        return ATT_OK;
    if (reader == NULL) {
        att_trace_damage_whole(path, why, &damage);
        t->facts.broken_files++;
    }
    if (att_room_append(&t->damage, t->damage_count, sizeof *t->damage) != ATT_OK)
        return -ATT_ENOMEM;
    t->damage[t->damage_count++] = damage;
    return ATT_OK;
}

static int open_file(struct att_trace *t, const char *path, att_error_t *error)
{
    struct att_stream_reader *reader;
    int status = att_stream_reader_open(path, &reader, error);
    if (status == -ATT_EINPUT)
        return note_damage(t, path, NULL, error->text) == ATT_OK
                   ? ATT_OK
                   : att_fail(error, ATT_ENOMEM, "no memory");
    if (status != ATT_OK)
        return status == -ATT_ESYSTEM && errno == ENOENT ? ATT_OK : status; /* a ring went on */
    uint32_t node;
    if (att_room_append(&t->files, t->file_count, sizeof *t->files) != ATT_OK ||
        att_catalog_node(&t->catalog, att_stream_reader_header(reader), &node) != ATT_OK ||
        note_damage(t, path, reader, NULL) != ATT_OK) {
        att_stream_reader_close(reader);
        return att_fail(error, ATT_ENOMEM, "no memory");
    }
    t->files[t->file_count++] = (stream_file_t){reader, node};
    return ATT_OK;
}

static int open_files(struct att_trace *t, const char *run, att_error_t *error)
{
    char folder[PATH_MAX - 300], path[PATH_MAX];
    char **names;
    uint32_t count;
    if (access(run, F_OK) != 0)
        return att_fail(error, ATT_ENOENT, "no run %s: %s", run, strerror(errno));
    snprintf(folder, sizeof folder, "%s/" ATT_STREAM_FOLDER, run);
    int status = list_files(folder, &names, &count, error);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (status == ATT_OK)
            status = open_file(t, path, error);
    }
    for (uint32_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
    if (status == ATT_OK && t->file_count == 0)
        status = t->damage_count > 0
                     ? att_fail(error, ATT_EINPUT, "%s", t->damage[0].text)
                     : att_fail(error, ATT_ENOENT,
                                "%s has no records: run with --trace on, or 'attune trace start' "
                                "while it runs",
                                run);
    return status;
}

/* --- descriptions -------------------------------------------------------------------------------
 */

static int add_device_point(struct att_trace *t, uint32_t node, const att_stream_device_clock_t *p)
{
    uint32_t i = 0;
    while (i < t->device_count &&
           (t->devices[i].node != node || t->devices[i].process != p->process ||
            t->devices[i].clock_id != p->clock_id))
        i++;
    if (i == t->device_count) {
        if (att_room_append(&t->devices, t->device_count, sizeof *t->devices) != ATT_OK)
            return -ATT_ENOMEM;
        t->devices[t->device_count++] =
            (device_model_t){.node = node, .process = p->process, .clock_id = p->clock_id};
    }
    att_stream_clock_t point = {
        .at_ns = p->at_ns, .offset_ns = p->offset_ns, .uncertainty_ns = p->uncertainty_ns};
    return att_clock_model_add(&t->devices[i].model, &point);
}

static int add_list(struct att_trace *t, uint32_t node, const att_stream_list_t *list)
{
    uint32_t task = att_catalog_task_of(&t->catalog, node, list->task);
    if (task == ATT_CATALOG_NONE || list->count == 0 || list->count > ATT_STREAM_LIST_ENTRIES)
        return ATT_OK;
    if (att_room_append(&t->lists, t->list_count, sizeof *t->lists) != ATT_OK)
        return -ATT_ENOMEM;
    t->lists[t->list_count++] = (att_trace_list_t){.task = task, .list = *list};
    return ATT_OK;
}

static int add_marks(struct att_trace *t, uint32_t node, const att_stream_mark_t *marks,
                     uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (att_room_append(&t->marks, t->mark_count, sizeof *t->marks) != ATT_OK)
            return -ATT_ENOMEM;
        int64_t ns = marks[i].time_ns;
        if (marks[i].clock_kind == ATT_CLOCK_HOST && !t->is_reference[node])
            ns = att_clock_model_read(&t->clocks[node], ns).ns;
        t->marks[t->mark_count++] = (att_trace_mark_t){.time_ns = ns,
                                                       .iteration = marks[i].iteration,
                                                       .node = node,
                                                       .process = marks[i].process,
                                                       .rank = marks[i].rank};
    }
    return ATT_OK;
}

/* Descriptions come in three passes: groups and processes, then what refers to them, then lists and
 * marks, which need clocks. */
static int take_frame(struct att_trace *t, uint32_t node, int pass, const att_frame_place_t *frame,
                      const void *payload)
{
    int status = ATT_OK;
    const att_stream_loss_t *loss = payload;
    switch (frame->type) {
    case ATT_FRAME_GROUP:
        return pass == 0 ? att_catalog_add_group(&t->catalog, node, payload) : ATT_OK;
    case ATT_FRAME_PROCESS:
        return pass == 0 ? att_catalog_add_process(&t->catalog, node, payload) : ATT_OK;
    case ATT_FRAME_TASK:
        return pass == 1 ? att_catalog_add_task(&t->catalog, node, payload) : ATT_OK;
    case ATT_FRAME_MEMBER:
        return pass == 1 ? att_catalog_add_member(&t->catalog, node, payload) : ATT_OK;
    case ATT_FRAME_CLOCK:
        return pass == 1 ? att_clock_model_add(&t->clocks[node], payload) : ATT_OK;
    case ATT_FRAME_DEVICE_CLOCK:
        return pass == 1 ? add_device_point(t, node, payload) : ATT_OK;
    case ATT_FRAME_LIST:
        return pass == 2 ? add_list(t, node, payload) : ATT_OK;
    case ATT_FRAME_MARK:
        return pass == 2 ? add_marks(t, node, payload, frame->count) : ATT_OK;
    case ATT_FRAME_LOSS:
        if (pass == 2) { /* totals of the node: the last one counts, see sum_losses */
            t->facts.ring_dropped = loss->ring_dropped;
            t->facts.writer_dropped = loss->writer_dropped;
        }
        return ATT_OK;
    default:
        return status;
    }
}

static int read_descriptions(struct att_trace *t, int pass)
{
    unsigned char *payload = malloc(ATT_FRAME_PAYLOAD);
    int status = payload == NULL ? -ATT_ENOMEM : ATT_OK;
    uint64_t ring = 0, writer = 0;
    for (uint32_t f = 0; f < t->file_count && status == ATT_OK; f++) {
        size_t count;
        const att_frame_place_t *frames = att_stream_reader_frames(t->files[f].reader, &count);
        for (size_t i = 0; i < count && status == ATT_OK; i++)
            if (frames[i].type != ATT_FRAME_RECORDS &&
                att_stream_reader_payload(t->files[f].reader, &frames[i], payload))
                status = take_frame(t, t->files[f].node, pass, &frames[i], payload);
        /* Losses are totals since the run's start: the last of each node is added up. */
        if (pass == 2 && (f + 1 == t->file_count || t->files[f + 1].node != t->files[f].node)) {
            ring += t->facts.ring_dropped;
            writer += t->facts.writer_dropped;
            t->facts.ring_dropped = t->facts.writer_dropped = 0;
        }
    }
    if (pass == 2) {
        t->facts.ring_dropped = ring;
        t->facts.writer_dropped = writer;
    }
    free(payload);
    return status;
}

/* --- clocks -------------------------------------------------------------------------------------
 */

static int prepare_clocks(struct att_trace *t)
{
    uint32_t n = t->catalog.node_count;
    t->clocks = calloc(n, sizeof *t->clocks);
    t->is_reference = calloc(n, sizeof *t->is_reference);
    t->nodes = calloc(n, sizeof *t->nodes);
    return t->clocks != NULL && t->is_reference != NULL && t->nodes != NULL ? ATT_OK : -ATT_ENOMEM;
}

static int settle_clocks(struct att_trace *t)
{
    for (uint32_t i = 0; i < t->catalog.node_count; i++) {
        /* Agent 0 is the reference; a run of one node needs none. */
        t->is_reference[i] = t->catalog.nodes[i].agent == 0 || t->catalog.node_count == 1;
        if (t->is_reference[i])
            t->clocks[i].count = 0;
        else if (att_clock_model_clean(&t->clocks[i], 0) != ATT_OK)
            return -ATT_ENOMEM;
    }
    for (uint32_t i = 0; i < t->device_count; i++)
        if (t->devices[i].model.count > 8) {
            /* Windows with few or delayed calls are worse than the line between their neighbours.
             */
            att_clock_model_t *m = &t->devices[i].model;
            uint32_t best = UINT32_MAX, kept = 0;
            for (uint32_t k = 0; k < m->count; k++)
                if (m->points[k].uncertainty_ns < best)
                    best = m->points[k].uncertainty_ns;
            for (uint32_t k = 0; k < m->count; k++)
                if (m->points[k].uncertainty_ns <= 4 * (uint64_t)best + 2000)
                    m->points[kept++] = m->points[k];
            m->count = kept;
        }
    return ATT_OK;
}

static int find_devices(struct att_trace *t)
{
    t->device_of = malloc((t->catalog.member_count + 1) * sizeof *t->device_of);
    if (t->device_of == NULL)
        return -ATT_ENOMEM;
    for (uint32_t i = 0; i < t->catalog.member_count; i++) {
        const att_catalog_member_t *m = &t->catalog.members[i];
        t->device_of[i] = ATT_CATALOG_NONE;
        t->facts.virtual_time |= m->clock_kind == ATT_CLOCK_VIRTUAL;
        for (uint32_t d = 0; d < t->device_count; d++)
            if (m->clock_kind != ATT_CLOCK_HOST && m->clock_kind != ATT_CLOCK_VIRTUAL &&
                t->devices[d].node == m->node && t->devices[d].process == m->process &&
                t->devices[d].clock_id == m->clock_id)
                t->device_of[i] = d;
    }
    return ATT_OK;
}

att_clock_reading_t att_trace_read(const struct att_trace *t, uint32_t member, int64_t ns)
{
    const att_catalog_member_t *m = &t->catalog.members[member];
    if (m->clock_kind == ATT_CLOCK_VIRTUAL)
        return (att_clock_reading_t){ns, 0};
    att_clock_reading_t on_node = {ns, 0};
    if (m->clock_kind != ATT_CLOCK_HOST) {
        if (t->device_of[member] == ATT_CATALOG_NONE)
            return (att_clock_reading_t){ns, UINT32_MAX};
        on_node = att_clock_model_read(&t->devices[t->device_of[member]].model, ns);
    }
    if (t->is_reference[m->node])
        return on_node;
    att_clock_reading_t reading = att_clock_model_read(&t->clocks[m->node], on_node.ns);
    uint64_t sum = (uint64_t)reading.uncertainty_ns + on_node.uncertainty_ns;
    reading.uncertainty_ns = sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
    return reading;
}

int att_trace_calibrated(const struct att_trace *t, const bool *members, att_error_t *error)
{
    const att_catalog_t *c = &t->catalog;
    bool apart = false;
    const att_catalog_member_t *first = NULL;
    for (uint32_t i = 0; i < c->member_count; i++) {
        const att_catalog_member_t *m = &c->members[i];
        if ((members != NULL && !members[i]) || m->clock_kind == ATT_CLOCK_VIRTUAL)
            continue;
        if (first == NULL)
            first = m;
        apart |= m->node != first->node ||
                 (m->clock_kind != ATT_CLOCK_HOST && m->clock_id != first->clock_id);
    }
    for (uint32_t i = 0; apart && i < c->member_count; i++) {
        const att_catalog_member_t *m = &c->members[i];
        if ((members != NULL && !members[i]) || m->clock_kind == ATT_CLOCK_VIRTUAL)
            continue;
        if (!t->is_reference[m->node] && t->clocks[m->node].count == 0)
            return att_fail(error, ATT_EMISMATCH,
                            "the clock of node %u (%s) was not calibrated: its times cannot be "
                            "merged with others; select ranks of one node with --ranks",
                            c->nodes[m->node].agent, c->nodes[m->node].host);
        if (m->clock_kind != ATT_CLOCK_HOST && t->device_of[i] == ATT_CATALOG_NONE)
            return att_fail(error, ATT_EMISMATCH,
                            "the device clock of rank %u (process %u of node %u) was not tied to "
                            "its host: its times cannot be merged with others",
                            c->places[m->place].job_rank, m->process, c->nodes[m->node].agent);
    }
    return ATT_OK;
}

/* --- open ---------------------------------------------------------------------------------------
 */

static bool is_virtual(const struct att_trace *t)
{
    return t->facts.virtual_time;
}

void att_trace_span(const struct att_trace *t, uint32_t node, int64_t first_ns, int64_t last_ns,
                    int64_t *from_ns, int64_t *to_ns)
{
    *from_ns = first_ns;
    *to_ns = last_ns;
    if (is_virtual(t) || t->is_reference[node])
        return;
    /* Wide enough that no record of the frame is outside. */
    att_clock_reading_t from = att_clock_model_read(&t->clocks[node], first_ns);
    att_clock_reading_t to = att_clock_model_read(&t->clocks[node], last_ns);
    *from_ns = from.ns - 1000;
    *to_ns = to.ns + 1000;
}

static void gather_facts(struct att_trace *t)
{
    att_trace_facts_t *facts = &t->facts;
    facts->files = t->file_count;
    bool any = false;
    for (uint32_t f = 0; f < t->file_count; f++) {
        const stream_file_t *file = &t->files[f];
        const att_stream_header_t *header = att_stream_reader_header(file->reader);
        const att_stream_damage_t *damage = att_stream_reader_damage(file->reader);
        att_trace_node_t *node = &t->nodes[file->node];
        facts->skipped_bytes += damage->skipped_bytes;
        facts->missing_frames += damage->missing_frames;
        node->injected_offset_ns = header->injected_offset_ns;
        node->injected_drift = header->injected_drift;
        size_t count;
        const att_frame_place_t *frames = att_stream_reader_frames(file->reader, &count);
        for (size_t i = 0; i < count; i++) {
            if (frames[i].type != ATT_FRAME_RECORDS)
                continue;
            facts->records += frames[i].count;
            if (frames[i].last_ns == 0)
                continue;
            int64_t from, to;
            att_trace_span(t, file->node, frames[i].first_ns, frames[i].last_ns, &from, &to);
            if (!any || from < facts->first_ns)
                facts->first_ns = from;
            if (!any || to > facts->last_ns)
                facts->last_ns = to;
            any = true;
            if (node->last_ns == 0 || frames[i].first_ns < node->first_ns)
                node->first_ns = frames[i].first_ns;
            if (frames[i].last_ns > node->last_ns)
                node->last_ns = frames[i].last_ns;
        }
        if (facts->origin_unix_ns == 0 && !facts->virtual_time && t->is_reference[file->node])
            facts->origin_unix_ns = (int64_t)header->opened_unix_ns - (int64_t)header->opened_ns;
    }
    if (facts->origin_unix_ns != 0)
        facts->origin_unix_ns += facts->first_ns;
}

static int by_task_txn(const void *a, const void *b)
{
    const att_trace_list_t *x = a, *y = b;
    if (x->task != y->task)
        return x->task < y->task ? -1 : 1;
    return (x->list.txn > y->list.txn) - (x->list.txn < y->list.txn);
}

static int by_time(const void *a, const void *b)
{
    const att_trace_mark_t *x = a, *y = b;
    return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

int att_trace_open(const char *folder, struct att_trace **out, att_error_t *error)
{
    struct att_trace *t = calloc(1, sizeof *t);
    if (t == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory");
    int status = open_files(t, folder, error);
    int memory = status;
    if (status == ATT_OK)
        memory = prepare_clocks(t);
    for (int pass = 0; pass < 3 && memory == ATT_OK; pass++) {
        memory = read_descriptions(t, pass);
        if (pass == 1 && memory == ATT_OK)
            memory = settle_clocks(t);
    }
    if (memory == ATT_OK)
        memory = att_catalog_finish(&t->catalog);
    if (memory == ATT_OK)
        memory = find_devices(t);
    if (memory != ATT_OK) {
        att_trace_close(t);
        return status != ATT_OK ? status : att_fail(error, ATT_ENOMEM, "no memory for %s", folder);
    }
    gather_facts(t);
    if (t->list_count > 0)
        qsort(t->lists, t->list_count, sizeof *t->lists, by_task_txn);
    if (t->mark_count > 0)
        qsort(t->marks, t->mark_count, sizeof *t->marks, by_time);
    *out = t;
    return ATT_OK;
}

void att_trace_close(struct att_trace *t)
{
    if (t == NULL)
        return;
    for (uint32_t i = 0; t->clocks != NULL && i < t->catalog.node_count; i++)
        att_clock_model_free(&t->clocks[i]);
    for (uint32_t i = 0; i < t->device_count; i++)
        att_clock_model_free(&t->devices[i].model);
    for (uint32_t i = 0; i < t->file_count; i++)
        att_stream_reader_close(t->files[i].reader);
    att_catalog_free(&t->catalog);
    free(t->files);
    free(t->clocks);
    free(t->is_reference);
    free(t->nodes);
    free(t->devices);
    free(t->device_of);
    free(t->damage);
    free(t->lists);
    free(t->marks);
    free(t);
}

/* --- accessors ----------------------------------------------------------------------------------
 */

const att_catalog_t *att_trace_catalog(const struct att_trace *t)
{
    return &t->catalog;
}

const att_trace_facts_t *att_trace_facts(const struct att_trace *t)
{
    return &t->facts;
}

const att_trace_damage_t *att_trace_damage(const struct att_trace *t, uint32_t *count)
{
    *count = t->damage_count;
    return t->damage;
}

const att_trace_list_t *att_trace_lists(const struct att_trace *t, uint32_t *count)
{
    *count = t->list_count;
    return t->lists;
}

const att_trace_mark_t *att_trace_marks(const struct att_trace *t, uint32_t *count)
{
    *count = t->mark_count;
    return t->marks;
}

void att_trace_node(const struct att_trace *t, uint32_t node, att_trace_node_t *about)
{
    *about = t->nodes[node];
    about->agent = t->catalog.nodes[node].agent;
    about->host = t->catalog.nodes[node].host;
    about->model = &t->clocks[node];
    about->calibrated = t->is_reference[node] || t->clocks[node].count > 0;
}

uint32_t att_trace_files(const struct att_trace *t)
{
    return t->file_count;
}

const struct att_stream_reader *att_trace_file(const struct att_trace *t, uint32_t file,
                                               uint32_t *node)
{
    *node = t->files[file].node;
    return t->files[file].reader;
}

const att_setting_t *att_trace_setting(const struct att_trace *t, const att_trace_event_t *event,
                                       bool *last)
{
    uint32_t low = 0, high = t->list_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const att_trace_list_t *l = &t->lists[middle];
        if (l->task < event->task || (l->task == event->task && l->list.txn < event->txn))
            low = middle + 1;
        else
            high = middle;
    }
    if (low == t->list_count || t->lists[low].task != event->task ||
        t->lists[low].list.txn != event->txn)
        return NULL;
    const att_stream_list_t *list = &t->lists[low].list;
    const att_setting_t *setting = NULL;
    for (uint32_t i = 0; i < list->count && list->entries[i].first_call <= event->call; i++) {
        setting = &list->entries[i].setting;
        *last = i + 1 == list->count;
    }
    return setting;
}
