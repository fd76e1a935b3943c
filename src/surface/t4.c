#include "surface/t4.h"

#include "base/names.h"
#include "surface/reader.h"

#include <stdlib.h>
#include <string.h>

#define TIME_MAX_US  1e12
#define CHANNELS_MAX 1024
#define THREADS_MAX  1024
#define CHUNK_MAX    (1 << 30)
#define RESULTS_MAX  1000000

static const char collective_words[] = "broadcast, reduce, allgather, reducescatter, allreduce";
static const char algorithm_words[] = "keep, tree, ring, collnet_direct, collnet_chain, nvls, "
                                      "nvls_tree, pat";
static const char protocol_words[] = "keep, ll, ll128, simple";
static const char transport_words[] = "keep, p2p, shm, net";

/* The samples of one record, reused for the next. */
typedef struct samples {
    double *values;
    size_t room;
} samples_t;

int att_t4_is(const json_t *document)
{
    return json_object_get(document, "results") != NULL;
}

static int keep_or(const char *word, int (*parse)(const char *word))
{
    int number = strcmp(word, "keep") == 0 ? 0 : parse(word) + 1;
    return number < 0 ? -1 : number;
}

static int parse_algorithm(const char *word)
{
    return keep_or(word, att_algorithm_parse);
}

static int parse_protocol(const char *word)
{
    return keep_or(word, att_protocol_parse);
}

static int parse_transport(const char *word)
{
    return keep_or(word, att_transport_parse);
}

/* "keep", 0 or a number up to `most`; kept when it is absent. */
static uint32_t read_knob(att_reader_t *reader, json_t *object, const char *key, int64_t most)
{
    json_t *value = json_object_get(object, key);
    if (value == NULL || (json_is_string(value) && strcmp(json_string_value(value), "keep") == 0))
        return 0;
    return (uint32_t)att_reader_integer(reader, object, key, 0, most);
}

static att_setting_t read_setting(att_reader_t *reader, json_t *object)
{
    att_setting_t s = ATT_SETTING_KEEP;
    s.algorithm =
        (int8_t)(att_reader_word(reader, object, "algorithm", parse_algorithm, algorithm_words) -
                 1);
    s.protocol =
        (int8_t)(att_reader_word(reader, object, "protocol", parse_protocol, protocol_words) - 1);
    if (json_object_get(object, "transport") != NULL)
        s.transport = (int8_t)(att_reader_word(reader, object, "transport", parse_transport,
                                               transport_words) -
                               1);
    s.channels = (uint16_t)read_knob(reader, object, "channels", CHANNELS_MAX);
    s.threads = (uint16_t)read_knob(reader, object, "threads", THREADS_MAX);
    s.chunk_bytes = read_knob(reader, object, "chunk", CHUNK_MAX);
    if (reader->status == ATT_OK && (s.algorithm < 0) != (s.protocol < 0))
        att_reader_fail(reader, "protocol", "kept with the algorithm, or not at all");
    if (reader->status == ATT_OK && s.algorithm < 0 && !att_setting_is_keep(s))
        att_reader_fail(reader, "algorithm", "NCCL's own choice has every knob kept");
    return s;
}

/* Microseconds in one unit; 0 for what is no unit of time. */
static double unit_us(const char *unit)
{
    static const struct {
        const char *name;
        double us;
    } units[] = {{"us", 1},   {"microseconds", 1},   {"ns", 1e-3}, {"nanoseconds", 1e-3},
                 {"ms", 1e3}, {"milliseconds", 1e3}, {"s", 1e6},   {"seconds", 1e6}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(unit, units[i].name) == 0)
            return units[i].us;
    return 0;
}

static double read_unit(att_reader_t *reader, json_t *object, const char *key)
{
    const char *unit = att_reader_text(reader, object, key);
    double us = unit != NULL ? unit_us(unit) : 0;
    if (unit != NULL && us == 0) /* NOLINT: exact */
        att_reader_fail(reader, key, "no unit of time; expected us, ms, s or ns");
    return us;
}

/* The measurement of that name, NULL when there is none. */
static json_t *measurement(att_reader_t *reader, json_t *list, const char *name, size_t *index)
{
    size_t i;
    json_t *element, *found = NULL;
    json_array_foreach(list, i, element)
    {
        const char *word = json_string_value(json_object_get(element, "name"));
        if (word == NULL || strcmp(word, name) != 0)
            continue;
        if (found != NULL)
            att_reader_fail(reader, NULL, "two measurements are called '%s'", name);
        found = element;
        *index = i;
    }
    return found;
}

/* Append an array of durations, in microseconds, behind `used` others. */
static uint32_t read_samples(att_reader_t *reader, samples_t *samples, size_t used, json_t *array,
                             double us)
{
    size_t n = json_array_size(array);
    if (reader->status != ATT_OK || n == 0)
        return 0;
    if (n > ATT_T4_SAMPLES_MAX) {
        att_reader_fail(reader, NULL, "more than %d samples", ATT_T4_SAMPLES_MAX);
        return 0;
    }
    if (used + n > samples->room) {
        size_t room = 2 * (used + n);
        double *larger = realloc(samples->values, room * sizeof *larger);
        if (larger == NULL) {
            reader->status = att_fail(reader->error, ATT_ENOMEM, "no memory for samples");
            return 0;
        }
        samples->values = larger;
        samples->room = room;
    }
    for (size_t i = 0; i < n; i++) {
        json_t *value = json_array_get(array, i);
        double number = json_number_value(value) * us;
        if (!json_is_number(value) || !(number > 0 && number <= TIME_MAX_US)) {
            size_t mark = att_reader_enter_index(reader, i);
            att_reader_fail(reader, NULL, "expected a duration above 0");
            att_reader_leave(reader, mark);
            return 0;
        }
        samples->values[used + i] = number;
    }
    return (uint32_t)n;
}

/* The duration that is called `name`, in microseconds; 0 when there is none. *us: its unit. */
static double read_time(att_reader_t *reader, json_t *list, const char *name, double *us)
{
    size_t index = 0;
    json_t *element = measurement(reader, list, name, &index);
    if (element == NULL)
        return 0;
    size_t mark = att_reader_enter(reader, "measurements");
    size_t inner = att_reader_enter_index(reader, index);
    *us = read_unit(reader, element, "unit");
    double value = att_reader_number(reader, element, "value", 0, TIME_MAX_US) * *us;
    if (reader->status == ATT_OK && !(value > 0 && value <= TIME_MAX_US))
        att_reader_fail(reader, "value", "expected a duration above 0");
    att_reader_leave(reader, inner);
    att_reader_leave(reader, mark);
    return value;
}

static uint32_t read_again(att_reader_t *reader, samples_t *samples, size_t used, json_t *list)
{
    size_t index = 0;
    json_t *element = measurement(reader, list, "again", &index);
    if (element == NULL)
        return 0;
    size_t mark = att_reader_enter(reader, "measurements");
    size_t inner = att_reader_enter_index(reader, index);
    double us = read_unit(reader, element, "unit");
    json_t *array = att_reader_array(reader, element, "value", 0, ATT_T4_SAMPLES_MAX);
    uint32_t count = read_samples(reader, samples, used, array, us);
    att_reader_leave(reader, inner);
    att_reader_leave(reader, mark);
    return count;
}

/* One element of "results". What was not valid there (compile, runtime, ...) is no setting here;
 * a timeout with a measurement "time_at_least" is one that takes as long or longer. */
static void read_result(att_reader_t *reader, json_t *result, uint32_t number, samples_t *samples,
                        att_table_task_t *task)
{
    json_t *configuration = att_reader_object(reader, result, "configuration");
    size_t mark = att_reader_enter(reader, "configuration");
    att_table_record_t record = {.number = number};
    record.setting = read_setting(reader, configuration);
    att_reader_leave(reader, mark);

    const char *invalidity = att_reader_text(reader, result, "invalidity");
    if (reader->status != ATT_OK)
        return;
    int valid = strcmp(invalidity, "correct") == 0, timeout = strcmp(invalidity, "timeout") == 0;
    json_t *measurements = json_object_get(result, "measurements");
    if (measurements != NULL)
        measurements = att_reader_array(reader, result, "measurements", 0, 1000);
    double us = 1e3; /* Kernel Tuner's runtimes are milliseconds */
    if (timeout)
        record.time_us = read_time(reader, measurements, "time_at_least", &us);
    if (!valid && record.time_us <= 0)
        return;
    record.at_least = timeout;
    if (valid) {
        record.time_us = read_time(reader, measurements, "time", &us);
        json_t *times = att_reader_object(reader, result, "times");
        mark = att_reader_enter(reader, "times");
        json_t *runtimes = att_reader_array(reader, times, "runtimes", 0, ATT_T4_SAMPLES_MAX);
        size_t inner = att_reader_enter(reader, "runtimes");
        record.sample_count = read_samples(reader, samples, 0, runtimes, us);
        att_reader_leave(reader, inner);
        att_reader_leave(reader, mark);
        record.again_count = read_again(reader, samples, record.sample_count, measurements);
        record.samples_us = samples->values;
        record.again_us = samples->values != NULL ? samples->values + record.sample_count : NULL;
    }
    if (reader->status != ATT_OK)
        return;
    if (record.time_us <= 0 && record.sample_count + record.again_count == 0)
        att_reader_fail(reader, NULL, "no duration: neither runtimes nor a measurement \"time\"");
    else if (att_table_add(task, &record, reader->error) != ATT_OK)
        reader->status = -ATT_ENOMEM;
}

static void read_costs(att_reader_t *reader, json_t *metadata, att_table_task_t *task)
{
    static const char *const known[] = {"algorithm", "protocol", "cost_us", NULL};
    if (task == NULL || json_object_get(metadata, "costs") == NULL)
        return;
    json_t *list = att_reader_array(reader, metadata, "costs", 0, ATT_PAIR_COUNT);
    size_t mark = att_reader_enter(reader, "costs");
    for (size_t i = 0; i < json_array_size(list) && reader->status == ATT_OK; i++) {
        size_t inner = att_reader_enter_index(reader, i);
        json_t *cost = att_reader_element(reader, list, i);
        att_reader_known(reader, cost, known);
        int a = att_reader_word(reader, cost, "algorithm", att_algorithm_parse, algorithm_words);
        int p = att_reader_word(reader, cost, "protocol", att_protocol_parse, protocol_words);
        double us = att_reader_number(reader, cost, "cost_us", 0, TIME_MAX_US);
        if (reader->status == ATT_OK)
            task->cost_us[a * ATT_PROTOCOL_COUNT + p] = (float)us;
        att_reader_leave(reader, inner);
    }
    att_reader_leave(reader, mark);
}

static att_table_task_t *read_task(att_reader_t *reader, json_t *metadata,
                                   struct att_surface *surface)
{
    static const char *const known[] = {"collective", "bytes", "load", "type", NULL};
    json_t *task = att_reader_object(reader, metadata, "task");
    size_t mark = att_reader_enter(reader, "task");
    att_reader_known(reader, task, known);
    int collective =
        att_reader_word(reader, task, "collective", att_collective_parse, collective_words);
    int64_t bytes = att_reader_integer(reader, task, "bytes", 1, INT64_MAX);
    surface->info.loads[0] = att_reader_text(reader, task, "load");
    surface->info.load_count = 1;
    att_reader_leave(reader, mark);
    if (reader->status != ATT_OK)
        return NULL;
    att_table_task_t *made =
        att_table_task(&surface->table, collective, (uint64_t)bytes, reader->error);
    if (made == NULL)
        reader->status = -ATT_EINPUT;
    return made;
}

static void read_machine(att_reader_t *reader, json_t *metadata, att_surface_info_t *info)
{
    json_t *machine = att_reader_object(reader, metadata, "machine");
    size_t mark = att_reader_enter(reader, "machine");
    att_reader_text(reader, machine, "device");
    info->ranks = (int)att_reader_integer(reader, machine, "ranks", 1, 65536);
    info->nodes = (int)att_reader_integer(reader, machine, "nodes", 1, 65536);
    info->device_units = (int)att_reader_integer(reader, machine, "device_units", 0, 4096);
    if (reader->status == ATT_OK && info->nodes > info->ranks)
        att_reader_fail(reader, "nodes", "more nodes than ranks");
    att_reader_leave(reader, mark);
}

static att_table_task_t *read_metadata(att_reader_t *reader, struct att_surface *surface)
{
    static const char *const known[] = {"version", "name",    "description", "source",     "units",
                                        "task",    "machine", "default",     "provenance", "costs",
                                        "note",    "state",   NULL};
    json_t *metadata = json_object_get(surface->document, "metadata");
    if (metadata == NULL) {
        att_reader_fail(reader, "metadata",
                        "missing: T4 results alone do not say which collective was measured");
        return NULL;
    }
    metadata = att_reader_object(reader, surface->document, "metadata");
    size_t mark = att_reader_enter(reader, "metadata");
    json_t *version = json_object_get(metadata, "version");
    if (json_is_integer(version) && json_integer_value(version) != ATT_T4_METADATA_VERSION)
        reader->status = att_fail(reader->error, ATT_EVERSION,
                                  "/metadata/version: this attune reads version %d, not %lld",
                                  ATT_T4_METADATA_VERSION, (long long)json_integer_value(version));
    att_reader_integer(reader, metadata, "version", 1, 1);
    att_reader_known(reader, metadata, known);
    surface->info.name = att_reader_text(reader, metadata, "name");
    surface->info.description = att_reader_text(reader, metadata, "description");
    surface->info.source = att_reader_text(reader, metadata, "source");
    read_machine(reader, metadata, &surface->info);
    att_table_task_t *task = read_task(reader, metadata, surface);
    read_costs(reader, metadata, task);
    if (task != NULL && json_object_get(metadata, "default") != NULL) {
        json_t *native = att_reader_object(reader, metadata, "default");
        size_t inner = att_reader_enter(reader, "default");
        task->native = read_setting(reader, native);
        att_reader_leave(reader, inner);
    }
    att_reader_leave(reader, mark);
    return reader->status == ATT_OK ? task : NULL;
}

int att_t4_read(struct att_surface *surface, att_error_t *error)
{
    att_reader_t reader = {.error = error};
    samples_t samples = {NULL, 0};
    att_reader_text(&reader, surface->document, "schema_version");
    att_table_task_t *task = read_metadata(&reader, surface);
    json_t *results = att_reader_array(&reader, surface->document, "results", 1, RESULTS_MAX);
    size_t mark = att_reader_enter(&reader, "results");
    for (size_t i = 0; i < json_array_size(results) && reader.status == ATT_OK; i++) {
        size_t inner = att_reader_enter_index(&reader, i);
        json_t *result = att_reader_element(&reader, results, i);
        if (result != NULL)
            read_result(&reader, result, (uint32_t)i, &samples, task);
        att_reader_leave(&reader, inner);
    }
    att_reader_leave(&reader, mark);
    free(samples.values);
    if (reader.status == ATT_OK && task->count == 0)
        att_reader_fail(&reader, "results", "none of them is valid");
    if (reader.status != ATT_OK)
        return reader.status;
    return att_table_finish(&surface->table, "/results element", error);
}
