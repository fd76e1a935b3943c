#include "optimizer_fixture.h"

#include "base/log.h"
#include "fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct att_space_owned *space;
struct att_strategy_host *host;

/* NCCL's choice takes 1000 us, n channels take the n-th value; `shifted` replaces it under drift.
 */
double table[65];

double from_table(void *context, att_setting_t setting)
{
    (void)context;
    return setting.channels == 0 ? 1000 : table[setting.channels];
}

lines_t lines;

static void on_trial(void *context, const att_trial_t *trial)
{
    assert_ptr_equal(context, &lines);
    assert_int_equal(trial->number, lines.count + 1);
    assert_true(lines.count < LINES);
    for (uint32_t i = 0; i < trial->result.sample_count; i++)
        assert_true(trial->result.samples_us[i] > 0);
    lines.at[lines.count++] = *trial;
}

const att_trial_t *line_of(att_phase_t phase, uint16_t channels)
{
    for (uint32_t i = 0; i < lines.count; i++)
        if (lines.at[i].phase == phase && lines.at[i].setting.channels == channels)
            return &lines.at[i];
    fail_msg("no line of phase %s with %u channels", att_phase_name(phase), channels);
    return NULL;
}

att_optimizer_config_t config_of(const char *strategy)
{
    return (att_optimizer_config_t){
        .strategy = strategy, .seed = 7, .samples = 5, .discard = 1, .max_slowdown = 3};
}

job_t job_of(const att_optimizer_config_t *config)
{
    job_t job = {.duration = from_table,
                 .noise = 0.03,
                 .delay = 2,
                 .random = config->seed + 1,
                 .incumbent = ATT_SETTING_KEEP};
    att_error_t error;
    lines.count = 0;
    if (att_optimizer_create(att_space_view(space), config, host, on_trial, &lines, &job.optimizer,
                             &error) != ATT_OK)
        fail_msg("%s", error.text);
    return job;
}

att_optimizer_status_t status_of(const job_t *job)
{
    att_optimizer_status_t status;
    att_optimizer_status(job->optimizer, &status);
    return status;
}

void end(job_t *job)
{
    att_optimizer_destroy(job->optimizer);
}

void assert_reason(const job_t *job, const char *words)
{
    att_optimizer_status_t status = status_of(job);
    if (strstr(status.reason, words) == NULL)
        fail_msg("reason \"%s\" does not say \"%s\"", status.reason, words);
}

int optimizer_setup(void **state)
{
    (void)state;
    att_log_set_level(ATT_LOG_ERROR);
    space = fixture_space(0);
    for (int i = 1; i <= 64; i++)
        table[i] = 1000;
    table[4] = 1300;
    table[7] = 900;
    table[8] = 800;
    table[9] = 860;
    table[10] = 830;
    table[11] = 780;
    table[12] = 820;
    table[13] = 850;
    table[16] = 1200;
    table[64] = 9000;
    return att_strategy_host_create(ATTUNE_TEST_PLUGINS, ATT_HOST_INPROCESS, 1, &host, NULL);
}

int optimizer_teardown(void **state)
{
    (void)state;
    att_strategy_host_destroy(host);
    att_space_destroy(space);
    return 0;
}
