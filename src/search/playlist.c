#include "search/playlist.h"

#include <string.h>

bool att_playlist_add(att_playlist_t *list, att_setting_t setting, uint32_t calls,
                      att_play_owner_t owner, uint32_t index)
{
    if (list->count == ATT_PLAN_ENTRIES)
        return false;
    list->plays[list->count++] =
        (att_play_t){.setting = setting, .owner = owner, .index = index, .calls = calls};
    return true;
}

void att_playlist_propose(att_playlist_t *list, att_plan_t *plan)
{
    list->state = ATT_PLAYLIST_PROPOSED;
    list->abandoned = false;
    plan->id = ++list->id;
    plan->count = list->count;
    for (uint32_t i = 0; i < list->count; i++) {
        plan->entries[i].setting = list->plays[i].setting;
        plan->entries[i].calls = list->plays[i].calls;
    }
}

void att_playlist_commit(att_playlist_t *list, uint64_t fence)
{
    list->state = ATT_PLAYLIST_COMMITTED;
    list->fence = fence;
    list->end = fence;
    for (uint32_t i = 0; i < list->count; i++) {
        list->plays[i].first = list->end;
        list->end += list->plays[i].calls;
    }
}

att_play_kind_t att_playlist_sample(att_playlist_t *list, const att_sample_t *sample)
{
    uint64_t call = sample->call;
    if (list->state != ATT_PLAYLIST_COMMITTED || call < list->fence)
        return call >= list->quiet_from ? ATT_PLAY_INCUMBENT : ATT_PLAY_NONE;
    if (call >= list->end) {
        /* The list is over. An abandoned one ends here even if samples of it were lost. */
        if (list->abandoned)
            att_playlist_clear(list);
        return call >= list->end + list->discard ? ATT_PLAY_INCUMBENT : ATT_PLAY_NONE;
    }
    for (uint32_t i = 0; i < list->count; i++) {
        att_play_t *play = &list->plays[i];
        if (call >= play->first + play->calls)
            continue;
        play->seen++;
        play->total_us += sample->duration_us;
        if (sample->usable && call - play->first >= list->discard &&
            play->count < ATT_PLAY_SAMPLES) {
            play->samples_us[play->count++] = sample->duration_us;
            if (sample->collective_us > 0) {
                play->collectives++;
                play->collective_us += sample->collective_us;
            }
        }
        break;
    }
    return list->abandoned ? ATT_PLAY_NONE : ATT_PLAY_ENTRY;
}

void att_playlist_step(att_playlist_t *list, uint64_t call, double step_us, uint32_t period)
{
    if (list->state == ATT_PLAYLIST_EMPTY)
        list->period = period;
    if (list->state != ATT_PLAYLIST_COMMITTED)
        return;
    /* The last one of a pattern may hold what the others did to the step. */
    uint32_t from = list->period > list->discard ? list->period : list->discard;
    for (uint32_t i = 0; i < list->count; i++) {
        att_play_t *play = &list->plays[i];
        if (call < play->first + from || call >= play->first + play->calls)
            continue;
        play->steps++;
        play->steps_us += step_us;
    }
}

void att_playlist_advance(att_playlist_t *list, uint64_t call)
{
    if (call > list->watermark)
        list->watermark = call;
}

bool att_playlist_done(const att_playlist_t *list)
{
    if (list->state != ATT_PLAYLIST_COMMITTED)
        return false;
    for (uint32_t i = 0; i < list->count; i++) {
        const att_play_t *play = &list->plays[i];
        if (play->seen < play->calls && list->watermark < play->first + play->calls)
            return false;
    }
    return true;
}

void att_playlist_clear(att_playlist_t *list)
{
    if (list->state == ATT_PLAYLIST_COMMITTED)
        list->quiet_from = list->end + list->discard;
    list->state = ATT_PLAYLIST_EMPTY;
    list->count = 0;
    list->abandoned = false;
}
