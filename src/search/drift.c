#include "search/drift.h"

#include "search/statistics.h"

#include <math.h>

void att_drift_settle(att_drift_t *drift)
{
    *drift = (att_drift_t){.searches = drift->searches};
}

int att_drift_sample(att_drift_t *drift, double duration_us)
{
    drift->seen++;
    drift->values[drift->count++] = duration_us;
    if (drift->reference_us == 0) {
        if (drift->count < ATT_DRIFT_REFERENCE)
            return 0;
        drift->reference_us = att_median(drift->values, drift->count);
        /* 1.25 is what a median loses against a mean, for normal noise. */
        double error =
            1.25 * att_relative_spread(drift->values, drift->count) / sqrt(ATT_DRIFT_WINDOW);
        drift->limit = fmax(ATT_DRIFT_CHANGE, ATT_DRIFT_ERRORS * error);
        drift->count = 0;
        return 0;
    }
    if (drift->count < ATT_DRIFT_WINDOW)
        return 0;
    drift->latest_us = att_median(drift->values, drift->count);
    drift->count = 0;
    double change = drift->latest_us / drift->reference_us - 1;
    if (change > drift->limit)
        drift->run = drift->run > 0 ? drift->run + 1 : 1;
    else if (change < -drift->limit)
        drift->run = drift->run < 0 ? drift->run - 1 : -1;
    else
        drift->run = 0;

    uint32_t shift = drift->searches - 1 < 20 ? drift->searches - 1 : 20;
    uint64_t hold = drift->searches == 0 ? 0 : (uint64_t)ATT_DRIFT_HOLD << shift;
    if (drift->seen < hold || (drift->run < ATT_DRIFT_WINDOWS && drift->run > -ATT_DRIFT_WINDOWS))
        return 0;
    drift->searches++;
    return 1;
}
