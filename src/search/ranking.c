#include "search/ranking.h"

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
