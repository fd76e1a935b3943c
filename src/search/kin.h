/*
 * kin: what a task of the same kind has found, at a task that waits for it instead of searching.
 *
 * Groups of one shape (the data groups of a job, say) have tasks that differ in nothing but the
 * ranks, and the buckets of a training step little in size. One of them is searched; the others
 * await its end, gather their baseline, and run its winner through their own guard.
 *
 * Where the step is to be short, durations are shares of a step: what a bucket that comes once a
 * step can change is less than what one can that comes eight times. They cannot be compared, and a
 * winner that does not win here leaves NCCL's choice in force: a search would see no more.
 */
#ifndef ATT_SEARCH_KIN_H
#define ATT_SEARCH_KIN_H

#include "search/study.h"
#include "search/window.h"

typedef enum att_kin_state {
    ATT_KIN_NONE = 0,    /* searches itself */
    ATT_KIN_AWAITED = 1, /* the other one is being searched */
    ATT_KIN_KNOWN = 2,   /* its end is known */
    ATT_KIN_TRIED = 3    /* its winner is in the guard */
} att_kin_state_t;

typedef struct att_kin {
    att_kin_state_t state;
    att_setting_t setting; /* that it settled on */
    double baseline_us;    /* NCCL's choice there; 0: a share of a step */
} att_kin_t;

typedef enum att_kin_choice {
    ATT_KIN_SEARCH = 0, /* not alike: NCCL's choice takes another time here, or it is not legal */
    ATT_KIN_KEEP = 1,   /* NCCL's choice, without a search */
    ATT_KIN_TRY = 2     /* its winner to the guard */
} att_kin_choice_t;

/* The wait is over, if there was one. It may have been long, and in a step the other one's trials
 * were in what NCCL's choice took meanwhile: that is no baseline, it begins anew. */
void att_kin_waited(const att_kin_t *kin, att_window_t *window);
/* KNOWN -> TRIED, or NONE. here_us: median of NCCL's choice here. */
att_kin_choice_t att_kin_choose(att_kin_t *kin, const att_space_t *space, const att_study_t *study,
                                double here_us);
/* -> NONE; true when its winner was being tried. */
bool att_kin_end(att_kin_t *kin);
/* NCCL's choice takes the same time in tasks of one kind, but for this factor. */
bool att_kin_same_time(double a_us, double b_us);

#endif
