/* forest: a random forest that predicts the speed of a setting, by XGBoost's C API in its forest
 * mode: one round of many trees on samples of rows and columns, each with full weight. */
#ifndef ATT_AFNFA_FOREST_H
#define ATT_AFNFA_FOREST_H

#include "attune/setting.h"

#define FOREST_FEATURES 6

struct forest;

/* Numbers that a tree splits: A, P, T, and octaves of channels, threads and chunk. */
void forest_features(att_setting_t setting, float features[FOREST_FEATURES]);
/* rows x FOREST_FEATURES, row-major. NULL and one line in `why` when XGBoost fails. */
struct forest *forest_grow(const float *features, const float *speeds, int rows, int trees,
                           uint64_t seed, char *why, size_t size);
/* 0, or -1 and why. */
int forest_predict(struct forest *forest, const float *features, int rows, float *speeds, char *why,
                   size_t size);
void forest_destroy(struct forest *forest); /* NULL is fine */

#endif
