/*
 * noise: what makes one call of a simulated job longer or shorter than the surface says.
 *
 * Log-normal with median 1: durations are positive and skewed to the slow side, and the noiseless
 * duration stays the median of the samples. The factor follows from (seed, call) alone, so that two
 * strategies under one seed meet the same noise on the same call.
 */
#ifndef ATT_SIM_NOISE_H
#define ATT_SIM_NOISE_H

#include <stdint.h>

/* `deviation` is the relative standard deviation of one sample; 0: the factor is 1. */
double att_sim_noise(double deviation, uint64_t seed, uint64_t call);
/* Uniform in [0, 1), from (seed, call) alone. */
double att_sim_uniform(uint64_t seed, uint64_t call);

#endif
