/*
 * exporter: what the first agent reports, as Prometheus text: a file (--metrics-file, or
 * metrics.prom in the run folder), nccl_inspector_metrics_<run>.prom beside it under NCCL
 * Inspector's names, and the loopback port (--metrics-port). docs/metrics.md.
 *
 * The writer makes the text, of copies. That may take at most 1 % of a core: with many tasks it is
 * made less often.
 */
#ifndef ATT_CONTROL_EXPORTER_H
#define ATT_CONTROL_EXPORTER_H

#include "base/config.h"
#include "control/run_folder.h"

struct att_exporter;

/* config must outlive it; the writer must have ended when it is destroyed, or be flushed.
 * -ATT_ESYSTEM: the port or the file cannot be had. */
int att_exporter_create(const att_config_t *config, struct att_writer *writer,
                        struct att_exporter **exporter, att_error_t *error);
void att_exporter_destroy(struct att_exporter *exporter); /* NULL is fine */
/* What tasks.json says, about once a second. `last`: the sidecar ends. NULL is fine. */
void att_exporter_report(struct att_exporter *exporter, const att_run_totals_t *totals,
                         const att_task_report_t *tasks, uint32_t count, int last);
/* Once a round: serve the port. Never blocks. NULL is fine. */
void att_exporter_step(struct att_exporter *exporter, uint64_t now_ns);

#endif
