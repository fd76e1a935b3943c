/* The journal of a recording that goes on, behind a first line that fits, of any bytes: refused
 * with one line, or samples that are durations, and something to measure that is of the grid. */
#include "cli/bench_recording.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SETTINGS 6

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/tmp/att-fuzz-XXXXXX", path[64], journal[80];
static att_setting_t settings[SETTINGS];
static const att_recording_plan_t plan = {
    .repeats = 2, .again = 3, .again_share = 0.4, .front = 2, .front_samples = 4, .batch = 1};
static const att_t4_header_t header = {.name = "fuzz",
                                       .state = "partial",
                                       .collective = 0,
                                       .bytes = 1 << 20,
                                       .load = "none",
                                       .type = "float",
                                       .ranks = 4,
                                       .nodes = 1};

static void clean(void)
{
    unlink(journal);
    rmdir(folder);
}

static void start(void)
{
    if (mkdtemp(folder) == NULL)
        abort();
    snprintf(path, sizeof path, "%s/s.json.gz", folder);
    snprintf(journal, sizeof journal, "%s/s.partial.jsonl", folder);
    for (int i = 0; i < SETTINGS; i++) {
        settings[i] = ATT_SETTING_KEEP;
        settings[i].channels = (uint16_t)i;
    }
    atexit(clean);
}

/* The recording, or NULL with its one line. */
static int open_it(att_recording_t *r)
{
    att_error_t error = {""};
    int rc = att_recording_open(path, &header, "2.30.7", &plan, settings, SETTINGS, r, &error);
    if (rc != ATT_OK && (error.text[0] == '\0' || strchr(error.text, '\n') != NULL))
        abort();
    return rc;
}

static void check(const double *samples, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!(samples[i] > 0 && isfinite(samples[i])))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    att_recording_t r;
    if (path[0] == '\0')
        start();
    unlink(journal);
    if (open_it(&r) != ATT_OK) /* writes the first line */
        abort();
    att_recording_close(&r);
    int fd = open(journal, O_WRONLY | O_APPEND);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    close(fd);
    if (open_it(&r) != ATT_OK)
        return 0;
    for (int i = 0; i < SETTINGS; i++) {
        if (r.points[i].sample_count > (uint32_t)plan.repeats)
            abort();
        check(r.points[i].samples, r.points[i].sample_count);
        check(r.points[i].again, r.points[i].again_count);
    }
    int index = -1;
    att_recording_kind_t kind;
    for (int i = 0; i < 100 && att_recording_next(&r, &index, &kind); i++) {
        if (index < 0 || index >= SETTINGS)
            abort();
        if (kind == ATT_RECORDING_PROBE ? att_recording_probe(&r, index, 5 + index, NULL)
                                        : att_recording_sample(&r, index, kind, 5 + index, NULL))
            abort();
    }
    att_recording_close(&r);
    return 0;
}
