#include "search/worker.h"

#include "search/instance.h"
#include "search/wire.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_SETTINGS 64

typedef struct att_worker {
    struct att_wire *wire;
    struct att_instance *instance;
    int told_status; /* of the first failed TELL */
    att_error_t told_error;
} att_worker_t;

static int answer(att_worker_t *worker, uint32_t request, int status, const att_error_t *error,
                  const att_setting_t *settings, const uint32_t *samples, uint32_t count,
                  const att_setting_t *best)
{
    att_worker_answer_t head = {.request = request, .status = status, .count = count};
    att_wire_part_t parts[4] = {{&head, sizeof head}};
    unsigned n = 1;
    if (status != ATT_OK) {
        parts[n++] = (att_wire_part_t){error->text, strlen(error->text)};
    } else if (request == ATT_WORKER_ASK) {
        parts[n++] = (att_wire_part_t){settings, count * sizeof *settings};
        parts[n++] = (att_wire_part_t){samples, count * sizeof *samples};
        parts[n++] = (att_wire_part_t){best, sizeof *best};
    }
    return att_wire_put(worker->wire, ATT_WORKER_ANSWER, parts, n);
}

/* A length-prefixed text of a payload, as a string of our own. */
static char *take_text(att_wire_reader_t *reader)
{
    uint32_t length;
    att_wire_read(reader, &length, sizeof length);
    const char *text = att_wire_peek(reader, length);
    return text != NULL ? strndup(text, length) : NULL;
}

static int begin(att_worker_t *worker, uint32_t request, att_wire_reader_t *reader)
{
    uint64_t seed;
    att_space_t space;
    att_wire_read(reader, &seed, sizeof seed);
    char *path = take_text(reader), *spec = take_text(reader);
    att_wire_read(reader, &space, sizeof space);
    size_t bytes = space.subspace_count * sizeof(att_subspace_t);
    const void *subspaces = att_wire_peek(reader, bytes);
    att_error_t error;
    int rc;
    if (path == NULL || spec == NULL || subspaces == NULL || worker->instance != NULL) {
        rc = att_fail(&error, ATT_EINPUT, "malformed request to a strategy worker");
    } else if (request == ATT_WORKER_CHECK) {
        rc = att_instance_check(path, spec, &error);
    } else {
        /* The payload has no alignment. */
        att_subspace_t *copy = malloc(bytes > 0 ? bytes : 1);
        rc = copy == NULL ? att_fail(&error, ATT_ENOMEM, "no memory for a search") : ATT_OK;
        if (copy != NULL) {
            memcpy(copy, subspaces, bytes);
            space.subspaces = copy;
            rc = att_instance_create(path, spec, &space, seed, &worker->instance, &error);
            free(copy);
        }
    }
    free(path);
    free(spec);
    return answer(worker, request, rc, &error, NULL, NULL, 0, NULL);
}

static int ask(att_worker_t *worker, att_wire_reader_t *reader)
{
    uint32_t most, count = 0, samples[MOST_SETTINGS];
    att_wire_read(reader, &most, sizeof most);
    att_setting_t settings[MOST_SETTINGS], best = ATT_SETTING_KEEP;
    att_error_t error = worker->told_error;
    int rc = worker->told_status;
    if (worker->instance == NULL)
        rc = att_fail(&error, ATT_EINPUT, "a strategy worker was asked before a search began");
    if (rc == ATT_OK)
        rc = att_instance_ask(worker->instance, settings, samples,
                              most < MOST_SETTINGS ? most : MOST_SETTINGS, &count, &error);
    if (rc == ATT_OK)
        rc = att_instance_best(worker->instance, &best, &error);
    return answer(worker, ATT_WORKER_ASK, rc, &error, settings, samples, rc == ATT_OK ? count : 0,
                  &best);
}

static void tell(att_worker_t *worker, att_wire_reader_t *reader)
{
    att_setting_t setting;
    att_result_t result;
    att_wire_read(reader, &setting, sizeof setting);
    att_wire_read(reader, &result, sizeof result);
    size_t bytes = result.sample_count * sizeof(double);
    const void *bytes_at = att_wire_peek(reader, bytes);
    double *samples = malloc(bytes > 0 ? bytes : 1);
    if (bytes_at == NULL || samples == NULL || worker->instance == NULL) {
        worker->told_status =
            att_fail(&worker->told_error, ATT_EINPUT, "malformed result to a strategy worker");
    } else if (worker->told_status == ATT_OK) {
        memcpy(samples, bytes_at, bytes);
        result.samples_us = samples;
        worker->told_status =
            att_instance_tell(worker->instance, &setting, &result, &worker->told_error);
    }
    free(samples);
}

void att_worker_serve(int fd)
{
    att_worker_t worker = {.wire = att_wire_open(fd)};
    if (worker.wire == NULL)
        return;
    uint32_t kind;
    const uint8_t *payload;
    size_t length;
    int rc = 0;
    while (rc == 0 && att_wire_get(worker.wire, &kind, &payload, &length) > 0) {
        att_wire_reader_t reader = {.at = payload, .left = length};
        switch (kind) {
        case ATT_WORKER_BEGIN:
        case ATT_WORKER_CHECK:
            rc = begin(&worker, kind, &reader);
            break;
        case ATT_WORKER_ASK:
            rc = ask(&worker, &reader);
            break;
        case ATT_WORKER_TELL:
            tell(&worker, &reader);
            break;
        default:
            rc = -1;
        }
    }
    /* Nobody waits for a destroy that hangs. */
    alarm(5);
    att_instance_destroy(worker.instance);
    att_wire_close(worker.wire);
}
