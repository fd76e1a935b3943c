/* fixture: the space and result that several tests use. */
#ifndef ATT_TEST_FIXTURE_H
#define ATT_TEST_FIXTURE_H

#include "search/space.h"
#include "search/strategy_host.h"

/* AllReduce of 80 MiB on 8 ranks, channels 1..64; one subspace (ring/simple) or six. */
struct att_space_owned *fixture_space(int six);
/* An OK result with one sample. */
att_result_t fixture_result(const double *sample_us);
/* Poll until the answer is there. */
int fixture_answer(struct att_search *search, att_setting_t *settings, uint32_t *count,
                   att_error_t *error);

#endif
