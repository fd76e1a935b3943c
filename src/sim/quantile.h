/* quantile: of values in any order, by nearest rank: the smallest value that at least a share `q`
 * of all values do not exceed. With few values a high quantile is the largest one. Infinite values
 * (never) are allowed; NAN for no values or no memory. The median (0.5) of an even number is the
 * lower middle one, so that it is always a value that occurred. */
#ifndef ATT_SIM_QUANTILE_H
#define ATT_SIM_QUANTILE_H

#include <stdint.h>

double att_quantile(const double *values, uint32_t count, double q);

#endif
