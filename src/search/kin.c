#include "search/kin.h"

#include "search/space.h"

#define LIMIT 1.15 /* NCCL's choice takes the same time in tasks of one kind, up to this */

att_kin_choice_t att_kin_choose(att_kin_t *kin, const att_space_t *space, const att_study_t *study,
                                double here_us)
{
    kin->state = ATT_KIN_NONE;
    if (here_us > kin->baseline_us * LIMIT || here_us * LIMIT < kin->baseline_us)
        return ATT_KIN_SEARCH;
    if (att_setting_is_keep(kin->setting))
        return ATT_KIN_KEEP;
    if (!att_space_contains(space, kin->setting) || att_study_quarantined(study, kin->setting))
        return ATT_KIN_SEARCH;
    kin->state = ATT_KIN_TRIED;
    return ATT_KIN_TRY;
}

bool att_kin_end(att_kin_t *kin)
{
    bool tried = kin->state == ATT_KIN_TRIED;
    kin->state = ATT_KIN_NONE;
    return tried;
}
