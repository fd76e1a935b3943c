#include "control/objective.h"

#include "search/statistics.h"

#define FEWEST 5    /* calls of each, for a median */
#define MARGIN 0.02 /* gains and losses below it are noise */

static int same_pair(att_setting_t a, att_setting_t b)
{
    return a.algorithm == b.algorithm && a.protocol == b.protocol;
}

int att_objective_side(att_setting_t native, att_setting_t winner, att_setting_t used)
{
    int is_native = same_pair(native, used) && native.channels == used.channels;
    int exactly = winner.channels == 0 || winner.channels == used.channels;
    int is_winner =
        same_pair(winner, used) && (exactly || (!is_native && used.channels < winner.channels));
    return is_native == is_winner ? -1 : is_winner;
}

void att_objective_add(att_objective_t *o, int winner, double collective_us, double step_us)
{
    uint32_t n = o->count[winner];
    if (!(collective_us > 0) || !(step_us > 0) || n == ATT_OBJECTIVE_CALLS)
        return;
    o->collective_us[winner][n] = collective_us;
    o->step_us[winner][n] = step_us;
    o->count[winner]++;
}

static double gain(const double us[2][ATT_OBJECTIVE_CALLS], const uint32_t count[2])
{
    return att_median(us[0], count[0]) / att_median(us[1], count[1]) - 1;
}

int att_objective_disagrees(const att_objective_t *o, double *collective_gain, double *step_gain)
{
    if (o->count[0] < FEWEST || o->count[1] < FEWEST)
        return 0;
    double collective = gain(o->collective_us, o->count), step = gain(o->step_us, o->count);
    if (!((collective > MARGIN && step < -MARGIN) || (collective < -MARGIN && step > MARGIN)))
        return 0;
    *collective_gain = collective;
    *step_gain = step;
    return 1;
}
