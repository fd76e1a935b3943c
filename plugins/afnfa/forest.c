#include "forest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xgboost/c_api.h>

struct forest {
    BoosterHandle booster;
};

void forest_features(att_setting_t x, float features[FOREST_FEATURES])
{
    features[0] = x.algorithm;
    features[1] = x.protocol;
    features[2] = x.transport;
    features[3] = x.channels > 0 ? log2f(x.channels) : 0;
    features[4] = x.threads > 0 ? log2f(x.threads) : 0;
    features[5] = x.chunk_bytes > 0 ? log2f((float)x.chunk_bytes) : 0;
}

static int failed(char *why, size_t size)
{
    const char *text = XGBGetLastError();
    snprintf(why, size, "XGBoost: %.*s", (int)strcspn(text, "\n"), text);
    return -1;
}

/* scikit-learn's forest, which AFNFA used, splits on all features and draws rows with replacement;
 * XGBoost draws without, 63 % of the rows being what a bootstrap sample has of them. */
static int set(BoosterHandle booster, int trees, uint64_t seed)
{
    char count[16], number[24];
    snprintf(count, sizeof count, "%d", trees);
    snprintf(number, sizeof number, "%u", (unsigned)(seed & 0x7fffffff));
    const char *const parameters[][2] = {
        {"booster", "gbtree"},        {"objective", "reg:squarederror"},
        {"num_parallel_tree", count}, {"learning_rate", "1"},
        {"subsample", "0.632"},       {"reg_lambda", "0"},
        {"max_depth", "12"},          {"min_child_weight", "1"},
        {"tree_method", "exact"},     {"nthread", "1"},
        {"verbosity", "0"},           {"seed", number}};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof parameters / sizeof *parameters; i++)
        rc = XGBoosterSetParam(booster, parameters[i][0], parameters[i][1]);
    return rc;
}

struct forest *forest_grow(const float *features, const float *speeds, int rows, int trees,
                           uint64_t seed, char *why, size_t size)
{
    struct forest *forest = calloc(1, sizeof *forest);
    DMatrixHandle data = NULL;
    if (forest == NULL ||
        XGDMatrixCreateFromMat(features, (bst_ulong)rows, FOREST_FEATURES, NAN, &data) != 0 ||
        XGDMatrixSetFloatInfo(data, "label", speeds, (bst_ulong)rows) != 0 ||
        XGBoosterCreate(&data, 1, &forest->booster) != 0 ||
        set(forest->booster, trees, seed) != 0 ||
        XGBoosterUpdateOneIter(forest->booster, 0, data) != 0) {
        failed(why, size);
        forest_destroy(forest);
        forest = NULL;
    }
    if (data != NULL)
        XGDMatrixFree(data);
    return forest;
}

int forest_predict(struct forest *forest, const float *features, int rows, float *speeds, char *why,
                   size_t size)
{
    static const char how[] = "{\"type\":0,\"training\":false,\"iteration_begin\":0,"
                              "\"iteration_end\":0,\"strict_shape\":false}";
    DMatrixHandle data;
    if (XGDMatrixCreateFromMat(features, (bst_ulong)rows, FOREST_FEATURES, NAN, &data) != 0)
        return failed(why, size);
    const bst_ulong *shape;
    bst_ulong dimensions;
    const float *result;
    int rc = XGBoosterPredictFromDMatrix(forest->booster, data, how, &shape, &dimensions, &result);
    if (rc == 0)
        memcpy(speeds, result, (size_t)rows * sizeof *speeds);
    else
        failed(why, size);
    XGDMatrixFree(data);
    return rc;
}

void forest_destroy(struct forest *forest)
{
    if (forest == NULL)
        return;
    if (forest->booster != NULL)
        XGBoosterFree(forest->booster);
    free(forest);
}
