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

static double duration_of(const att_runner_t *runner)
{
    return att_midmean(runner->samples_us, runner->count);
}

/* Relative standard error of the duration; 1.25 is the loss of a trimmed mean against a mean for
 * normal noise, at most. */
static double error_of(const att_runner_t *runner)
{
    return 1.25 * att_relative_spread(runner->samples_us, runner->count) / sqrt(runner->count);
}

static const att_runner_t *fastest_of(const att_race_t *race)
{
    const att_runner_t *fastest = NULL;
    for (uint32_t i = 0; i < race->count; i++) {
        const att_runner_t *r = &race->runners[i];
        if (!r->out && r->count >= ATT_RACE_LEAST &&
            (fastest == NULL || duration_of(r) < duration_of(fastest)))
            fastest = r;
    }
    return fastest;
}

/* More samples of it may change the outcome. */
static bool is_open(const att_race_t *race, const att_runner_t *runner)
{
    if (runner->out || runner->count >= ATT_RACE_MOST)
        return false;
    if (runner->count < ATT_RACE_SAMPLES)
        return true;
    uint32_t left = 0;
    for (uint32_t i = 0; i < race->count; i++)
        left += !race->runners[i].out;
    return left > 1 && error_of(runner) > ATT_RACE_KNOWN;
}

void att_race_judge(att_race_t *race)
{
    const att_runner_t *best = fastest_of(race);
    for (uint32_t i = 0; best != NULL && i < race->count; i++) {
        att_runner_t *r = &race->runners[i];
        if (r == best || r->out || r->count < ATT_RACE_SAMPLES)
            continue;
        double margin = ATT_RACE_OUT * hypot(error_of(r), error_of(best));
        margin = margin < 2 * ATT_RACE_TIE ? 2 * ATT_RACE_TIE : margin;
        r->out = duration_of(r) > duration_of(best) * (1 + margin);
    }
}

bool att_race_over(const att_race_t *race)
{
    bool open = false;
    for (uint32_t i = 0; i < race->count; i++)
        open = open || is_open(race, &race->runners[i]);
    return !open || race->count < 2 || race->lists == ATT_RACE_LISTS;
}

void att_race_list(att_race_t *race, att_playlist_t *list)
{
    uint32_t short_of[1 + ATT_RACE_CANDIDATES + 2], n = 0;
    for (uint32_t i = 0; i < race->count; i++)
        if (is_open(race, &race->runners[i]))
            short_of[n++] = i;
    if (n == 0)
        return;
    race->lists++;
    uint32_t rounds = ATT_PLAN_ENTRIES / n;
    rounds = rounds > 4 ? 4 : rounds;
    for (uint32_t round = 0; round < rounds; round++)
        for (uint32_t k = 0; k < n; k++) {
            /* Rotated, so that nobody always runs behind the same neighbour. */
            uint32_t i = short_of[(k + round) % n], have = race->runners[i].count;
            uint32_t goal = have < ATT_RACE_SAMPLES ? ATT_RACE_SAMPLES : ATT_RACE_MOST;
            uint32_t samples = (goal - have + rounds - 1) / rounds;
            uint32_t block = have < ATT_RACE_SAMPLES ? ATT_RACE_BLOCK : ATT_RACE_LONG;
            samples = samples < 2 ? 2 : samples > block ? block : samples;
            att_playlist_add(list, race->runners[i].setting, list->discard + samples,
                             ATT_PLAY_FINALIST, i);
        }
}

void att_race_ran(att_race_t *race, const att_play_t *play)
{
    att_runner_t *runner = &race->runners[play->index];
    if (runner->calls == 0)
        runner->first_call = play->first;
    runner->calls += play->calls;
    for (uint32_t i = 0; i < play->count && runner->count < ATT_RACE_MOST; i++)
        runner->samples_us[runner->count++] = play->samples_us[i];
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
            channels < winner->setting.channels &&
            duration_of(r) <= duration_of(fastest) * (1 + ATT_RACE_TIE))
            winner = r;
    }
    return (uint32_t)(winner - race->runners);
}
