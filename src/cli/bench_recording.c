#include "cli/bench_recording.h"

#include "base/names.h"
#include "cli/bench_candidate.h"
#include "search/statistics.h"
#include "surface/t4.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define JOURNAL_VERSION 1
#define JOURNAL_MAX     (1ll << 30)
#define AGAIN_LEAST     5 /* settings, whatever the share */
#define BESIDE          3 /* of the best that are measured beside those that lack samples */
#define SLOW_PROBES     2 /* of a setting whose first one is slow */
#define TIME_MAX_US     1e12

static bool exists(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0;
}

static bool journal_of(const char *path, char *journal, size_t size)
{
    size_t n = strlen(path);
    const char *const endings[] = {".json.gz", ".json"};
    for (int i = 0; i < 2; i++) {
        size_t m = strlen(endings[i]);
        if (n > m && strcmp(path + n - m, endings[i]) == 0) {
            n -= m;
            break;
        }
    }
    return snprintf(journal, size, "%.*s.partial.jsonl", (int)n, path) < (int)size;
}

bool att_recording_is_complete(const char *path)
{
    char journal[4096];
    return exists(path) && journal_of(path, journal, sizeof journal) && !exists(journal);
}

/* FNV-1a over the settings: the journal names them by number. */
static uint64_t digest_of(const att_setting_t *settings, int count)
{
    const unsigned char *bytes = (const unsigned char *)settings;
    uint64_t digest = 0xcbf29ce484222325ull;
    for (size_t i = 0; i < (size_t)count * sizeof *settings; i++)
        digest = (digest ^ bytes[i]) * 0x100000001b3ull;
    return digest;
}

/* What samples must have in common, as the journal's first line. */
static void first_line(const att_recording_t *r, const char *nccl_version,
                       const att_recording_plan_t *plan, const att_setting_t *settings, char *line,
                       size_t size)
{
    const att_t4_header_t *h = &r->header;
    snprintf(line, size,
             "{\"attune_recording\":%d,\"collective\":\"%s\",\"bytes\":%" PRIu64
             ",\"ranks\":%d,\"type\":\"%s\",\"load\":\"%s\",\"nccl\":\"%s\",\"batch\":%d,"
             "\"settings\":%d,\"digest\":\"%016" PRIx64 "\"}\n",
             JOURNAL_VERSION, att_collective_name(h->collective), h->bytes, h->ranks, h->type,
             h->load, nccl_version, plan->batch, r->count, digest_of(settings, r->count));
}

static void add_sample(att_recording_t *r, int index, double us, int64_t when)
{
    att_recording_point_t *p = &r->points[index];
    if (p->sample_count == (uint32_t)r->repeats)
        return;
    if (p->sample_count == 0)
        p->when = when;
    p->samples[p->sample_count++] = us;
    p->median_us = att_median(p->samples, p->sample_count);
}

/* Thousands of samples come one by one, from a journal too: they are kept in order. */
static double insert(double *sorted, uint32_t count, double us)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (sorted[middle] <= us)
            low = middle + 1;
        else
            high = middle;
    }
    memmove(sorted + low + 1, sorted + low, (count - low) * sizeof *sorted);
    sorted[low] = us;
    count++;
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

static int add_again(att_recording_t *r, int index, double us)
{
    att_recording_point_t *p = &r->points[index];
    if (p->again_count == p->again_room) {
        uint32_t room = p->again_room > 0 ? 2 * p->again_room : 32;
        double *larger = realloc(p->again, room * sizeof *larger);
        if (larger == NULL)
            return -ATT_ENOMEM;
        p->again = larger;
        larger = realloc(p->again_sorted, room * sizeof *larger);
        if (larger == NULL)
            return -ATT_ENOMEM;
        p->again_sorted = larger;
        p->again_room = room;
    }
    p->again_median_us = insert(p->again_sorted, p->again_count, us);
    p->again[p->again_count++] = us;
    return ATT_OK;
}

/* One line of the journal: [index, kind, us, when]. False: not whole, or of no sense here. */
static bool take_line(att_recording_t *r, const char *line, size_t length)
{
    json_t *root = json_loadb(line, length, 0, NULL);
    int index = -1;
    const char *kind = "";
    double us = 0;
    json_int_t when = 0;
    bool good = json_unpack(root, "[i, s, F, I]", &index, &kind, &us, &when) == 0 && index >= 0 &&
                index < r->count;
    bool duration = us > 0 && us <= TIME_MAX_US;
    if (good && strcmp(kind, "refused") == 0)
        r->points[index].refused = true;
    else if (good && duration && strcmp(kind, "again") == 0)
        good = add_again(r, index, us) == ATT_OK;
    else if (good && duration && (strcmp(kind, "grid") == 0 || strcmp(kind, "slow") == 0)) {
        add_sample(r, index, us, when);
        r->points[index].probes = index > 0 ? SLOW_PROBES : 0;
        r->points[index].slow |= strcmp(kind, "slow") == 0;
    } else
        good = false;
    json_decref(root);
    return good;
}

static int read_journal(att_recording_t *r, const char *expected, att_error_t *error)
{
    struct stat status;
    if (fstat(r->fd, &status) != 0)
        return att_fail_errno(error, "%s", r->journal);
    if (status.st_size > JOURNAL_MAX)
        return att_fail(error, ATT_EINPUT, "%s: larger than 1 GiB: no journal", r->journal);
    size_t length = (size_t)status.st_size, used = 0;
    char *bytes = malloc(length + 1);
    if (bytes == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for %s", r->journal);
    ssize_t got = 1;
    while (used < length && got > 0) {
        got = pread(r->fd, bytes + used, length - used, (off_t)used);
        used += got > 0 ? (size_t)got : 0;
    }
    size_t first = strlen(expected), at = first;
    int rc = ATT_OK;
    if (used < first || memcmp(bytes, expected, first) != 0) {
        const char *newline = memchr(bytes, '\n', used);
        /* killed while it wrote its first line */
        bool begun = newline == NULL && used < first && memcmp(bytes, expected, used) == 0;
        if (!begun)
            rc = att_fail(error, ATT_EMISMATCH,
                          "%s: is of another grid, batch, NCCL or task; remove it, or record into "
                          "another --out",
                          r->journal);
        at = 0;
    }
    while (rc == ATT_OK && at > 0 && at < used) {
        const char *newline = memchr(bytes + at, '\n', used - at);
        if (newline == NULL)
            break;
        size_t end = (size_t)(newline - bytes);
        if (!take_line(r, bytes + at, end - at))
            rc = att_fail(error, ATT_EINPUT, "%s: byte %zu: no sample; remove the file", r->journal,
                          at);
        at = end + 1;
    }
    free(bytes);
    /* What is behind the last whole line was cut off by a kill. */
    if (rc == ATT_OK && ftruncate(r->fd, (off_t)at) != 0)
        rc = att_fail_errno(error, "%s: cannot cut", r->journal);
    if (rc == ATT_OK && lseek(r->fd, (off_t)at, SEEK_SET) < 0)
        rc = att_fail_errno(error, "%s", r->journal);
    if (rc == ATT_OK && at == 0 && write(r->fd, expected, first) != (ssize_t)first)
        rc = att_fail_errno(error, "%s: cannot write", r->journal);
    return rc;
}

static int make_points(att_recording_t *r, const att_setting_t *settings, att_error_t *error)
{
    r->points = calloc((size_t)r->count, sizeof *r->points);
    r->order = calloc((size_t)r->count, sizeof *r->order);
    int good = r->points != NULL && r->order != NULL;
    for (int i = 0; good && i < r->count; i++) {
        r->points[i].setting = settings[i];
        r->points[i].samples = calloc((size_t)r->repeats, sizeof(double));
        good = r->points[i].samples != NULL;
    }
    return good ? ATT_OK : att_fail(error, ATT_ENOMEM, "no memory for %d settings", r->count);
}

int att_recording_open(const char *path, const att_t4_header_t *header, const char *nccl_version,
                       const att_recording_plan_t *plan, const att_setting_t *settings, int count,
                       att_recording_t *recording, att_error_t *error)
{
    char expected[1024];
    att_recording_t *r = recording;
    *r = (att_recording_t){.fd = -1,
                           .header = *header,
                           .count = count,
                           .repeats = plan->repeats,
                           .again = plan->again,
                           .again_share = plan->again_share,
                           .front = plan->front,
                           .front_samples = plan->front_samples,
                           .seed = plan->seed,
                           .round = -1};
    if (snprintf(r->path, sizeof r->path, "%s", path) >= (int)sizeof r->path ||
        !journal_of(path, r->journal, sizeof r->journal))
        return att_fail(error, ATT_EUSAGE, "the path '%.64s...' is too long", path);
    int rc = make_points(r, settings, error);
    if (rc == ATT_OK) {
        r->fd = open(r->journal, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (r->fd < 0)
            rc = att_fail_errno(error, "%s: cannot open", r->journal);
    }
    if (rc == ATT_OK) {
        first_line(r, nccl_version, plan, settings, expected, sizeof expected);
        rc = read_journal(r, expected, error);
    }
    if (rc != ATT_OK)
        att_recording_close(r);
    return rc;
}

void att_recording_close(att_recording_t *recording)
{
    for (int i = 0; recording->points != NULL && i < recording->count; i++) {
        free(recording->points[i].samples);
        free(recording->points[i].again);
        free(recording->points[i].again_sorted);
    }
    free(recording->points);
    free(recording->order);
    if (recording->fd >= 0)
        close(recording->fd);
    recording->points = NULL;
    recording->order = NULL;
    recording->fd = -1;
}

static int write_line(att_recording_t *r, int index, const char *kind, double us, int64_t when,
                      att_error_t *error)
{
    char line[128];
    int n = snprintf(line, sizeof line, "[%d,\"%s\",%.6g,%" PRId64 "]\n", index, kind, us, when);
    return write(r->fd, line, (size_t)n) == n
               ? ATT_OK
               : att_fail_errno(error, "%s: cannot write", r->journal);
}

int att_recording_probe(att_recording_t *recording, int index, double us, att_error_t *error)
{
    att_recording_point_t *p = &recording->points[index], *native = &recording->points[0];
    int64_t now = (int64_t)time(NULL);
    us = us > 0 ? us : 1e-3;
    p->probes++;
    if (index == 0) {
        recording->native_us[p->probes - 1] = us;
        native->first_us = att_median(recording->native_us, (uint32_t)p->probes);
        return ATT_OK;
    }
    p->first_us = p->probes == 1 ? us : fmin(p->first_us, us);
    if (native->first_us <= 0 || p->first_us <= ATT_SLOW_FIRST * native->first_us) {
        p->probes = SLOW_PROBES;
        return ATT_OK;
    }
    if (p->probes < SLOW_PROBES)
        return ATT_OK;
    p->slow = true;
    add_sample(recording, index, p->first_us, now);
    return write_line(recording, index, "slow", p->first_us, now, error);
}

int att_recording_sample(att_recording_t *recording, int index, att_recording_kind_t kind,
                         double us, att_error_t *error)
{
    int64_t now = (int64_t)time(NULL);
    if (!(us > 0 && us <= TIME_MAX_US))
        return att_fail(error, ATT_EFAIL, "a sample of %g us: the clock is broken", us);
    if (kind == ATT_RECORDING_AGAIN) {
        if (add_again(recording, index, us) != ATT_OK)
            return att_fail(error, ATT_ENOMEM, "no memory for samples");
        return write_line(recording, index, "again", us, now, error);
    }
    add_sample(recording, index, us, now);
    return write_line(recording, index, "grid", us, now, error);
}

int att_recording_refuse(att_recording_t *recording, int index, att_error_t *error)
{
    recording->points[index].refused = true;
    return write_line(recording, index, "refused", 0, (int64_t)time(NULL), error);
}

static bool usable(const att_recording_point_t *p)
{
    return !p->refused && !p->slow && p->sample_count > 0;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool measured_again(const att_recording_point_t *p)
{
    return !p->refused && p->again_count > 0;
}

/* The n-th fastest median of the grid's or the second measurement's samples, the slowest where
 * there are fewer. 0: there is none. */
static double nth_fastest(const att_recording_t *r, att_recording_kind_t kind, int n)
{
    bool again = kind == ATT_RECORDING_AGAIN;
    double *medians = malloc((size_t)r->count * sizeof *medians), found = 0;
    int count = 0;
    for (int i = 0; medians != NULL && i < r->count; i++) {
        const att_recording_point_t *p = &r->points[i];
        if (again ? measured_again(p) : usable(p))
            medians[count++] = again ? p->again_median_us : p->median_us;
    }
    if (count > 0) {
        qsort(medians, (size_t)count, sizeof *medians, compare_doubles);
        found = medians[(n < count ? n : count) - 1];
    }
    free(medians);
    return found;
}

/* The best share of the grid, by the medians so far, and NCCL's choice. */
static void choose_again(att_recording_t *r)
{
    int wanted = (int)ceil(r->again_share * r->count);
    double limit = nth_fastest(r, ATT_RECORDING_GRID, wanted < AGAIN_LEAST ? AGAIN_LEAST : wanted);
    for (int i = 0; limit > 0 && i < r->count; i++)
        if (i == 0 || (usable(&r->points[i]) && r->points[i].median_us <= limit))
            r->points[i].again_wanted = (uint32_t)r->again;
}

int att_recording_best(const att_recording_t *recording)
{
    int best = -1;
    double best_us = 0;
    bool again = false;
    for (int i = 0; i < recording->count; i++)
        again |= recording->points[i].again_count > 0;
    for (int i = 0; i < recording->count; i++) {
        const att_recording_point_t *p = &recording->points[i];
        double us = again ? p->again_median_us : p->median_us;
        if (!p->refused && us > 0 && (best < 0 || us < best_us)) {
            best = i;
            best_us = us;
        }
    }
    return best;
}

/* The best so far are measured along with others: the machine may have changed meanwhile. */
static void choose_beside(att_recording_t *r, uint32_t more)
{
    double limit = nth_fastest(r, ATT_RECORDING_AGAIN, BESIDE);
    for (int i = 0; i < r->count; i++) {
        att_recording_point_t *p = &r->points[i];
        if (!measured_again(p) || p->again_median_us > limit)
            continue;
        uint32_t wanted = p->again_count + more;
        wanted = wanted < ATT_T4_SAMPLES_MAX ? wanted : ATT_T4_SAMPLES_MAX;
        p->again_wanted = p->again_wanted > wanted ? p->again_wanted : wanted;
    }
}

/* Settings that lack samples of the second measurement although they look faster than its best is
 * join it. False: there are none. */
static bool choose_latecomers(att_recording_t *r)
{
    int best = att_recording_best(r), joined = 0;
    if (best < 0)
        return false;
    double best_us = r->points[best].again_median_us;
    for (int i = 0; i < r->count; i++) {
        att_recording_point_t *p = &r->points[i];
        double us = p->again_count > 0 ? p->again_median_us : p->median_us;
        if (usable(p) && p->again_count < (uint32_t)r->again && us <= best_us) {
            p->again_wanted = (uint32_t)r->again;
            joined++;
        }
    }
    if (joined > 0)
        choose_beside(r, (uint32_t)r->again);
    return joined > 0;
}

/* One more sample for those of the front, and for NCCL's choice, that lack some. False: none does.
 * The front is looked at anew for each pass: who falls back is left alone. */
static bool choose_front(att_recording_t *r)
{
    double limit = r->front > 0 ? nth_fastest(r, ATT_RECORDING_AGAIN, r->front) : 0;
    int lacking = 0;
    for (int i = 0; limit > 0 && i < r->count; i++) {
        att_recording_point_t *p = &r->points[i];
        if (measured_again(p) && (i == 0 || p->again_median_us <= limit) &&
            p->again_count < (uint32_t)r->front_samples) {
            p->again_wanted = p->again_count + 1;
            lacking++;
        }
    }
    if (lacking > 0)
        choose_beside(r, 1);
    return lacking > 0;
}

/* When all that was wanted is measured. Latecomers wait for the front: once the lucky ones have
 * fallen back, more of them may look faster than the best. False: nothing is left. */
static bool choose_more(att_recording_t *r)
{
    if (!r->settling && choose_latecomers(r))
        return true;
    r->settling = choose_front(r);
    return r->settling || choose_latecomers(r);
}

static bool begin_round(att_recording_t *r)
{
    r->round++;
    r->at = 0;
    att_candidates_shuffle(r->order, r->count, r->seed * 1000003u + (uint64_t)r->round);
    return true;
}

static bool next_of_grid(att_recording_t *r, int *index, att_recording_kind_t *kind)
{
    while (r->round < r->repeats && !(r->hurry && r->round > 0)) {
        for (; r->round >= 0 && r->at < r->count; r->at++) {
            const att_recording_point_t *p = &r->points[r->order[r->at]];
            if (p->refused || p->slow || p->sample_count > (uint32_t)r->round)
                continue;
            *index = r->order[r->at];
            if (*index > 0 && p->probes < SLOW_PROBES) {
                *kind = ATT_RECORDING_PROBE;
                /* What is slow is measured by NCCL's choice. */
                if (!r->points[0].refused && r->points[0].probes < ATT_NATIVE_CALLS)
                    *index = 0;
                return true;
            }
            *kind = ATT_RECORDING_GRID;
            return true;
        }
        begin_round(r);
    }
    return false;
}

static bool next_again(att_recording_t *r, int *index)
{
    for (int pass = 0; pass < 2; pass++) {
        for (; r->at < r->count; r->at++) {
            const att_recording_point_t *p = &r->points[r->order[r->at]];
            if (!p->refused && p->again_count < p->again_wanted) {
                *index = r->order[r->at++];
                return true;
            }
        }
        begin_round(r);
    }
    return false;
}

bool att_recording_next(att_recording_t *recording, int *index, att_recording_kind_t *kind)
{
    att_recording_t *r = recording;
    if (next_of_grid(r, index, kind))
        return true;
    if (r->again == 0)
        return false;
    if (!r->choosing_done) {
        choose_again(r);
        r->choosing_done = true;
        r->round = r->repeats; /* the order no longer depends on where the grid ended */
        begin_round(r);
    }
    *kind = ATT_RECORDING_AGAIN;
    while (!next_again(r, index))
        if (!choose_more(r))
            return false;
    return true;
}

uint64_t att_recording_samples(const att_recording_t *recording)
{
    uint64_t count = 0;
    for (int i = 0; i < recording->count; i++)
        count += (uint64_t)recording->points[i].sample_count + recording->points[i].again_count;
    return count;
}

int att_recording_save(att_recording_t *recording, bool complete, att_error_t *error)
{
    json_t *results = json_array();
    for (int i = 0; i < recording->count; i++) {
        const att_recording_point_t *p = &recording->points[i];
        char stamp[32] = "";
        time_t when = (time_t)p->when;
        struct tm utc;
        if (p->refused || p->sample_count == 0)
            continue;
        if (gmtime_r(&when, &utc) != NULL)
            strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", &utc);
        att_t4_sampled_t sampled = {.setting = p->setting,
                                    .timestamp = stamp,
                                    .samples_us = p->samples,
                                    .again_us = p->again,
                                    .sample_count = p->sample_count,
                                    .again_count = p->again_count,
                                    .time_us =
                                        p->again_count > 0 ? p->again_median_us : p->median_us};
        json_array_append_new(results, att_t4_result(&sampled));
    }
    recording->header.state = complete ? "complete" : "partial";
    int rc = json_array_size(results) > 0
                 ? att_t4_write(recording->path, &recording->header, json_incref(results), error)
                 : ATT_OK;
    json_decref(results);
    if (rc == ATT_OK && complete && unlink(recording->journal) != 0)
        rc = att_fail_errno(error, "%s: cannot remove", recording->journal);
    return rc;
}
