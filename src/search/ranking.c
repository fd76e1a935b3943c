#include "search/ranking.h"

#include "search/statistics.h"

#include <math.h>

static void move_up(att_ranking_t *ranking, uint32_t i)
{
    for (; i > 0 && ranking->entries[i].score < ranking->entries[i - 1].score; i--) {
        att_ranked_t swap = ranking->entries[i];
        ranking->entries[i] = ranking->entries[i - 1];
        ranking->entries[i - 1] = swap;
    }
}

static bool same_pair(att_setting_t a, att_setting_t b)
{
    return a.algorithm == b.algorithm && a.protocol == b.protocol;
}

static void drop(att_ranking_t *ranking, uint32_t i)
{
    for (ranking->count--; i < ranking->count; i++)
        ranking->entries[i] = ranking->entries[i + 1];
}

void att_ranking_add(att_ranking_t *ranking, att_setting_t setting, double score)
{
    uint32_t i = 0;
    while (i < ranking->count && !att_setting_equal(ranking->entries[i].setting, setting))
        i++;
    if (i < ranking->count) {
        score = (score + ranking->entries[i].score) / 2;
        drop(ranking, i);
    }
    /* The slowest of its pair makes room when the pair has its share, else the slowest of all. */
    uint32_t of_pair = 0, slowest = ranking->count;
    for (i = 0; i < ranking->count; i++)
        if (same_pair(ranking->entries[i].setting, setting)) {
            of_pair++;
            slowest = i;
        }
    if (of_pair < ATT_RANKING_OF_PAIR)
        slowest = ranking->count - 1;
    if (of_pair == ATT_RANKING_OF_PAIR || ranking->count == ATT_RANKING_ROOM) {
        if (score >= ranking->entries[slowest].score)
            return;
        drop(ranking, slowest);
    }
    ranking->entries[ranking->count] = (att_ranked_t){setting, score};
    move_up(ranking, ranking->count++);
}

static void add_runner(att_race_t *race, att_setting_t setting)
{
    for (uint32_t i = 0; i < race->count; i++)
        if (att_setting_equal(race->runners[i].setting, setting))
            return;
    race->runners[race->count++] = (att_runner_t){.setting = setting};
}

void att_race_begin(att_race_t *race, const att_ranking_t *ranking, const att_setting_t *extra,
                    uint32_t extra_count)
{
    *race = (att_race_t){0};
    add_runner(race, ATT_SETTING_KEEP);
    double limit = ranking->count > 0 ? ranking->entries[0].score * ATT_RACE_NEAR : 0;
    for (uint32_t i = 0; i < ranking->count && race->count < 1 + ATT_RACE_CANDIDATES; i++) {
        uint32_t of_pair = 0;
        for (uint32_t k = 1; k < race->count; k++)
            of_pair += same_pair(race->runners[k].setting, ranking->entries[i].setting);
        if (ranking->entries[i].score <= limit && of_pair < ATT_RACE_OF_PAIR)
            add_runner(race, ranking->entries[i].setting);
    }
    for (uint32_t i = 0; i < extra_count && i < 2; i++)
        add_runner(race, extra[i]);
}

/* How much slower than another runner, over the lists in which both ran. */
typedef struct behind {
    double mean;  /* of the logarithms' differences, near the relative difference */
    double error; /* standard error of it; INFINITY below two lists */
    uint32_t lists;
} behind_t;

static behind_t behind(const att_race_t *race, const att_runner_t *a, const att_runner_t *b)
{
    double differences[ATT_RACE_LISTS] = {0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < race->judged; i++)
        if (!isnan(a->logs[i]) && !isnan(b->logs[i]))
            differences[n++] = a->logs[i] - b->logs[i];
    return (behind_t){.mean = att_midmean(differences, n),
                      .error = n < 2 ? INFINITY : att_stddev(differences, n) / sqrt(n),
                      .lists = n};
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

/* The mean duration of a list's blocks, in logarithms; then who is out. */
void att_race_judge(att_race_t *race)
{
    if (race->judged == ATT_RACE_LISTS)
        return;
    for (uint32_t i = 0; i < race->count; i++) {
        att_runner_t *r = &race->runners[i];
        r->logs[race->judged] = r->blocks > 0 ? r->sum / r->blocks : NAN;
        r->sum = 0;
        r->blocks = 0;
    }
    race->judged++;
    const att_runner_t *best = fastest_of(race);
    for (uint32_t i = 0; best != NULL && i < race->count; i++) {
        att_runner_t *r = &race->runners[i];
        behind_t b = behind(race, r, best);
        double margin = ATT_RACE_OUT * b.error;
        margin = margin < 2 * ATT_RACE_TIE ? 2 * ATT_RACE_TIE : margin;
        if (r != best && !r->out && b.lists >= ATT_RACE_FIRST && b.mean > margin)
            r->out = true;
    }
}

/* Is it open who is the fastest? */
static bool is_open(const att_race_t *race)
{
    const att_runner_t *best = fastest_of(race);
    for (uint32_t i = 0; i < race->count; i++) {
        const att_runner_t *r = &race->runners[i];
        if (r->out || r == best)
            continue;
        if (best == NULL)
            return true;
        behind_t b = behind(race, r, best);
        if (b.lists < ATT_RACE_FIRST || b.error > ATT_RACE_KNOWN)
            return true;
    }
    return false;
}

bool att_race_over(const att_race_t *race)
{
    return race->count < 2 || race->lists == ATT_RACE_LISTS || !is_open(race);
}

void att_race_list(att_race_t *race, att_playlist_t *list)
{
    uint32_t in[1 + ATT_RACE_CANDIDATES + 2], n = 0;
    for (uint32_t i = 0; i < race->count; i++)
        if (!race->runners[i].out)
            in[n++] = i;
    if (n == 0)
        return;
    uint32_t rounds = ATT_PLAN_ENTRIES / n;
    rounds = rounds > 4 ? 4 : rounds;
    uint32_t samples = race->lists < ATT_RACE_FIRST ? ATT_RACE_BLOCK : ATT_RACE_LONG;
    for (uint32_t round = 0; round < rounds; round++)
        for (uint32_t k = 0; k < n; k++) {
            /* Rotated, so that nobody always runs behind the same neighbour. */
            uint32_t i = in[(k + round + race->lists) % n];
            att_playlist_add(list, race->runners[i].setting, list->discard + samples,
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
    for (uint32_t i = 0; i < play->count && runner->count < ATT_PLAY_SAMPLES; i++)
        runner->samples_us[runner->count++] = play->samples_us[i];
    if (play->count > 0) {
        runner->sum += log(att_midmean(play->samples_us, play->count));
        runner->blocks++;
    }
}

uint32_t att_race_winner(const att_race_t *race)
{
    const att_runner_t *fastest = fastest_of(race), *winner = fastest;
    if (fastest == NULL || fastest == race->runners)
        return 0;
    for (uint32_t i = 1; i < race->count; i++) {
        const att_runner_t *r = &race->runners[i];
        uint16_t channels = r->setting.channels;
        if (!r->out && r->count >= ATT_RACE_LEAST && channels != 0 &&
            channels < winner->setting.channels && behind(race, r, fastest).mean <= ATT_RACE_TIE)
            winner = r;
    }
    return (uint32_t)(winner - race->runners);
}
