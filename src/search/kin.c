#include "search/kin.h"

#include "search/space.h"

#define LIMIT 1.15

bool att_kin_same_time(double a_us, double b_us)
{
    return a_us <= b_us * LIMIT && b_us <= a_us * LIMIT;
}

void att_kin_waited(const att_kin_t *kin, att_window_t *window)
{
    if (kin->state == ATT_KIN_AWAITED)
        *window = (att_window_t){0};
}

att_kin_choice_t att_kin_choose(att_kin_t *kin, const att_space_t *space, const att_study_t *study,
                                double here_us)
{
    kin->state = ATT_KIN_NONE;
    if (kin->baseline_us > 0 && !att_kin_same_time(here_us, kin->baseline_us))
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
