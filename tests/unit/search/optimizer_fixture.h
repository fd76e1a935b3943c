/* optimizer_fixture: a space, a host and a job with a table of durations, for the optimizer's
 * tests. */
#ifndef ATT_TEST_OPTIMIZER_FIXTURE_H
#define ATT_TEST_OPTIMIZER_FIXTURE_H

#include "job.h"
#include "search/optimizer.h"

#define LINES 4096
typedef struct lines {
    att_trial_t at[LINES];
    uint32_t count;
    uint32_t runs_of_quarantined;
} lines_t;

extern struct att_space_owned *space;
extern struct att_strategy_host *host;
extern double table[65]; /* microseconds of n channels; NCCL's choice takes 1000 */
double from_table(void *context, att_setting_t setting);
extern lines_t lines; /* what the trials log got */

int optimizer_setup(void **state);
int optimizer_teardown(void **state);
/* First line of this phase with so many channels; the test fails when there is none. */
const att_trial_t *line_of(att_phase_t phase, uint16_t channels);
att_optimizer_config_t config_of(const char *strategy);
job_t job_of(const att_optimizer_config_t *config);
att_optimizer_status_t status_of(const job_t *job);
void end(job_t *job);
void assert_reason(const job_t *job, const char *words);

#endif
