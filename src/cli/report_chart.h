/* report chart: the curve of one task's search as paths for SVG, small whatever the trials. */
#ifndef ATT_CLI_REPORT_CHART_H
#define ATT_CLI_REPORT_CHART_H

#include "cli/report_trials.h"

/* In a box of 300 by 132 (report/curve.html): band, best, one_y, final_y, labels and `text`, which
 * says it in words. columns: that the trials are put together in. NULL: nothing to draw. */
json_t *att_report_chart(const json_t *task, const att_report_search_t *search, uint32_t columns);

#endif
