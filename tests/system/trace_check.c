/*
 * trace_check FILE...: is each file a trace that viewers take without complaint? Strict:
 *   - the file is one JSON document with the header that docs/trace.md names, one event a line
 *   - every event has ph, pid, tid, ts as its kind demands, and no kind is unknown
 *   - time never goes back from one event to the next
 *   - complete events (X) last and nest on their track
 *   - asynchronous events begin once and end once, by category and id
 *   - a flow begins once, ends once, later; each of its points lies on a complete event
 *   - every process and every used track has a name, once
 *   - collectives carry Kineto's fields, with sane values
 * Prints one line a file; exit status 1 at the first fault, which is said with its line.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define DEPTH 64

/* What is known of one track: the complete events that are open. */
typedef struct track {
    double from[DEPTH], to[DEPTH];
    int depth;
} track_t;

typedef struct check {
    const char *path;
    uint64_t line;
    double last_ts;
    json_t *tracks;              /* "pid.tid" -> address of a track_t */
    json_t *async;               /* open ones */
    json_t *flows;               /* id -> 1 begun, 2 ended */
    json_t *processes, *threads; /* names */
    json_t *used;                /* "pid.tid" that need a name */
    uint64_t calls, flow_count, async_count, marks, spans, counters;
} check_t;

static void fault(const check_t *c, const char *what, json_t *event)
{
    char *text = event != NULL ? json_dumps(event, JSON_COMPACT) : NULL;
    fprintf(stderr, "%s:%" PRIu64 ": %s%s%s\n", c->path, c->line, what, text != NULL ? ": " : "",
            text != NULL ? text : "");
    exit(1);
}

static double number(const check_t *c, json_t *event, const char *key)
{
    json_t *value = json_object_get(event, key);
    if (!json_is_number(value))
        fault(c, key, event);
    return json_number_value(value);
}

static const char *text(const check_t *c, json_t *event, const char *key)
{
    const char *value = json_string_value(json_object_get(event, key));
    if (value == NULL)
        fault(c, key, event);
    return value;
}

static track_t *track_of(check_t *c, const char *key)
{
    json_t *known = json_object_get(c->tracks, key);
    if (known != NULL)
        return (track_t *)(intptr_t)json_integer_value(known);
    track_t *track = calloc(1, sizeof *track);
    json_object_set_new(c->tracks, key, json_integer((json_int_t)(intptr_t)track));
    return track;
}

static void check_call(const check_t *c, json_t *event)
{
    json_t *args = json_object_get(event, "args");
    if (strncmp(text(c, event, "name"), "ncclDevKernel_", 14) != 0)
        fault(c, "a collective's name", event);
    text(c, args, "Collective name");
    text(c, args, "dtype");
    text(c, args, "Process Group Name");
    text(c, args, "setting");
    text(c, args, "in force");
    double size = number(c, args, "Group size");
    if (size < 2 || number(c, args, "Rank") >= size || number(c, args, "Seq") < 0 ||
        number(c, args, "In msg nelems") < 0 || number(c, args, "Out msg nelems") < 0 ||
        number(c, args, "stream") < 1 || number(c, args, "call") < 0)
        fault(c, "a collective's fields", event);
}

static void check_complete(check_t *c, json_t *event, track_t *track, double ts)
{
    double dur = number(c, event, "dur");
    /* Microseconds with three decimals: a thousandth is rounding, not overlap. */
    const double slack = 0.0015;
    if (dur < 0)
        fault(c, "a negative duration", event);
    while (track->depth > 0 && track->to[track->depth - 1] <= ts + slack)
        track->depth--;
    if (track->depth > 0 && ts + dur > track->to[track->depth - 1] + slack)
        fault(c, "it does not nest in the event before on its track", event);
    if (track->depth == DEPTH)
        fault(c, "too deep", event);
    track->from[track->depth] = ts;
    track->to[track->depth++] = ts + dur;
}

static void check_async(check_t *c, json_t *event, const char *phase, int pid)
{
    char key[256];
    json_t *id = json_object_get(event, "id");
    char *id_text = json_dumps(id, JSON_ENCODE_ANY);
    snprintf(key, sizeof key, "%d/%s/%s", pid, text(c, event, "cat"), id_text ? id_text : "");
    free(id_text);
    bool open = json_object_get(c->async, key) != NULL;
    if (id == NULL || open == (phase[0] == 'b'))
        fault(c, "an asynchronous event that begins or ends twice", event);
    if (phase[0] == 'b')
        json_object_set_new(c->async, key, json_true());
    else
        json_object_del(c->async, key);
    c->async_count += phase[0] == 'b';
}

static void check_flow(check_t *c, json_t *event, const char *phase, const track_t *track,
                       double ts)
{
    const char *id = text(c, event, "id");
    json_int_t state = json_integer_value(json_object_get(c->flows, id));
    if ((phase[0] == 's' && state != 0) || (phase[0] != 's' && state != 1))
        fault(c, "a flow out of order", event);
    if (phase[0] == 'f' && strcmp(text(c, event, "bp"), "e") != 0)
        fault(c, "a flow's end without bp", event);
    bool on_event = false;
    for (int i = 0; i < track->depth; i++)
        on_event |= track->from[i] <= ts + 0.0015 && track->to[i] >= ts;
    if (!on_event)
        fault(c, "a flow that touches no event", event);
    json_object_set_new(c->flows, id, json_integer(phase[0] == 'f' ? 2 : 1));
    c->flow_count += phase[0] == 's';
}

static void check_metadata(check_t *c, json_t *event, const char *key, int pid)
{
    const char *name = text(c, event, "name");
    char process[32];
    snprintf(process, sizeof process, "%d", pid);
    json_t *args = json_object_get(event, "args");
    if (strcmp(name, "process_name") == 0) {
        text(c, args, "name");
        if (json_object_get(c->processes, process) != NULL)
            fault(c, "a process that is named twice", event);
        json_object_set_new(c->processes, process, json_true());
    } else if (strcmp(name, "thread_name") == 0) {
        text(c, args, "name");
        if (json_object_get(c->threads, key) != NULL)
            fault(c, "a track that is named twice", event);
        json_object_set_new(c->threads, key, json_true());
    } else if (strcmp(name, "process_sort_index") == 0) {
        number(c, args, "sort_index");
    } else {
        fault(c, "unknown metadata", event);
    }
}

static void check_event(check_t *c, json_t *event)
{
    const char *phase = text(c, event, "ph");
    char key[64];
    int pid = (int)number(c, event, "pid"), tid = (int)number(c, event, "tid");
    snprintf(key, sizeof key, "%d.%d", pid, tid);
    if (strlen(phase) != 1 || pid < 0 || tid < 0)
        fault(c, "ph, pid or tid", event);
    if (phase[0] == 'M') {
        check_metadata(c, event, key, pid);
        return;
    }
    double ts = number(c, event, "ts");
    if (ts < c->last_ts)
        fault(c, "time goes back", event);
    c->last_ts = ts;
    text(c, event, "name");
    track_t *track = track_of(c, key);
    switch (phase[0]) {
    case 'X':
        check_complete(c, event, track, ts);
        c->calls += strcmp(text(c, event, "cat"), "kernel") == 0;
        c->spans += strcmp(text(c, event, "cat"), "kernel") != 0;
        if (strcmp(text(c, event, "cat"), "kernel") == 0)
            check_call(c, event);
        break;
    case 'b':
        check_call(c, event);
        check_async(c, event, phase, pid);
        break;
    case 'e':
        check_async(c, event, phase, pid);
        break;
    case 's':
    case 't':
    case 'f':
        check_flow(c, event, phase, track, ts);
        break;
    case 'i':
        if (strcmp(text(c, event, "s"), "t") != 0)
            fault(c, "the scope of an instant", event);
        c->marks++;
        break;
    case 'C':
        /* Bus bandwidth of a communicator, or what a node's counters say. */
        number(c, json_object_get(event, "args"),
               strncmp(text(c, event, "name"), "bus bandwidth ", 14) == 0 ? "GB/s" : "value");
        c->counters++;
        return; /* counters belong to the process */
    default:
        fault(c, "unknown kind", event);
    }
    json_object_set_new(c->used, key, json_integer(pid));
}

static void check_end(check_t *c)
{
    const char *key;
    json_t *value;
    if (json_object_size(c->async) != 0)
        fault(c, "an asynchronous event that never ends", NULL);
    json_object_foreach(c->flows, key, value) if (json_integer_value(value) != 2)
    {
        fprintf(stderr, "flow %s\n", key);
        fault(c, "a flow that never ends", NULL);
    }
    json_object_foreach(c->used, key, value)
    {
        char process[32];
        snprintf(process, sizeof process, "%d", (int)json_integer_value(value));
        /* Track 0 of "attune" holds the list of parts and has the process's name. */
        if (json_object_get(c->processes, process) == NULL ||
            (json_object_get(c->threads, key) == NULL && strstr(key, "1000000.0") == NULL)) {
            fprintf(stderr, "track %s\n", key);
            fault(c, "a process or track without a name", NULL);
        }
    }
}

static void check_header(check_t *c, char *header)
{
    json_error_t error;
    strcat(header, "]}");
    json_t *root = json_loads(header, JSON_REJECT_DUPLICATES, &error);
    json_t *about = json_object_get(root, "attune");
    if (root == NULL || !json_is_object(about) ||
        json_integer_value(json_object_get(about, "version")) != 1 ||
        json_string_value(json_object_get(about, "units")) == NULL ||
        !json_is_array(json_object_get(about, "clocks")) ||
        json_array_size(json_object_get(about, "clocks")) == 0 ||
        !json_is_integer(json_object_get(json_object_get(root, "distributedInfo"), "world_size")))
        fault(c, "the header", root);
    json_decref(root);
}

static void check_file(const char *path)
{
    check_t c = {.path = path,
                 .last_ts = -1e300,
                 .tracks = json_object(),
                 .async = json_object(),
                 .flows = json_object(),
                 .processes = json_object(),
                 .threads = json_object(),
                 .used = json_object()};
    gzFile file = gzopen(path, "rb");
    static char line[1 << 20], header[1 << 20];
    bool events = false, ended = false;
    if (file == NULL)
        fault(&c, "cannot be read", NULL);
    while (gzgets(file, line, sizeof line - 4) != NULL) {
        c.line++;
        if (!events) {
            strcat(header, line);
            events = strcmp(line, "\"traceEvents\":[\n") == 0;
            if (events)
                check_header(&c, header);
            continue;
        }
        if (strcmp(line, "]}\n") == 0) {
            ended = true;
            continue;
        }
        size_t length = strcspn(line, "\n");
        if (length > 0 && line[length - 1] == ',')
            line[--length] = '\0';
        json_t *event = ended ? NULL : json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL);
        if (!json_is_object(event))
            fault(&c, "no event", NULL);
        check_event(&c, event);
        json_decref(event);
    }
    int status;
    gzerror(file, &status);
    if (!ended || (status != Z_OK && status != Z_STREAM_END))
        fault(&c, "the file has no end", NULL);
    check_end(&c);
    gzclose(file);
    header[0] = '\0';
    printf("%s: good: %" PRIu64 " calls, %" PRIu64 " flows, %" PRIu64 " asynchronous, %" PRIu64
           " settings, %" PRIu64 " instants, %" PRIu64 " counters\n",
           path, c.calls, c.flow_count, c.async_count, c.spans, c.marks, c.counters);
    const char *key;
    json_t *value;
    json_object_foreach(c.tracks, key, value) free((track_t *)(intptr_t)json_integer_value(value));
    json_decref(c.tracks);
    json_decref(c.async);
    json_decref(c.flows);
    json_decref(c.processes);
    json_decref(c.threads);
    json_decref(c.used);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: trace_check FILE...\n");
        return 2;
    }
    for (int i = 1; i < argc; i++)
        check_file(argv[i]);
    return 0;
}
