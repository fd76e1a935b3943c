#include "sim/noise.h"

#include <math.h>

static uint64_t mix(uint64_t value) /* splitmix64's finaliser */
{
    value += 0x9e3779b97f4a7c15ull;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
    value = (value ^ value >> 27) * 0x94d049bb133111ebull;
    return value ^ value >> 31;
}

double att_sim_uniform(uint64_t seed, uint64_t call)
{
    return (double)(mix(mix(seed) ^ call) >> 11) * 0x1p-53;
}

double att_sim_noise(double deviation, uint64_t seed, uint64_t call)
{
    if (deviation <= 0)
        return 1;
    uint64_t first = mix(mix(seed) ^ call), second = mix(first);
    double u = ((double)(first >> 11) + 1) * 0x1p-53; /* (0, 1] */
    double v = (double)(second >> 11) * 0x1p-53;
    double normal = sqrt(-2 * log(u)) * cos(2 * M_PI * v);
    /* Deviation over mean of exp(s z) is sqrt(exp(s^2) - 1). */
    return exp(sqrt(log1p(deviation * deviation)) * normal);
}
