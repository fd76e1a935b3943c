/*
 * playlist: the list that is proposed or in force: which call belongs to which entry, and what was
 * measured for each. Calls outside of it run on the incumbent.
 *
 *     EMPTY -> PROPOSED -> COMMITTED -> (every entry finished) -> EMPTY
 *
 * An entry is finished when a sample came for each of its calls, or the watermark passed it.
 */
#ifndef ATT_SEARCH_PLAYLIST_H
#define ATT_SEARCH_PLAYLIST_H

#include "search/optimizer.h"

#include <stdbool.h>

#define ATT_PLAY_SAMPLES 64 /* kept of one entry */

/* Whose entry this is. */
typedef enum att_play_owner {
    ATT_PLAY_BASELINE = 0, /* the incumbent, to refresh the baseline */
    ATT_PLAY_TRIAL = 1,    /* index = open trial */
    ATT_PLAY_FINALIST = 2, /* index = finalist */
    ATT_PLAY_GUARD = 3     /* index = 2 * pair + (1 for the winner) */
} att_play_owner_t;

typedef struct att_play {
    att_setting_t setting;
    att_play_owner_t owner;
    uint32_t index;
    uint32_t calls;
    uint64_t first;  /* call number, once committed */
    uint32_t seen;   /* samples that came, usable or not */
    double total_us; /* of all of them, discarded ones included */
    uint32_t count;  /* usable, after the discarded ones */
    double samples_us[ATT_PLAY_SAMPLES];
    uint32_t collectives; /* of them that know how long the collective alone took (att_sample_t) */
    double collective_us; /* sum over those */
    uint32_t steps;       /* calls after the discarded ones and a period whose step is known */
    double steps_us;      /* sum over them, start to start (att_optimizer_step) */
} att_play_t;

typedef enum att_playlist_state {
    ATT_PLAYLIST_EMPTY = 0,
    ATT_PLAYLIST_PROPOSED = 1,
    ATT_PLAYLIST_COMMITTED = 2
} att_playlist_state_t;

typedef struct att_playlist {
    att_playlist_state_t state;
    uint32_t id;      /* of the latest proposal */
    bool abandoned;   /* its results are of no use any more; it still has to end */
    uint32_t discard; /* first calls after a switch whose samples are not used */
    uint32_t period;  /* calls of the pattern of steps: as many after a switch are not used */
    uint32_t count;
    att_play_t plays[ATT_PLAN_ENTRIES];
    uint64_t fence, end; /* [fence, end) of the committed list */
    uint64_t watermark;
    uint64_t quiet_from; /* calls below belong to an older list or follow its end too closely */
} att_playlist_t;

/* What a sample was for. */
typedef enum att_play_kind {
    ATT_PLAY_NONE = 0, /* late, discarded, or of an abandoned list */
    ATT_PLAY_ENTRY = 1,
    ATT_PLAY_INCUMBENT = 2
} att_play_kind_t;

/* Append to an EMPTY list. False when it is full. */
bool att_playlist_add(att_playlist_t *list, att_setting_t setting, uint32_t calls,
                      att_play_owner_t owner, uint32_t index);
/* EMPTY -> PROPOSED: fills plan->id, count and entries. */
void att_playlist_propose(att_playlist_t *list, att_plan_t *plan);
void att_playlist_commit(att_playlist_t *list, uint64_t fence);
att_play_kind_t att_playlist_sample(att_playlist_t *list, const att_sample_t *sample);
/* The step of a call is known (att_optimizer_step). Of the last call of a list it is known too
 * late. The period is that of the latest step before the list was proposed. */
void att_playlist_step(att_playlist_t *list, uint64_t call, double step_us, uint32_t period);
void att_playlist_advance(att_playlist_t *list, uint64_t call);
/* Committed, and every entry is finished. */
bool att_playlist_done(const att_playlist_t *list);
/* Back to EMPTY; what comes for its calls later is late. */
void att_playlist_clear(att_playlist_t *list);

#endif
