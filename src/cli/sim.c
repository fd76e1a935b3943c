#include "cli/sim.h"

#include "base/config.h"
#include "base/log.h"
#include "cli/sim_entry.h"
#include "cli/sim_options.h"
#include "cli/sim_paper.h"
#include "cli/sim_plot.h"
#include "cli/sim_suite.h"

#include <stdlib.h>
#include <string.h>

/* Without --strategy: what attune run takes, and the yardstick. */
static void choose_strategies(att_sim_options_t *o)
{
    if (o->strategy_count > 0)
        return;
    for (size_t i = 0; i < att_option_row_count; i++)
        if (strcmp(att_option_rows[i].flag, "strategy") == 0)
            o->strategies[o->strategy_count++] = att_option_rows[i].fallback;
    o->strategies[o->strategy_count++] = ATT_SIM_REFERENCE;
}

static int check_strategies(const att_sim_options_t *o, struct att_strategy_host *host,
                            att_error_t *error)
{
    int rc = att_strategy_host_check(host, ATT_SIM_REFERENCE, error);
    bool known = o->against == NULL;
    for (uint32_t i = 0; rc == ATT_OK && i < o->strategy_count; i++) {
        rc = att_strategy_host_check(host, o->strategies[i], error);
        known |= o->against != NULL && strcmp(o->against, o->strategies[i]) == 0;
    }
    if (rc == ATT_OK && !known)
        rc = att_fail(error, ATT_EUSAGE, "--against %.80s is none of the strategies that run",
                      o->against);
    return rc;
}

static int run_surfaces(const att_sim_options_t *o, struct att_strategy_host *host,
                        att_sim_report_t *report, att_error_t *error)
{
    int rc = ATT_OK;
    for (uint32_t i = 0; rc == ATT_OK && i < o->surface_count; i++) {
        att_sim_entry_t entry = {.surface = o->surfaces[i],
                                 .collective = o->collective,
                                 .bytes = o->bytes,
                                 .load = o->load};
        rc = att_sim_entry_run(o, &entry, host, report, error);
    }
    return rc;
}

static int run_suite(const att_sim_options_t *o, const att_sim_suite_t *suite,
                     struct att_strategy_host *host, att_sim_report_t *report, att_error_t *error)
{
    int rc = ATT_OK;
    for (uint32_t i = 0; rc == ATT_OK && i < suite->count; i++) {
        const att_sim_suite_entry_t *e = &suite->entries[i];
        att_sim_entry_t entry = {.surface = e->surface,
                                 .label = e->label,
                                 .collective = e->collective,
                                 .bytes = e->bytes,
                                 .load = e->load,
                                 .held_out = e->held_out};
        rc = att_sim_entry_run(o, &entry, host, report, error);
    }
    return rc;
}

/* The suite's strategies that are there; --strategy takes their place. */
static int choose_of_suite(att_sim_options_t *o, const att_sim_suite_t *suite,
                           struct att_strategy_host *host, att_error_t *error)
{
    if (o->strategy_count > 0)
        return ATT_OK;
    for (uint32_t i = 0; i < suite->strategy_count; i++) {
        int rc = att_strategy_host_check(host, suite->strategies[i], error);
        if (rc == -ATT_ENOENT)
            att_log(ATT_LOG_WARN, "the suite's %s is left out: %s", suite->strategies[i],
                    error->text);
        else if (rc != ATT_OK)
            return rc;
        else
            o->strategies[o->strategy_count++] = suite->strategies[i];
    }
    return o->strategy_count > 0
               ? ATT_OK
               : att_fail(error, ATT_ENOENT, "none of the suite's strategies was found");
}

/* What a report that is written ends with. */
static int judge(const att_sim_report_t *report)
{
    if (report->plots_failed > 0)
        att_log(ATT_LOG_WARN, "%u of the plots could not be drawn: %s", report->plots_failed,
                report->plot_error.text);
    return report->failed > 0 ? ATT_EFAIL : report->plots_failed > 0 ? ATT_ESYSTEM : 0;
}

/* *status: what to exit with when all has been done. */
static int simulate_with(att_sim_options_t *o, struct att_strategy_host *host, int *status,
                         att_error_t *error)
{
    att_sim_suite_t suite = {0};
    att_sim_report_t report;
    int rc = ATT_OK;
    if (o->mode == ATT_SIM_MODE_SUITE) {
        rc = att_sim_suite_read(o->suite_file, &suite, error);
        if (rc == ATT_OK)
            rc = choose_of_suite(o, &suite, host, error);
    } else {
        choose_strategies(o);
    }
    if (rc == ATT_OK)
        rc = check_strategies(o, host, error);
    if (rc == ATT_OK && o->plots != NULL)
        rc = att_sim_plot_prepare(o->plots, error);
    if (rc == ATT_OK)
        rc = att_sim_report_open(&report, o->json, o->csv, o->trace, error);
    if (rc == ATT_OK) {
        rc = o->mode == ATT_SIM_MODE_SUITE ? run_suite(o, &suite, host, &report, error)
                                           : run_surfaces(o, host, &report, error);
        if (rc == ATT_OK)
            rc = att_sim_report_close(&report, o->strategies[0], o->json, error);
        else
            att_sim_report_drop(&report);
        if (rc == ATT_OK)
            *status = judge(&report);
    }
    att_sim_suite_free(&suite);
    return rc;
}

static int simulate(att_sim_options_t *o, int *status, att_error_t *error)
{
    struct att_strategy_host *host;
    int rc = att_strategy_host_create(o->plugin_path, ATT_HOST_INPROCESS, 0, &host, error);
    if (rc != ATT_OK)
        return rc;
    rc = o->mode == ATT_SIM_MODE_PAPER ? att_sim_paper(o, host, error)
                                       : simulate_with(o, host, status, error);
    att_strategy_host_destroy(host);
    return rc;
}

int att_sim_main(int argc, char **argv)
{
    att_sim_options_t options;
    att_error_t error = {""};
    int rc = att_sim_options_parse(argc, argv, &options, &error);
    if (rc > 0)
        return 0;
    int status = 0;
    if (rc == ATT_OK)
        rc = simulate(&options, &status, &error);
    if (rc != ATT_OK) {
        att_log(ATT_LOG_ERROR, "%s", error.text);
        return -rc;
    }
    return status;
}
