#include "cli/trace_chrome.h"

#include "base/status.h"
#include "profile/chrome.h"
#include "profile/room.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAMPLE       4000u /* records that are written to learn how large one is */
#define MOST_THREADS 4     /* each holds a part's records: about 100 MB */
#define MOST_SPLITS  12    /* of a part that came out too large */

typedef struct job {
    const struct att_trace *trace;
    const att_trace_choice_t *choice;
    const att_trace_output_t *output;
    att_chrome_file_t file;
    char stem[PATH_MAX - 64], suffix[16]; /* path = stem + suffix */
    int64_t *bounds;
    uint32_t pieces;
    _Atomic uint32_t next;
    /* results */
    pthread_mutex_t lock;
    att_chrome_part_t *parts;
    att_digest_t *digests; /* one a part */
    uint32_t part_count;
    int status;
    att_error_t error;
} job_t;

static bool ends_with(const char *text, const char *end)
{
    size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

/* One document. *bytes: of JSON; *digest may be NULL. */
static int write_window(const job_t *j, const att_trace_select_t *select, const char *path,
                        att_digest_t *keep, uint64_t *events_written, uint64_t *bytes,
                        att_error_t *error)
{
    att_trace_event_t *events = NULL;
    size_t count = 0;
    att_digest_t digest = {0};
    att_out_t *out = malloc(sizeof *out);
    int status = out == NULL ? -ATT_ENOMEM : att_trace_load(j->trace, select, &events, &count);
    if (status == ATT_OK)
        status = att_digest_make(j->trace, select, events, count, &digest);
    if (status != ATT_OK) {
        att_fail(error, ATT_ENOMEM, "no memory for the part %s; a smaller --part-size needs less",
                 path);
        goto free_all;
    }
    status = att_out_open(out, path, error);
    if (status != ATT_OK)
        goto free_all;
    int written = att_chrome_write(&j->file, select, events, count, &digest, out);
    *bytes = out->bytes;
    *events_written = count;
    if (written == ATT_OK) {
        status = att_out_close(out, error);
    } else {
        att_out_discard(out);
        status = att_fail(error, ATT_ENOMEM, "no memory for %s", path);
    }
free_all:
    if (status == ATT_OK && keep != NULL)
        *keep = digest;
    else
        att_digest_free(&digest);
    free(events);
    free(out);
    return status;
}

/* Bytes of JSON a record, from the first few. */
static int measure(job_t *j, uint64_t *bytes_each, att_error_t *error)
{
    int64_t *bounds = NULL;
    uint32_t pieces;
    if (att_trace_cut(j->trace, &j->choice->select, SAMPLE, &bounds, &pieces) != ATT_OK)
        return att_fail(error, ATT_ENOMEM, "no memory");
    /* The middle: the first calls of a job are unlike the rest. */
    att_trace_select_t select = j->choice->select;
    select.from_ns = bounds[pieces / 2];
    select.to_ns = bounds[pieces / 2 + 1];
    free(bounds);
    uint64_t events, bytes;
    int status = write_window(j, &select, "/dev/null", NULL, &events, &bytes, error);
    /* An eighth more, since records differ. */
    *bytes_each = events > 0 ? bytes * 9 / 8 / events + 1 : 1024;
    return status;
}

static void keep_part(job_t *j, const att_chrome_part_t *part, att_digest_t *digest)
{
    pthread_mutex_lock(&j->lock);
    uint32_t n = j->part_count;
    if (att_room_append(&j->parts, n, sizeof *j->parts) != ATT_OK ||
        att_room_append(&j->digests, n, sizeof *j->digests) != ATT_OK) {
        j->status = att_fail(&j->error, ATT_ENOMEM, "no memory");
        att_digest_free(digest);
        pthread_mutex_unlock(&j->lock);
        return;
    }
    j->parts[n] = *part;
    j->digests[n] = *digest;
    j->part_count++;
    pthread_mutex_unlock(&j->lock);
}

/* A piece that comes out larger than a part may be is halved in time. */
static int write_piece(job_t *j, int64_t from_ns, int64_t to_ns, const char *label, int splits,
                       att_error_t *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s.part-%s%s", j->stem, label, j->suffix);
    att_trace_select_t select = j->choice->select;
    select.from_ns = from_ns;
    select.to_ns = to_ns;
    att_digest_t digest = {0};
    uint64_t events = 0, bytes = 0;
    int status = write_window(j, &select, path, &digest, &events, &bytes, error);
    if (status != ATT_OK)
        return status;
    if (bytes > j->output->part_bytes && splits > 0 && to_ns - from_ns > 1) {
        att_digest_free(&digest);
        unlink(path);
        char half[64];
        int64_t middle = from_ns + (to_ns - from_ns) / 2;
        snprintf(half, sizeof half, "%sa", label);
        status = write_piece(j, from_ns, middle, half, splits - 1, error);
        half[strlen(half) - 1] = 'b';
        return status == ATT_OK ? write_piece(j, middle, to_ns, half, splits - 1, error) : status;
    }
    att_chrome_part_t part = {.from_ns = from_ns, .to_ns = to_ns, .events = events, .bytes = bytes};
    const char *slash = strrchr(path, '/');
    snprintf(part.name, sizeof part.name, "%.255s", slash != NULL ? slash + 1 : path);
    keep_part(j, &part, &digest);
    return ATT_OK;
}

static void *work(void *context)
{
    job_t *j = context;
    for (;;) {
        uint32_t i = atomic_fetch_add(&j->next, 1);
        if (i >= j->pieces || j->status != ATT_OK)
            return NULL;
        char label[64];
        att_error_t error = {""};
        snprintf(label, sizeof label, "%04u", i + 1);
        int status = write_piece(j, j->bounds[i], j->bounds[i + 1], label, MOST_SPLITS, &error);
        if (status != ATT_OK) {
            pthread_mutex_lock(&j->lock);
            if (j->status == ATT_OK) {
                j->status = status;
                j->error = error;
            }
            pthread_mutex_unlock(&j->lock);
        }
    }
}

static int order_parts(const void *a, const void *b, void *context)
{
    const att_chrome_part_t *parts = context;
    const att_chrome_part_t *x = &parts[*(const uint32_t *)a], *y = &parts[*(const uint32_t *)b];
    return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

static int write_overview(job_t *j, att_error_t *error)
{
    uint32_t n = j->part_count;
    uint32_t *order = malloc((n + 1) * sizeof *order);
    att_chrome_part_t *parts = malloc((n + 1) * sizeof *parts);
    att_out_t *out = malloc(sizeof *out);
    att_digest_t whole = {0};
    int status = order != NULL && parts != NULL && out != NULL ? ATT_OK : -ATT_ENOMEM;
    for (uint32_t i = 0; status == ATT_OK && i < n; i++)
        order[i] = i;
    if (status == ATT_OK)
        qsort_r(order, n, sizeof *order, order_parts, j->parts);
    for (uint32_t i = 0; status == ATT_OK && i < n; i++) {
        parts[i] = j->parts[order[i]];
        status = att_digest_join(&whole, &j->digests[order[i]]);
    }
    if (status != ATT_OK)
        att_fail(error, ATT_ENOMEM, "no memory");
    if (status == ATT_OK)
        status = att_out_open(out, j->output->path, error);
    if (status == ATT_OK) {
        int written = att_chrome_overview(&j->file, &j->choice->select, &whole, parts, n, out);
        uint64_t bytes = out->bytes;
        if (written == ATT_OK) {
            status = att_out_close(out, error);
        } else {
            att_out_discard(out);
            status = att_fail(error, ATT_ENOMEM, "no memory for the overview");
        }
        for (uint32_t i = 0; status == ATT_OK && j->output->said != NULL && i < n; i++)
            fprintf(j->output->said, "%.*s%s: %" PRIu64 " calls, %.1f MB of JSON\n",
                    (int)(strrchr(j->output->path, '/') != NULL
                              ? strrchr(j->output->path, '/') + 1 - j->output->path
                              : 0),
                    j->output->path, parts[i].name, parts[i].events, (double)parts[i].bytes * 1e-6);
        if (j->output->said != NULL && status == ATT_OK)
            fprintf(j->output->said, "%s: overview of %u parts, %.1f MB of JSON\n", j->output->path,
                    n, (double)bytes * 1e-6);
    }
    att_digest_free(&whole);
    free(order);
    free(parts);
    free(out);
    return status;
}

/* Parts without the others and their overview would look like a whole trace. */
static void remove_parts(const job_t *j)
{
    const char *slash = strrchr(j->output->path, '/');
    int folder = slash != NULL ? (int)(slash + 1 - j->output->path) : 0;
    for (uint32_t i = 0; i < j->part_count; i++) {
        char path[PATH_MAX + 256];
        snprintf(path, sizeof path, "%.*s%s", folder, j->output->path, j->parts[i].name);
        unlink(path);
    }
}

static int write_parts(job_t *j, att_error_t *error)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int wanted = processors < 1 ? 1 : processors > MOST_THREADS ? MOST_THREADS : (int)processors;
    pthread_t threads[MOST_THREADS];
    int started = 0;
    while (started < wanted && pthread_create(&threads[started], NULL, work, j) == 0)
        started++;
    if (started == 0)
        work(j);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    int status = j->status;
    if (status != ATT_OK && error != NULL)
        *error = j->error;
    if (status == ATT_OK)
        status = write_overview(j, error);
    if (status != ATT_OK)
        remove_parts(j);
    return status;
}

static int write_merged(job_t *j, att_error_t *error)
{
    const char *path = j->output->path;
    const char *suffix = ends_with(path, ".json.gz") ? ".json.gz"
                         : ends_with(path, ".json")  ? ".json"
                                                     : "";
    snprintf(j->suffix, sizeof j->suffix, "%s", suffix);
    snprintf(j->stem, sizeof j->stem, "%.*s", (int)(strlen(path) - strlen(suffix)), path);
    j->file.compact = true;
    uint64_t bytes_each = 0;
    int status = measure(j, &bytes_each, error);
    if (status != ATT_OK)
        return status;
    if (att_trace_cut(j->trace, &j->choice->select, j->output->part_bytes / bytes_each, &j->bounds,
                      &j->pieces) != ATT_OK)
        return att_fail(error, ATT_ENOMEM, "no memory");
    if (j->pieces > 1)
        return write_parts(j, error);
    uint64_t events, bytes;
    status = write_window(j, &j->choice->select, path, NULL, &events, &bytes, error);
    if (status == ATT_OK && bytes > j->output->part_bytes)
        return write_parts(j, error); /* closer to the limit than the estimate is good */
    if (status == ATT_OK && j->output->said != NULL)
        fprintf(j->output->said, "%s: %" PRIu64 " calls, %.1f MB of JSON\n", path, events,
                (double)bytes * 1e-6);
    return status;
}

/* --- one document a rank ------------------------------------------------------------------------
 */

static int write_rank(job_t *j, uint32_t place, att_error_t *error)
{
    const att_catalog_t *c = att_trace_catalog(j->trace);
    bool *members = calloc(c->member_count + 1, sizeof *members);
    if (members == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory");
    bool any = false;
    for (uint32_t m = 0; m < c->member_count; m++) {
        members[m] =
            c->members[m].place == place && (j->choice->members == NULL || j->choice->members[m]);
        any |= members[m];
    }
    int status = ATT_OK;
    if (any) {
        char path[PATH_MAX];
        uint64_t events, bytes;
        att_trace_select_t select = j->choice->select;
        select.members = members;
        j->file.place = place;
        snprintf(path, sizeof path, "%s/rank-%05u.json.gz", j->output->per_rank,
                 c->places[place].job_rank);
        status = write_window(j, &select, path, NULL, &events, &bytes, error);
        if (status == ATT_OK && j->output->said != NULL)
            fprintf(j->output->said, "%s: %" PRIu64 " calls, %.1f MB of JSON\n", path, events,
                    (double)bytes * 1e-6);
    }
    free(members);
    return status;
}

static int write_ranks(job_t *j, att_error_t *error)
{
    const att_catalog_t *c = att_trace_catalog(j->trace);
    if (mkdir(j->output->per_rank, 0755) != 0 && errno != EEXIST)
        return att_fail_errno(error, "cannot make %s", j->output->per_rank);
    int status = ATT_OK;
    j->file.compact = false;
    for (uint32_t p = 0; p < c->place_count && status == ATT_OK; p++)
        status = write_rank(j, p, error);
    return status;
}

int att_trace_chrome(const struct att_trace *trace, const att_trace_choice_t *choice,
                     const att_trace_output_t *output, att_error_t *error)
{
    job_t j = {.trace = trace,
               .choice = choice,
               .output = output,
               .file = {.trace = trace,
                        .origin_ns = choice->origin_ns,
                        .run = output->run,
                        .counted = output->counted,
                        .counted_count = output->counted_count,
                        .place = ATT_CATALOG_NONE},
               .lock = PTHREAD_MUTEX_INITIALIZER};
    int status = ATT_OK;
    if (output->path != NULL)
        status = write_merged(&j, error);
    if (status == ATT_OK && output->per_rank != NULL)
        status = write_ranks(&j, error);
    for (uint32_t i = 0; i < j.part_count; i++)
        att_digest_free(&j.digests[i]);
    free(j.parts);
    free(j.digests);
    free(j.bounds);
    return status;
}
