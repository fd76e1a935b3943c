#include "control/exporter.h"

#include "base/clock.h"
#include "base/log.h"
#include "profile/metrics.h"
#include "profile/metrics_server.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHARE 100u /* of the time that making the text took is left before it is made again */

#define SLOTS_A_TASK 4

enum { OWN, INSPECTOR, PAGES };
_Static_assert(PAGES == ATT_METRICS_PAGES, "one page a file");

typedef void (*print_fn)(const att_metrics_t *metrics, FILE *out);

typedef struct page {
    size_t length;
    char bytes[];
} page_t;

struct att_exporter {
    const att_config_t *config;
    struct att_writer *writer;
    struct att_metrics_server *server; /* NULL: no port */
    char path[PAGES][PATH_MAX];        /* "" = no file */
    char host[64];
    uint64_t next_ns;
    att_metrics_task_t *tasks;
    uint32_t *slots; /* SLOTS_A_TASK times capacity: where a task is in them, + 1 */
    uint32_t capacity;
    _Atomic uint64_t took_ns[PAGES]; /* to make the text, by the writer */
    page_t *_Atomic made[PAGES];     /* by the writer, for the port; NULL: nothing new */
};

/* What the text of a page is made of. */
typedef struct snapshot {
    struct att_exporter *exporter;
    int page;
    att_metrics_t metrics; /* its device and tasks are these: */
    char device[ATT_DEVICE_TEXT];
    att_metrics_task_t tasks[];
} snapshot_t;

static const print_fn prints[PAGES] = {att_metrics_print, att_metrics_print_inspector};

static int name_files(struct att_exporter *e, att_error_t *error)
{
    const att_config_t *c = e->config;
    int length = 0;
    if (c->metrics_file[0] != '\0')
        length = snprintf(e->path[OWN], PATH_MAX, "%s", c->metrics_file);
    else if (c->run_dir[0] != '\0')
        length = snprintf(e->path[OWN], PATH_MAX, "%s/metrics.prom", c->run_dir);
    if (length == 0)
        return ATT_OK;
    const char *slash = strrchr(e->path[OWN], '/');
    int folder = slash != NULL ? (int)(slash - e->path[OWN]) + 1 : 0;
    if (length >= PATH_MAX ||
        snprintf(e->path[INSPECTOR], PATH_MAX, "%.*snccl_inspector_metrics_%s.prom", folder,
                 e->path[OWN], c->run_id[0] != '\0' ? c->run_id : "attune") >= PATH_MAX)
        return att_fail(error, ATT_EUSAGE, "--metrics-file: the path is too long");
    struct stat found;
    bool exists = lstat(e->path[OWN], &found) == 0;
    if (exists && S_ISLNK(found.st_mode))
        return att_fail(error, ATT_EUSAGE,
                        "--metrics-file: %.300s is a link, which a file would replace: name the "
                        "file that it leads to",
                        e->path[OWN]);
    if (exists && S_ISCHR(found.st_mode))
        e->path[INSPECTOR][0] = '\0'; /* nothing is put into the folder of devices */
    /* A folder that cannot be written is known now, not when the job runs. */
    return c->metrics_file[0] != '\0' ? att_metrics_replace(e->path[OWN], "", 0, error) : ATT_OK;
}

int att_exporter_create(const att_config_t *config, struct att_writer *writer,
                        struct att_exporter **out, att_error_t *error)
{
    static const char *const paths[PAGES] = {"/metrics", "/inspector"};
    struct att_exporter *e = calloc(1, sizeof *e);
    if (e == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory");
    e->config = config;
    e->writer = writer;
    gethostname(e->host, sizeof e->host - 1);
    int status = name_files(e, error);
    if (status == ATT_OK && config->metrics_port != 0)
        status =
            att_metrics_server_create((uint32_t)config->metrics_port, paths, &e->server, error);
    if (status != ATT_OK) {
        att_exporter_destroy(e);
        return status == -ATT_ENOMEM ? status : -ATT_EUSAGE; /* file and port: the user's choice */
    }
    *out = e;
    return ATT_OK;
}

void att_exporter_destroy(struct att_exporter *e)
{
    if (e == NULL)
        return;
    att_metrics_server_destroy(e->server);
    for (int page = 0; page < PAGES; page++)
        free(atomic_load(&e->made[page]));
    free(e->tasks);
    free(e->slots);
    free(e);
}

static att_metrics_task_t task_of(const att_task_report_t *t)
{
    int searched = t->state == ATT_TASK_TUNING || t->status.phase >= ATT_PHASE_SETTLED;
    return (att_metrics_task_t){
        .hash = t->hash,
        .ranks = t->ranks,
        .nodes = t->nodes,
        .collective = t->collective,
        .legal_pairs = t->legal_pairs,
        .bytes = t->bytes,
        .phase = searched ? att_phase_name(t->status.phase) : att_task_state_name(t->state),
        .trials = t->status.trials,
        .switches = t->switches,
        .aborts = t->aborts,
        .calls = t->calls_seen,
        .calls_lost = t->lost,
        .disturbed = t->disturbed,
        .lost_s = t->lost_us * 1e-6,
        .settled = t->status.phase == ATT_PHASE_SETTLED,
        .kept_default = t->status.kept_default,
        .default_s = t->status.baseline_us * 1e-6,
        .tuned_s = att_task_tuned_us(t) * 1e-6,
        .now_s = t->now_us * 1e-6,
        .setting = t->tuned,
        .late = t->late_rank != ATT_NONE,
        .late_rank = t->late_rank,
        .late_s = t->late_us * 1e-6,
    };
}

static int same_but_pairs(const att_metrics_task_t *a, const att_metrics_task_t *b)
{
    return a->hash == b->hash && a->bytes == b->bytes && a->collective == b->collective &&
           a->ranks == b->ranks && a->nodes == b->nodes;
}

static uint32_t slot_of(const att_metrics_task_t *t, uint32_t slots)
{
    uint64_t key = (t->hash ^ (t->bytes * 31 + t->collective)) * 0x9e3779b97f4a7c15ull;
    return (uint32_t)(key >> 32) % slots;
}

static int make_room(struct att_exporter *e, uint32_t count)
{
    if (count <= e->capacity)
        return ATT_OK;
    att_metrics_task_t *tasks = malloc(count * sizeof *tasks);
    uint32_t *slots = malloc((size_t)count * SLOTS_A_TASK * sizeof *slots);
    if (tasks == NULL || slots == NULL) {
        free(tasks);
        free(slots);
        return -ATT_ENOMEM;
    }
    free(e->tasks);
    free(e->slots);
    e->tasks = tasks;
    e->slots = slots;
    e->capacity = count;
    return ATT_OK;
}

/* The tasks with their labels told apart: of communicators made and ended again with one hash the
 * latest stands for all. */
static int take_tasks(struct att_exporter *e, const att_task_report_t *tasks, uint32_t count,
                      uint32_t *taken)
{
    *taken = 0;
    if (make_room(e, count) != ATT_OK)
        return -ATT_ENOMEM;
    uint32_t slots = SLOTS_A_TASK * e->capacity;
    if (slots > 0)
        memset(e->slots, 0, slots * sizeof *e->slots);
    for (uint32_t i = 0; i < count; i++) {
        att_metrics_task_t task = task_of(&tasks[i]);
        uint32_t slot = slot_of(&task, slots), index = *taken;
        for (; e->slots[slot] != 0; slot = (slot + 1) % slots) {
            const att_metrics_task_t *other = &e->tasks[e->slots[slot] - 1];
            if (!same_but_pairs(other, &task))
                continue;
            if (other->legal_pairs == task.legal_pairs) {
                task.twin = other->twin;
                index = e->slots[slot] - 1;
                break;
            }
            task.twin = 1;
        }
        e->tasks[index] = task;
        e->slots[slot] = index + 1;
        *taken += index == *taken;
    }
    return ATT_OK;
}

static att_log_site_t no_memory;

static char *print_page(const att_metrics_t *metrics, int page, size_t *length)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, length);
    if (out == NULL)
        return NULL;
    prints[page](metrics, out);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* By the writer: the page's text, and a copy of it for the port. */
static char *make_page(const void *data, size_t *length)
{
    static att_log_site_t site;
    const snapshot_t *s = data;
    struct att_exporter *e = s->exporter;
    uint64_t began_ns = att_clock_ns();
    char *text = print_page(&s->metrics, s->page, length);
    page_t *page = text != NULL && e->server != NULL ? malloc(sizeof *page + *length) : NULL;
    if (page != NULL) {
        page->length = *length;
        memcpy(page->bytes, text, *length);
        free(atomic_exchange(&e->made[s->page], page));
    } else if (text != NULL && e->server != NULL) {
        att_log_limited(&site, ATT_LOG_ERROR, "no memory for the metrics at the port");
    }
    atomic_store(&e->took_ns[s->page], att_clock_ns() - began_ns);
    return text;
}

static snapshot_t *copy_of(struct att_exporter *e, int page, const att_metrics_t *metrics)
{
    size_t bytes = metrics->task_count * sizeof *metrics->tasks;
    snapshot_t *s = malloc(sizeof *s + bytes);
    if (s == NULL)
        return NULL;
    s->exporter = e;
    s->page = page;
    s->metrics = *metrics;
    s->metrics.device = s->device;
    s->metrics.tasks = s->tasks;
    snprintf(s->device, sizeof s->device, "%s", metrics->device);
    if (bytes > 0)
        memcpy(s->tasks, metrics->tasks, bytes);
    return s;
}

/* Without a file there is no work for the writer. */
static int publish_only(struct att_exporter *e, int page, const att_metrics_t *metrics)
{
    size_t length = 0;
    if (e->server == NULL)
        return ATT_OK;
    char *text = print_page(metrics, page, &length);
    if (text == NULL)
        return -ATT_ENOMEM;
    int status = att_metrics_server_publish(e->server, (uint32_t)page, text, length);
    free(text);
    return status;
}

static void publish(struct att_exporter *e, int page, const att_metrics_t *metrics)
{
    int status;
    if (e->path[page][0] == '\0') {
        status = publish_only(e, page, metrics);
    } else {
        snapshot_t *s = copy_of(e, page, metrics);
        status = s != NULL ? att_writer_make(e->writer, e->path[page], make_page, s) : -ATT_ENOMEM;
    }
    if (status != ATT_OK)
        att_log_limited(&no_memory, ATT_LOG_ERROR, "no memory for the metrics");
}

void att_exporter_report(struct att_exporter *e, const att_run_totals_t *t,
                         const att_task_report_t *tasks, uint32_t count, int last)
{
    uint64_t began_ns = att_clock_ns();
    if (e == NULL || (began_ns < e->next_ns && !last))
        return;
    const char *job = getenv("SLURM_JOB_ID");
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    const att_coverage_t *c = &t->coverage;
    att_metrics_t m = {
        .run_id = e->config->run_id,
        .device = t->device,
        .host = e->host,
        .job_id = job != NULL ? job : "",
        .nccl_version = t->nccl_version,
        .running = !last,
        .unix_s = (double)wall.tv_sec + (double)wall.tv_nsec * 1e-9,
        .run_s = t->run_us * 1e-6,
        .cpu_s = t->cpu_share * t->run_us * 1e-6,
        .lost_s = t->lost_us * 1e-6,
        .longest_wait_s = (double)c->longest_wait_ns * 1e-9,
        .records = t->records,
        .polls = t->polls,
        .decisions = c->decisions,
        .timed = c->timed,
        .frozen = c->frozen,
        .simulated = c->simulated,
        .unseen = c->unseen,
        .dropped = c->dropped,
        .anomalies = c->anomalies,
        .waited = c->waited,
        .in_doubt = c->in_doubt,
        .refused = c->refused,
        .processes = c->processes,
    };
    memcpy(m.untimed, c->untimed, sizeof m.untimed);
    if (take_tasks(e, tasks, count, &m.task_count) != ATT_OK) {
        att_log_limited(&no_memory, ATT_LOG_ERROR, "no memory for the metrics of %u tasks", count);
        return; /* the next report may have it */
    }
    m.tasks = e->tasks;
    for (int page = 0; page < PAGES; page++)
        publish(e, page, &m);
    uint64_t now_ns = att_clock_ns(), took_ns = now_ns - began_ns;
    for (int page = 0; page < PAGES; page++)
        took_ns += atomic_load(&e->took_ns[page]);
    e->next_ns = now_ns + SHARE * took_ns;
}

void att_exporter_step(struct att_exporter *e, uint64_t now_ns)
{
    if (e == NULL || e->server == NULL)
        return;
    for (int page = 0; page < PAGES; page++) {
        page_t *made = atomic_exchange(&e->made[page], NULL);
        if (made != NULL && att_metrics_server_publish(e->server, (uint32_t)page, made->bytes,
                                                       made->length) != ATT_OK)
            att_log_limited(&no_memory, ATT_LOG_ERROR, "no memory for the metrics");
        free(made);
    }
    att_metrics_server_step(e->server, now_ns);
}
