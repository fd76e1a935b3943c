#include "sim/step.h"

double att_sim_step_us(const att_sim_step_t *step, double collective_us, int channels)
{
    double rate = 1 / (1 + step->slowdown * channels);
    if (rate * collective_us >= step->compute_us)
        return collective_us;
    return step->compute_us + (1 - rate) * collective_us;
}
