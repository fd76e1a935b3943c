#include "cli/sim_entry.h"

#include "base/log.h"
#include "cli/sim_plot.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Everything that one entry needs while it runs. */
typedef struct att_sim_scene {
    const att_sim_options_t *options;
    struct att_surface *surface;
    struct att_sim_task *task;
    att_sim_contest_config_t config;
    att_sim_contest_t contest;
    int last_load;
    char label[160];
} att_sim_scene_t;

static void show_progress(void *context, uint32_t done, uint32_t jobs)
{
    const att_sim_scene_t *scene = context;
    fprintf(stderr, "\r%.60s: %u of %u runs\033[K%s", scene->label, done, jobs,
            done == jobs ? "\r\033[K" : "");
    fflush(stderr);
}

static void name_scene(att_sim_scene_t *scene, const att_sim_entry_t *entry)
{
    const att_surface_info_t *info = att_surface_info(scene->surface);
    const att_sim_conditions_t *c = &scene->config.run.conditions;
    const char *load = c->count > 1 ? "schedule" : info->loads[c->spans[0].load];
    if (entry->label != NULL)
        snprintf(scene->label, sizeof scene->label, "%s", entry->label);
    else if (info->load_count == 1 || strcmp(load, "none") == 0)
        snprintf(scene->label, sizeof scene->label, "%s", info->name);
    else
        snprintf(scene->label, sizeof scene->label, "%s@%s", info->name, load);
}

static int set_scene(att_sim_scene_t *scene, const att_sim_entry_t *entry,
                     struct att_strategy_host *host, att_error_t *error)
{
    const att_sim_options_t *o = scene->options;
    int rc = att_surface_open(entry->surface, &scene->surface, error);
    if (rc != ATT_OK)
        return rc;
    const att_surface_info_t *info = att_surface_info(scene->surface);
    att_sim_task_config_t task = {.collective = entry->collective,
                                  .bytes = entry->bytes,
                                  .six_knobs = o->six_knobs,
                                  .objective = o->objective,
                                  .step = o->step};
    rc = att_sim_task_create(scene->surface, &task, &scene->task, error);
    if (rc != ATT_OK)
        return rc;
    scene->config = (att_sim_contest_config_t){.task = scene->task,
                                               .host = host,
                                               .strategy_count = o->strategy_count,
                                               .seeds = o->seeds,
                                               .first_seed = o->first_seed,
                                               .budget = o->budget,
                                               .workers = o->workers,
                                               .limit_s = o->limit_s};
    memcpy(scene->config.strategies, o->strategies, sizeof o->strategies);
    att_sim_run_config_t *run = &scene->config.run;
    *run = (att_sim_run_config_t){.noise = o->noise >= 0 ? o->noise : info->noise,
                                  .lead = o->lead,
                                  .samples = o->samples,
                                  .discard = o->discard,
                                  .max_slowdown = o->max_slowdown};
    const att_sim_task_config_t *made = att_sim_task_config(scene->task);
    if (o->noise < 0)
        run->residuals = att_surface_residuals(scene->surface, made->collective, made->bytes,
                                               &run->residual_count);
    run->conditions.drift = o->drift;
    rc =
        att_sim_conditions_parse(scene->surface, entry->load != NULL ? entry->load : info->loads[0],
                                 &run->conditions, error);
    if (rc != ATT_OK)
        return rc;
    if (o->step.compute_us > 0 && o->objective == ATT_SIM_COLLECTIVE)
        att_log(ATT_LOG_WARN,
                "the objective is the collective alone, isolated from the compute beside it: a "
                "setting that is fastest alone may slow the step (--objective step)");
    scene->last_load = run->conditions.spans[run->conditions.count - 1].load;
    name_scene(scene, entry);
    scene->config.label = scene->label;
    if (!o->quiet && isatty(STDERR_FILENO)) {
        scene->config.progress = show_progress;
        scene->config.context = scene;
    }
    return ATT_OK;
}

static uint32_t index_of(const att_sim_options_t *o, const char *strategy)
{
    for (uint32_t i = 0; i < o->strategy_count; i++)
        if (strategy != NULL && strcmp(o->strategies[i], strategy) == 0)
            return i;
    return 0;
}

static int report_rows(const att_sim_scene_t *scene, const att_sim_entry_t *entry,
                       att_sim_report_t *report, att_error_t *error)
{
    att_sim_row_t rows[ATT_SIM_STRATEGIES];
    const att_sim_row_t *descent = NULL;
    uint32_t count = scene->config.strategy_count;
    int rc = ATT_OK;
    att_sim_report_heading(scene->label, scene->task, scene->last_load, &scene->contest,
                           scene->config.run.noise);
    for (uint32_t i = 0; rc == ATT_OK && i < count; i++) {
        rows[i] = (att_sim_row_t){.surface = scene->label,
                                  .strategy = scene->config.strategies[i],
                                  .held_out = entry->held_out,
                                  .noise = scene->config.run.noise};
        att_sim_row_fill(&scene->contest, i, scene->task, scene->last_load, &rows[i]);
        if (strcmp(rows[i].strategy, ATT_SIM_REFERENCE) == 0)
            descent = &rows[i];
        rc = att_sim_report_row(report, &rows[i], error);
    }
    if (rc == ATT_OK && descent != NULL && descent != &rows[0])
        att_sim_verdict_add(&report->verdict, rows, count, descent);
    return rc;
}

static int report_duels(const att_sim_scene_t *scene, att_sim_report_t *report, att_error_t *error)
{
    uint32_t against = index_of(scene->options, scene->options->against);
    int rc = ATT_OK;
    if (scene->config.strategy_count > 1)
        att_sim_report_duels_heading(scene->config.strategies[against]);
    for (uint32_t i = 0; i < scene->config.strategy_count; i++) {
        for (int m = 0; rc == ATT_OK && i != against && m < ATT_SIM_MEASURES; m++) {
            if (m == ATT_SIM_GAP_AT_STOP &&
                scene->contest.stop_checkpoint == scene->contest.checkpoint_count)
                continue; /* the budget ends before */
            att_sim_duel_t duel = {.a = scene->config.strategies[i],
                                   .b = scene->config.strategies[against]};
            if (att_sim_duel(&scene->contest, i, against, (att_sim_measure_t)m, &duel) != ATT_OK)
                return att_fail(error, ATT_ENOMEM, "no memory for a comparison");
            rc = att_sim_report_duel(report, scene->label, &duel, error);
        }
    }
    return rc;
}

/* A picture that cannot be drawn is no reason to lose the numbers: it is told after them. */
static void note_plot(att_sim_report_t *report, int rc, const att_error_t *why)
{
    if (rc != ATT_OK && report->plots_failed++ == 0)
        report->plot_error = *why;
}

/* The first seed of each strategy once more, for the trace and the plots. */
static int draw_entry(att_sim_scene_t *scene, att_sim_report_t *report, att_error_t *error)
{
    const att_sim_options_t *o = scene->options;
    FILE *trace = report->trace;
    att_sim_path_t path;
    att_error_t why = {""};
    int rc = ATT_OK;
    if (o->plots != NULL)
        note_plot(
            report,
            att_sim_plot_convergence(o->plots, scene->label, &scene->config, &scene->contest, &why),
            &why);
    for (uint32_t i = 0; i < scene->config.strategy_count && (trace != NULL || o->plots != NULL);
         i++) {
        if (rc == ATT_OK)
            rc = att_sim_trace_run(&scene->config, &scene->contest, i, scene->label, trace, &path,
                                   error);
        if (rc == ATT_OK && o->plots != NULL)
            note_plot(report,
                      att_sim_plot_path(o->plots, scene->label, scene->task, scene->last_load,
                                        scene->config.strategies[i], &path, &why),
                      &why);
    }
    return rc;
}

int att_sim_entry_run(const att_sim_options_t *options, const att_sim_entry_t *entry,
                      struct att_strategy_host *host, att_sim_report_t *report, att_error_t *error)
{
    att_sim_scene_t scene = {.options = options};
    int rc = set_scene(&scene, entry, host, error);
    if (rc == ATT_OK)
        rc = att_sim_contest_run(&scene.config, &scene.contest, error);
    if (rc == ATT_OK)
        rc = report_rows(&scene, entry, report, error);
    if (rc == ATT_OK)
        rc = report_duels(&scene, report, error);
    if (rc == ATT_OK)
        rc = draw_entry(&scene, report, error);
    att_sim_contest_free(&scene.contest);
    att_sim_task_destroy(scene.task);
    att_surface_close(scene.surface);
    return rc;
}
