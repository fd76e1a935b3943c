#include "cli/sim_trace.h"

#include "base/names.h"

#include <inttypes.h>

const char att_sim_trace_header[] =
    "surface,strategy,call,phase,algorithm,protocol,transport,channels,threads,chunk_bytes,time_us,"
    "measured_us,best_gap\n";

typedef struct att_sim_tracer {
    const char *surface, *strategy;
    FILE *csv;
    att_sim_path_t *path;
} att_sim_tracer_t;

static void write_call(const att_sim_tracer_t *tracer, const att_sim_call_t *call)
{
    const att_setting_t *x = &call->setting;
    fprintf(tracer->csv, "%s,\"%s\",%" PRIu64 ",%s,%s,%s,%s,%u,%u,%u,%.4f,%.4f,%.6f\n",
            tracer->surface, tracer->strategy, call->call, att_phase_name(call->phase),
            att_algorithm_name(x->algorithm), att_protocol_name(x->protocol),
            att_transport_name(x->transport), x->channels, x->threads, x->chunk_bytes, call->us,
            call->measured_us, call->gap);
}

static void on_call(void *context, const att_sim_call_t *call)
{
    const att_sim_tracer_t *tracer = context;
    if (tracer->csv != NULL)
        write_call(tracer, call);
    att_sim_path_t *path = tracer->path;
    if (path == NULL)
        return;
    path->last = call->believed;
    if (att_setting_is_keep(call->setting) || call->phase != ATT_PHASE_SEARCH)
        return;
    for (uint32_t i = 0; i < path->count; i++)
        if (att_setting_equal(path->settings[i], call->setting))
            return;
    if (path->count < ATT_SIM_PATH_MOST)
        path->settings[path->count++] = call->setting;
}

int att_sim_trace_run(const att_sim_contest_config_t *config, const att_sim_contest_t *contest,
                      uint32_t strategy, const char *surface, FILE *csv, att_sim_path_t *path,
                      att_error_t *error)
{
    att_sim_tracer_t tracer = {surface, config->strategies[strategy], csv, path};
    att_sim_run_config_t run = config->run;
    run.strategy = config->strategies[strategy];
    run.budget = contest->budget;
    run.on_call = on_call;
    run.context = &tracer;
    att_sim_outcome_t outcome;
    if (path != NULL)
        *path = (att_sim_path_t){.last = ATT_SETTING_KEEP};
    return att_sim_run(config->task, &run, config->first_seed, config->host, &outcome, error);
}
