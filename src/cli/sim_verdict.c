#include "cli/sim_verdict.h"

#include "base/status.h"

#include <math.h>

static const char *const promises[ATT_SIM_PROMISES] = {
    "gap at the descent's stop <= max(a third of the descent's, 0.5 %)",
    "final gap <= 2 %, geometric mean", "final gap <= 5 %, 99th percentile",
    "less time lost than every other strategy"};
static const char *const keys[ATT_SIM_PROMISES] = {"gap_at_descent_stop", "gap_final_geomean",
                                                   "gap_final_p99", "least_regret"};

int att_sim_verdict_open(att_sim_verdict_t *verdict)
{
    *verdict = (att_sim_verdict_t){.misses = json_array()};
    return verdict->misses != NULL ? ATT_OK : -ATT_ENOMEM;
}

static void judge(att_sim_verdict_t *verdict, att_sim_promise_t promise, const att_sim_row_t *row,
                  double value, double limit, const char *beside)
{
    if (value <= limit) {
        verdict->kept[promise][row->held_out]++;
        return;
    }
    json_array_append_new(
        verdict->misses, json_pack("{s:s,s:s,s:b,s:f,s:f,s:s}", "promise", keys[promise], "surface",
                                   row->surface, "held_out", row->held_out, "value",
                                   isfinite(value) ? value : -1, "limit", limit, "beside", beside));
}

void att_sim_verdict_add(att_sim_verdict_t *verdict, const att_sim_row_t *rows, uint32_t count,
                         const att_sim_row_t *descent)
{
    const att_sim_row_t *row = &rows[0], *least = NULL;
    verdict->surfaces[row->held_out]++;
    double third = descent->gap_at_descent_stop / 3;
    judge(verdict, ATT_SIM_AT_STOP, row, row->gap_at_descent_stop, third > 0.005 ? third : 0.005,
          descent->strategy);
    judge(verdict, ATT_SIM_FINAL, row, row->gap_final, 0.02, "");
    judge(verdict, ATT_SIM_P99, row, row->gap_p99, 0.05, "");
    for (uint32_t i = 1; i < count; i++)
        if (least == NULL || rows[i].regret < least->regret)
            least = &rows[i];
    if (least != NULL)
        judge(verdict, ATT_SIM_LEAST_REGRET, row, row->regret, least->regret, least->strategy);
}

void att_sim_verdict_print(const att_sim_verdict_t *verdict, const char *strategy)
{
    uint32_t open = verdict->surfaces[0], held = verdict->surfaces[1];
    printf("\n%s on %u surfaces, of which %u held out:\n", strategy, open + held, held);
    for (int i = 0; i < ATT_SIM_PROMISES; i++)
        printf("  %-66s %u of %u (held out: %u of %u)\n", promises[i],
               verdict->kept[i][0] + verdict->kept[i][1], open + held, verdict->kept[i][1], held);
    size_t n;
    json_t *miss;
    json_array_foreach(verdict->misses, n, miss)
        printf("  missed: %s on %s%s: %.4g, limit %.4g %s\n",
               json_string_value(json_object_get(miss, "promise")),
               json_string_value(json_object_get(miss, "surface")),
               json_is_true(json_object_get(miss, "held_out")) ? " (held out)" : "",
               json_real_value(json_object_get(miss, "value")),
               json_real_value(json_object_get(miss, "limit")),
               json_string_value(json_object_get(miss, "beside")));
}

json_t *att_sim_verdict_close(att_sim_verdict_t *verdict, const char *strategy)
{
    json_t *kept = json_object();
    for (int i = 0; i < ATT_SIM_PROMISES; i++)
        json_object_set_new(kept, keys[i],
                            json_pack("{s:i,s:i}", "all",
                                      (int)(verdict->kept[i][0] + verdict->kept[i][1]), "held_out",
                                      (int)verdict->kept[i][1]));
    json_t *root =
        json_pack("{s:s,s:i,s:i,s:o,s:o}", "strategy", strategy, "surfaces",
                  (int)(verdict->surfaces[0] + verdict->surfaces[1]), "surfaces_held_out",
                  (int)verdict->surfaces[1], "kept", kept, "misses", verdict->misses);
    verdict->misses = NULL;
    return root;
}
