#include "search/race.h"

#include "search/statistics.h"

#include <math.h>

static void add_runner(att_race_t *race, att_setting_t setting)
{
    for (uint32_t i = 0; i < race->count; i++)
        if (att_setting_equal(race->runners[i].setting, setting))
            return;
    att_runner_t *runner = &race->runners[race->count++];
    *runner = (att_runner_t){.setting = setting};
    for (uint32_t i = 0; i < ATT_RACE_LISTS * ATT_RACE_ROUNDS; i++)
        runner->logs[i] = NAN;
}

void att_race_begin(att_race_t *race, const att_ranking_t *ranking, const att_setting_t *extra,
                    uint32_t extra_count, uint32_t search_calls)
{
    *race = (att_race_t){.search_calls = search_calls > 0 ? search_calls : 1};
    add_runner(race, ATT_SETTING_KEEP);
    double limit = ranking->count > 0 ? ranking->entries[0].score * ATT_RACE_NEAR : 0;
    for (uint32_t i = 0; i < ranking->count && race->count < 1 + ATT_RACE_CANDIDATES; i++)
        if (ranking->entries[i].score <= limit)
            add_runner(race, ranking->entries[i].setting);
    for (uint32_t i = 0; i < extra_count && i < ATT_RACE_EXTRA; i++)
        add_runner(race, extra[i]);
}

/* How much slower than another runner, over the rounds in which both ran. */
typedef struct behind {
    double mean;    /* of the logarithms' differences, near the relative difference */
    double squares; /* sum of their squared deviations from it */
    uint32_t rounds;
} behind_t;

static behind_t behind(const att_race_t *race, const att_runner_t *a, const att_runner_t *b)
{
    double differences[ATT_RACE_LISTS * ATT_RACE_ROUNDS] = {0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < race->rounds; i++)
        if (!isnan(a->logs[i]) && !isnan(b->logs[i]))
            differences[n++] = a->logs[i] - b->logs[i];
    double deviation = att_stddev(differences, n);
    return (behind_t){.mean = att_midmean(differences, n),
                      .squares = n < 2 ? 0 : deviation * deviation * (n - 1),
                      .rounds = n};
}

/* Of those that are in and gave samples; NULL when none did. */
static const att_runner_t *fastest_of(const att_race_t *race)
{
    const att_runner_t *fastest = NULL;
    for (uint32_t i = 0; i < race->count; i++) {
        const att_runner_t *r = &race->runners[i];
        if (!r->out && r->count >= ATT_RACE_LEAST &&
            (fastest == NULL || behind(race, r, fastest).mean < 0))
            fastest = r;
    }
    return fastest;
}

/* Variance of a round's difference, from all who are in: each alone has few rounds. INFINITY: not
 * known yet. */
static double variance_of(const att_race_t *race, const att_runner_t *best)
{
    double squares = 0;
    uint32_t freedom = 0;
    for (uint32_t i = 0; i < race->count; i++) {
        const att_runner_t *r = &race->runners[i];
        behind_t b = behind(race, r, best);
        if (r == best || r->out || b.rounds < 2)
            continue;
        squares += b.squares;
        freedom += b.rounds - 1;
    }
    return freedom > 0 ? squares / freedom : INFINITY;
}

void att_race_judge(att_race_t *race)
{
    uint32_t rounds = 0;
    for (uint32_t i = 0; i < race->count; i++) {
        rounds = race->runners[i].blocks > rounds ? race->runners[i].blocks : rounds;
        race->runners[i].blocks = 0;
    }
    race->rounds += rounds;
    const att_runner_t *best = fastest_of(race);
    if (best == NULL)
        return;
    double variance = variance_of(race, best);
    double worth = ATT_RACE_WORTH * race->calls / race->search_calls / (race->count - 1);
    for (uint32_t i = 0; i < race->count; i++) {
        att_runner_t *r = &race->runners[i];
        behind_t b = behind(race, r, best);
        if (r != best && b.rounds >= ATT_RACE_FIRST &&
            att_expected_gain(-b.mean, sqrt(variance / b.rounds)) <= worth)
            r->out = true;
    }
}

bool att_race_over(const att_race_t *race)
{
    uint32_t in = 0;
    for (uint32_t i = 0; i < race->count; i++)
        in += !race->runners[i].out;
    return in < 2 || race->lists >= ATT_RACE_LISTS;
}

void att_race_list(att_race_t *race, att_playlist_t *list)
{
    uint32_t in[1 + ATT_RACE_CANDIDATES + ATT_RACE_EXTRA], n = 0;
    for (uint32_t i = 0; i < race->count; i++)
        if (!race->runners[i].out)
            in[n++] = i;
    if (n == 0)
        return;
    uint32_t rounds = ATT_PLAN_ENTRIES / n;
    rounds = rounds > ATT_RACE_ROUNDS ? ATT_RACE_ROUNDS : rounds;
    for (uint32_t round = 0; round < rounds; round++)
        for (uint32_t k = 0; k < n; k++) {
            /* Rotated, so that nobody always runs behind the same neighbour. */
            uint32_t i = in[(k + round + race->lists) % n];
            att_playlist_add(list, race->runners[i].setting, list->discard + ATT_RACE_BLOCK,
                             ATT_PLAY_FINALIST, i);
        }
    race->lists++;
}

void att_race_ran(att_race_t *race, const att_play_t *play)
{
    att_runner_t *runner = &race->runners[play->index];
    if (runner->calls == 0)
        runner->first_call = play->first;
    runner->calls += play->calls;
    race->calls += play->calls;
    for (uint32_t i = 0; i < play->count && runner->count < ATT_PLAY_SAMPLES; i++)
        runner->samples_us[runner->count++] = play->samples_us[i];
    uint32_t round = race->rounds + runner->blocks++;
    if (play->count > 0 && round < ATT_RACE_LISTS * ATT_RACE_ROUNDS)
        runner->logs[round] = log(att_midmean(play->samples_us, play->count));
}

uint32_t att_race_winner(const att_race_t *race)
{
    const att_runner_t *fastest = fastest_of(race), *winner = fastest;
    if (fastest == NULL || fastest == race->runners)
        return 0;
    for (uint32_t i = 1; i < race->count; i++) {
        const att_runner_t *r = &race->runners[i];
        uint16_t channels = r->setting.channels;
        if (r->count >= ATT_RACE_LEAST && channels != 0 && channels < winner->setting.channels &&
            behind(race, r, fastest).mean <= ATT_RACE_TIE)
            winner = r;
    }
    return (uint32_t)(winner - race->runners);
}
