/*
 * optimum SURFACE TASKS.JSON [LARGEST]: how far every task's setting in a finished run is from the
 * fastest one of the surface, by the surface itself. One line a task; exit status 1 when one of
 * them is slower than the optimum by more than LARGEST (default 0.02), or is not settled.
 *
 * A setting is judged by what runs: NCCL shares a message over channels in cells, and of 12
 * channels that are asked for with 1 MiB and two ranks 11 get a part (att_decision_lay_out).
 */
#include "base/names.h"
#include "fabric/datatype.h"
#include "fabric/decision.h"
#include "surface/surface.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static att_setting_t read_setting(const json_t *row)
{
    const json_t *s = json_object_get(row, "setting");
    att_setting_t setting = ATT_SETTING_KEEP;
    setting.algorithm =
        (int8_t)att_algorithm_parse(json_string_value(json_object_get(s, "algorithm")));
    setting.protocol =
        (int8_t)att_protocol_parse(json_string_value(json_object_get(s, "protocol")));
    setting.channels = (uint16_t)json_integer_value(json_object_get(s, "channels"));
    setting.chunk_bytes = (uint32_t)json_integer_value(json_object_get(s, "chunk"));
    return setting;
}

/* The setting with the channels that take part in it; KEEP stays NCCL's choice. */
static att_setting_t as_run(const struct att_surface *surface, int ranks, int collective,
                            uint64_t bytes, att_setting_t asked)
{
    if (att_setting_is_keep(asked))
        asked = att_surface_default(surface, collective, bytes);
    att_setting_t run = att_surface_resolve(surface, collective, bytes, asked);
    att_decider_t decider = {.ranks = ranks,
                             .algorithms = ATT_ALGORITHMS,
                             .channels = att_surface_info(surface)->channels_ceiling,
                             .surface = surface};
    att_task_t task = {.function = collective,
                       .count = bytes,
                       .type = ncclInt8,
                       .algorithm = run.algorithm,
                       .protocol = run.protocol,
                       .max_channels = run.channels};
    if (att_task_bytes(&task, ranks) > bytes) /* counted by the smaller buffer */
        task.count /= (size_t)ranks;
    if (att_decision_lay_out(&decider, &task, 1) != ncclSuccess)
        exit(2);
    asked.channels = (uint16_t)task.channels;
    return asked;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    double largest = argc > 3 ? atof(argv[3]) : 0.02;
    struct att_surface *surface;
    att_error_t error;
    if (att_surface_open(argv[1], &surface, &error) != ATT_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 2;
    }
    json_error_t where;
    json_t *root = json_load_file(argv[2], 0, &where);
    if (root == NULL) {
        fprintf(stderr, "%s: %s\n", argv[2], where.text);
        return 2;
    }
    int failed = 0;
    size_t i;
    json_t *task;
    json_array_foreach(json_object_get(root, "tasks"), i, task)
    {
        int collective =
            att_collective_parse(json_string_value(json_object_get(task, "collective")));
        uint64_t bytes = (uint64_t)json_integer_value(json_object_get(task, "bytes"));
        bool kept = json_is_true(json_object_get(task, "kept_default"));
        const char *phase = json_string_value(json_object_get(task, "phase"));
        int ranks = (int)json_integer_value(json_object_get(task, "ranks"));
        att_setting_t best, tuned = read_setting(json_object_get(task, kept ? "default" : "tuned"));
        att_setting_t keep = as_run(surface, ranks, collective, bytes, ATT_SETTING_KEEP);
        att_setting_t ran = kept ? keep : as_run(surface, ranks, collective, bytes, tuned);
        double optimum = att_surface_optimum(surface, collective, bytes, 0, 0, &best);
        double mine = att_surface_duration_us(surface, collective, bytes, ran, 0);
        double native = att_surface_duration_us(surface, collective, bytes, keep, 0);
        bool settled = phase != NULL && strcmp(phase, "settled") == 0;
        bool good = settled && mine > 0 && mine <= optimum * (1 + largest);
        char text[ATT_SETTING_TEXT], best_text[ATT_SETTING_TEXT];
        printf("%-4s group %s ranks %d bytes %llu %s: %s (%d channels run) %.1f us, optimum %s "
               "%.1f us "
               "(%.2f %% above), default %.1f us\n",
               good ? "ok" : "MISS", json_string_value(json_object_get(task, "group")), ranks,
               (unsigned long long)bytes, phase, att_setting_text(tuned, text, sizeof text),
               ran.channels, mine, att_setting_text(best, best_text, sizeof best_text), optimum,
               100 * (mine / optimum - 1), native);
        failed |= !good;
    }
    json_decref(root);
    att_surface_close(surface);
    return failed;
}
