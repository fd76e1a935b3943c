/*
 * bench_hook: what the hook costs a call on the host, driven through the exported tables of
 * libattune-nccl.so as NCCL 2.30 drives them.
 *
 *   settled  a segment with a committed winner (pair, channels and chunk), stamps off
 *   idle     no run: the hook is loaded and inert; what is left is calls through pointers
 *
 * settled_ns and idle_ns are getCollInfo, getChunkSize three times (low, middle and high channels)
 * and Coll start and stop. "with API events" adds what NCCL calls for a lone collective besides:
 * GroupApi start, two states and stop, CollApi start and stop. NCCL leaves out the events that the
 * mask does not ask for (all of them when idle, Coll when settled); they are driven all the same,
 * so the numbers are upper bounds. "through the preload" is an ncclAllReduce of the library, with
 * an NCCL behind it that does nothing but that (stub_nccl.c): the whole cost where the hook is
 * preloaded. Where there is a GPU, its driver is asked about captures, as in a job. The parts are
 * measured in loops of their own: they do not add up.
 *
 * "out of the caches": the same through the preload, with the events that the mask asks for alone,
 * and before each call other code and data take the processor's first and second cache, as NCCL
 * and the driver do in a job. What the same call takes without the hook is taken off.
 *
 * Times are processor time of the thread; a batch is 2000 calls; the median and the 95th percentile
 * are over batches (out of the caches: over 2000 calls). Usage: bench_hook LIBRARY STUB [JSON]
 */
#include "base/clock.h"
#include "base/fence.h"
#include "hook/abi/nccl_api.h"
#include "hook/abi/profiler_v6.h"
#include "hook/abi/tuner_v6.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CALLS = 2000, BATCHES = 501, CHUNK_CALLS = 3, LINE = 64 };
#define OTHER_DATA ((size_t)4 << 20)   /* more than a second cache */
#define OTHER_CODE ((size_t)128 << 10) /* more than a first cache of code */

typedef struct subject {
    const att_tuner_v6_t *tuner;
    const att_profiler_v6_t *profiler;
    void *tuner_context, *profiler_context;
    void *parent; /* of Coll events where CollApi events are left out: a handle of an old call */
    __typeof__(&ncclCommInitRank) comm_init;     /* the preload's */
    __typeof__(&ncclAllReduce) all_reduce, bare; /* the preload's, and the stub's own */
    int (**inside)(void);                        /* what the stub does in every call */
    int *mask;                                   /* the stub's */
    void *comm, *stream;                         /* NULL: no GPU */
    float table[ATT_PAIR_COUNT];
    att_event_v6_t group_event, api_event, coll_event; /* made once: that is NCCL's work */
} subject_t;

typedef struct figure {
    double median_ns, p95_ns;
} figure_t;

typedef struct figures {
    figure_t call, with_api, preloaded, cold, decide, chunk, coll, api;
    bool gpu;
} figures_t;

typedef void (*part_fn)(subject_t *s);

static subject_t subject; /* of this process */

static void quiet(int level, unsigned long subsystems, const char *file, int line,
                  const char *format, ...)
{
}

static void *start(subject_t *s, att_event_v6_t *event)
{
    void *handle = NULL;
    s->profiler->start_event(s->profiler_context, &handle, event);
    return handle;
}

static void stop(subject_t *s, void *handle)
{
    if (handle != NULL)
        s->profiler->stop_event(handle);
}

static void *api_begin(subject_t *s, void **group)
{
    *group = start(s, &s->group_event);
    if (*group != NULL)
        s->profiler->record_event_state(*group, 23, NULL);
    s->api_event.parent = *group;
    void *api = start(s, &s->api_event);
    stop(s, api);
    return api;
}

static void api_end(subject_t *s, void *group)
{
    if (group != NULL)
        s->profiler->record_event_state(group, 24, NULL);
    stop(s, group);
}

static void decide(subject_t *s)
{
    int channels = 0;
    s->tuner->get_coll_info(s->tuner_context, ATT_COLLECTIVE_ALL_REDUCE, 4 << 20, 1,
                            (float **)s->table, 7, 3, 0, &channels);
}

static void chunk(subject_t *s)
{
    for (int i = 0; i < CHUNK_CALLS; i++) {
        size_t bytes = 524288;
        s->tuner->get_chunk_size(s->tuner_context, ATT_COLLECTIVE_ALL_REDUCE, 1 << 18,
                                 ATT_ALGORITHM_RING, ATT_PROTOCOL_SIMPLE, 1, &bytes);
    }
}

static void coll_of(subject_t *s, void *api)
{
    s->coll_event.parent = api;
    stop(s, start(s, &s->coll_event));
}

static void coll(subject_t *s)
{
    coll_of(s, s->parent);
}

static void api(subject_t *s)
{
    void *group;
    api_begin(s, &group);
    api_end(s, group);
}

static void call(subject_t *s)
{
    decide(s);
    chunk(s);
    coll(s);
}

static void with_api(subject_t *s)
{
    void *group;
    void *parent = api_begin(s, &group);
    decide(s);
    chunk(s);
    coll_of(s, parent);
    api_end(s, group);
}

static int inside_call(void)
{
    with_api(&subject);
    return 0;
}

/* With what the mask asks for, as NCCL does it. */
static int inside_masked(void)
{
    subject_t *s = &subject;
    int mask = *s->mask;
    void *group = (mask & ATT_EVENT_GROUP_API) != 0 ? start(s, &s->group_event) : NULL;
    if (group != NULL)
        s->profiler->record_event_state(group, 23, NULL);
    s->api_event.parent = group;
    void *api = (mask & ATT_EVENT_COLL_API) != 0 ? start(s, &s->api_event) : NULL;
    stop(s, api);
    decide(s);
    chunk(s);
    if ((mask & ATT_EVENT_COLL) != 0)
        coll_of(s, api);
    api_end(s, group);
    return 0;
}

static int inside_nothing(void)
{
    return 0;
}

static void bare(subject_t *s)
{
    s->bare(NULL, NULL, 1 << 20, 7, 0, s->comm, s->stream);
}

static void preloaded(subject_t *s)
{
    s->all_reduce(NULL, NULL, 1 << 20, 7, 0, s->comm, s->stream);
}

/* Processor time of this thread: others that share the machine do not count. */
static uint64_t spent_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static figure_t measure(subject_t *s, part_fn part)
{
    double batches[BATCHES];
    for (int b = -3; b < BATCHES; b++) {
        uint64_t begin = spent_ns();
        for (int i = 0; i < CALLS; i++)
            part(s);
        if (b >= 0)
            batches[b] = (double)(spent_ns() - begin) / CALLS;
    }
    qsort(batches, BATCHES, sizeof batches[0], compare);
    return (figure_t){batches[BATCHES / 2], batches[BATCHES * 95 / 100]};
}

/* A return instruction at the start of each line; NULL where memory may not be made code. */
static unsigned char *make_code(void)
{
    unsigned char *code = mmap(NULL, OTHER_CODE, PROT_READ | PROT_WRITE | PROT_EXEC,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED)
        return NULL;
#if defined(__x86_64__)
    static const unsigned char back[] = {0xc3};
#elif defined(__aarch64__)
    static const unsigned char back[] = {0xc0, 0x03, 0x5f, 0xd6};
#else
#error "the return instruction of this processor"
#endif
    for (size_t at = 0; at < OTHER_CODE; at += LINE)
        memcpy(code + at, back, sizeof back);
    __builtin___clear_cache((char *)code, (char *)code + OTHER_CODE);
    return code;
}

static void evict(unsigned char *code, volatile unsigned char *data)
{
    for (size_t at = 0; at < OTHER_DATA; at += LINE)
        data[at]++;
    for (size_t at = 0; at < OTHER_CODE; at += LINE) {
        void (*line)(void);
        void *address = code + at;
        memcpy(&line, &address, sizeof line);
        line();
    }
}

/* Sorted times of CALLS calls; returns their median. */
static double after_others(subject_t *s, part_fn part, double *times)
{
    static unsigned char *code, *data;
    if (code == NULL && ((code = make_code()) == NULL || (data = malloc(OTHER_DATA)) == NULL)) {
        perror("bench_hook: no memory for other code");
        _exit(1);
    }
    for (int i = 0; i < CALLS; i++) {
        evict(code, data);
        uint64_t begin = att_clock_ns();
        part(s);
        times[i] = (double)(att_clock_ns() - begin);
    }
    qsort(times, CALLS, sizeof times[0], compare);
    return times[CALLS / 2];
}

/* Processor time of a thread takes a call into the kernel, which is as long as what is measured. */
static figure_t measure_cold(subject_t *s)
{
    static double times[CALLS];
    *s->inside = inside_nothing;
    double without = after_others(s, bare, times);
    *s->inside = inside_masked;
    double with = after_others(s, preloaded, times);
    figure_t figure = {with - without, times[CALLS * 95 / 100] - without};
    *s->inside = inside_call;
    return figure;
}

/* The driver's, as in a job; NULL where there is none. */
static void *make_stream(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL, *stream = NULL;
    int device = 0;
    if (driver == NULL)
        return NULL;
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
    int (*get)(int *, int) = (int (*)(int *, int))dlsym(driver, "cuDeviceGet");
    int (*retain)(void **, int) = (int (*)(void **, int))dlsym(driver, "cuDevicePrimaryCtxRetain");
    int (*set)(void *) = (int (*)(void *))dlsym(driver, "cuCtxSetCurrent");
    int (*make)(void **, unsigned) = (int (*)(void **, unsigned))dlsym(driver, "cuStreamCreate");
    if (init == NULL || get == NULL || retain == NULL || set == NULL || make == NULL ||
        init(0) != 0 || get(&device, 0) != 0 || retain(&context, device) != 0 ||
        set(context) != 0 || make(&stream, 1) != 0)
        return NULL;
    return stream;
}

/* NCCL's part of ncclCommInitRank. */
static int inside_init(void)
{
    subject_t *s = &subject;
    s->profiler->init(&s->profiler_context, 0xabc, s->mask, "bench", 1, 2, 0, quiet);
    return s->tuner->init(&s->tuner_context, 0xabc, 2, 1, quiet, NULL, NULL);
}

static bool load(subject_t *s, const char *path, const char *stub_path)
{
    void *stub = dlopen(stub_path, RTLD_NOW | RTLD_LOCAL);
    void *library = stub != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL) {
        fprintf(stderr, "bench_hook: %s\n", dlerror());
        return false;
    }
    s->stream = make_stream();
    s->tuner = dlsym(library, "ncclTunerPlugin_v6");
    s->profiler = dlsym(library, "ncclProfiler_v6");
    s->comm_init = (__typeof__(s->comm_init))dlsym(library, "ncclCommInitRank");
    s->all_reduce = (__typeof__(s->all_reduce))dlsym(library, "ncclAllReduce");
    s->bare = (__typeof__(s->bare))dlsym(stub, "pncclAllReduce");
    s->inside = dlsym(stub, "stub_inside");
    s->mask = dlsym(stub, "stub_mask");
    if (s->tuner == NULL || s->profiler == NULL || s->comm_init == NULL || s->all_reduce == NULL ||
        s->bare == NULL || s->inside == NULL || s->mask == NULL) {
        fprintf(stderr, "bench_hook: %s and %s are not the hook and the stub\n", path, stub_path);
        return false;
    }
    *s->inside = inside_init;
    s->comm_init(&s->comm, 2, (att_nccl_id_t){{0}}, 0);
    *s->inside = inside_call;
    for (int i = 0; i < ATT_PAIR_COUNT; i++)
        s->table[i] = i < 6 ? 50.0f + (float)i : -1.0f;
    return true;
}

static void make_events(subject_t *s)
{
    s->group_event.type = ATT_EVENT_GROUP_API;
    s->api_event.type = ATT_EVENT_COLL_API;
    s->api_event.coll_api.function = "AllReduce";
    s->api_event.coll_api.count = 1 << 20;
    s->api_event.coll_api.datatype = "ncclFloat32";
    s->coll_event.type = ATT_EVENT_COLL;
    s->coll_event.coll.function = "AllReduce";
    s->coll_event.coll.count = 1 << 20;
    s->coll_event.coll.datatype = "ncclFloat32";
    s->coll_event.coll.channels = 16;
    s->coll_event.coll.warps = 17;
    s->coll_event.coll.algorithm = "RING";
    s->coll_event.coll.protocol = "SIMPLE";
}

/* The agent's part: the winner holds from the next call on. */
static bool settle(subject_t *s, att_segment_memory_t *memory)
{
    decide(s);
    if (atomic_load(&memory->header.lane_count) != 1) {
        fprintf(stderr, "bench_hook: the hook did not attach\n");
        return false;
    }
    uint32_t lane = 0;
    att_schedule_t schedule = {.txn = 1, .count = 1};
    schedule.entries[0] = (att_schedule_entry_t){1, ATT_SETTING_KEEP};
    schedule.entries[0].setting.algorithm = ATT_ALGORITHM_RING;
    schedule.entries[0].setting.protocol = ATT_PROTOCOL_SIMPLE;
    schedule.entries[0].setting.channels = 8;
    schedule.entries[0].setting.chunk_bytes = 131072;
    att_segment_task_t *task = &memory->tasks[0];
    return att_home_open(task, 1) == ATT_OK &&
           att_vote_prepare(memory, task, &lane, 1, &schedule) == ATT_VOTE_YES &&
           att_home_decide(task, 1, ATT_HOME_COMMITTED) == ATT_HOME_COMMITTED;
}

/* In a child of its own: a process attaches once. */
static bool run(const char *path, const char *stub, att_segment_memory_t *memory, figures_t *out)
{
    pid_t child = fork();
    if (child == 0) {
        if (memory == NULL)
            unsetenv("ATTUNE_RUN_ID");
        make_events(&subject);
        if (!load(&subject, path, stub) || (memory != NULL && !settle(&subject, memory)))
            _exit(1);
        void *group;
        subject.parent = api_begin(&subject, &group);
        api_end(&subject, group);
        out->call = measure(&subject, call);
        out->with_api = measure(&subject, with_api);
        out->preloaded = measure(&subject, preloaded);
        out->cold = measure_cold(&subject);
        out->gpu = subject.stream != NULL;
        out->api = measure(&subject, api);
        out->decide = measure(&subject, decide);
        out->chunk = measure(&subject, chunk);
        out->coll = measure(&subject, coll);
        _exit(0);
    }
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static void print_row(const char *name, figure_t settled, figure_t idle)
{
    printf("%-34s %10.1f %10.1f %10.1f %10.1f\n", name, settled.median_ns, settled.p95_ns,
           idle.median_ns, idle.p95_ns);
}

static void print(const figures_t *settled, const figures_t *idle)
{
    printf(
        "# attune %s, host cost of the hook a call; target: first row, settled <= 50 ns\n"
        "# %d batches of %d calls; upper bounds: events that the mask leaves out are driven too\n"
        "# %s\n"
        "%-34s %10s %10s %10s %10s\n",
        ATTUNE_VERSION, BATCHES, CALLS,
        settled->gpu ? "the GPU's driver tells the preload what is captured"
                     : "no GPU here: the preload does not ask a driver what is captured",
        "", "settled", "p95", "idle", "p95");
    printf("%-34s %10s %10s %10s %10s\n", "", "(ns)", "(ns)", "(ns)", "(ns)");
    print_row("getCollInfo, getChunkSize, Coll", settled->call, idle->call);
    print_row("the same with API events", settled->with_api, idle->with_api);
    print_row("that, through the preload", settled->preloaded, idle->preloaded);
    print_row("and out of the caches", settled->cold, idle->cold);
    print_row("  getCollInfo", settled->decide, idle->decide);
    print_row("  getChunkSize, 3 times", settled->chunk, idle->chunk);
    print_row("  Coll start, stop", settled->coll, idle->coll);
    print_row("  GroupApi and CollApi events", settled->api, idle->api);
}

static bool write_json(const char *path, const figures_t *settled, const figures_t *idle)
{
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        perror(path);
        return false;
    }
    fprintf(file,
            "{\"version\": 1, \"attune\": \"%s\", \"unit\": \"ns per call\", \"batches\": %d, "
            "\"calls_per_batch\": %d,\n"
            " \"settled_ns\": %.2f, \"idle_ns\": %.2f, \"settled_ns_p95\": %.2f, "
            "\"idle_ns_p95\": %.2f,\n"
            " \"settled_with_api_ns\": %.2f, \"idle_with_api_ns\": %.2f,\n"
            " \"settled_preloaded_ns\": %.2f, \"idle_preloaded_ns\": %.2f, \"gpu\": %s,\n"
            " \"settled_cold_ns\": %.2f, \"idle_cold_ns\": %.2f,\n"
            " \"settled_parts_ns\": {\"getCollInfo\": %.2f, \"getChunkSize_x3\": %.2f, "
            "\"Coll\": %.2f, \"Api\": %.2f}}\n",
            ATTUNE_VERSION, BATCHES, CALLS, settled->call.median_ns, idle->call.median_ns,
            settled->call.p95_ns, idle->call.p95_ns, settled->with_api.median_ns,
            idle->with_api.median_ns, settled->preloaded.median_ns, idle->preloaded.median_ns,
            settled->gpu ? "true" : "false", settled->cold.median_ns, idle->cold.median_ns,
            settled->decide.median_ns, settled->chunk.median_ns, settled->coll.median_ns,
            settled->api.median_ns);
    return fclose(file) == 0;
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: bench_hook LIBRARY STUB [JSON]\n");
        return ATT_EUSAGE;
    }
    char directory[] = "/dev/shm/attune-bench-XXXXXX";
    figures_t *figures =
        mmap(NULL, 2 * sizeof *figures, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (mkdtemp(directory) == NULL || figures == MAP_FAILED) {
        perror("bench_hook");
        return ATT_ESYSTEM;
    }
    setenv("ATTUNE_SHM_DIR", directory, 1);
    setenv("ATTUNE_RUN_ID", "bench", 1);
    unsetenv("SLURM_JOB_ID");
    struct att_segment *segment;
    att_error_t error = {""};
    att_segment_name_t name = {0};
    int status = ATT_EFAIL;
    if (att_segment_open(&name, ATT_SEGMENT_AGENT, &segment, &error) != ATT_OK) {
        fprintf(stderr, "bench_hook: %s\n", error.text);
        goto remove_directory;
    }
    if (run(argv[1], argv[2], att_segment_memory(segment), &figures[0]) &&
        run(argv[1], argv[2], NULL, &figures[1])) {
        print(&figures[0], &figures[1]);
        if (argc < 4 || write_json(argv[3], &figures[0], &figures[1]))
            status = ATT_OK;
    }
    att_segment_close(segment);
remove_directory:
    rmdir(directory);
    return status;
}
