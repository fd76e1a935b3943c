/*
 * report: what this process did, as "<ATTUNE_RUN_DIR>/fabric-<pid>.json".
 *
 * {"version":1,"fabric":"real|model","surface":..,"load":..,"ranks":..,"calls":..,"mismatches":..}
 * ranks: of the largest communicator; calls: collectives of the communicators whose rank 0 is here;
 * mismatches: reported by ranks of this process; so that the numbers of all processes add up.
 * Written at each destroy, rewritten whole.
 */
#ifndef ATT_FABRIC_REPORT_H
#define ATT_FABRIC_REPORT_H

#include "fabric/model.h"

/* setup: NULL in real mode. */
void att_report_created(int ranks, att_fabric_mode_t mode, const att_model_setup_t *setup);
void att_report_destroyed(int rank, uint64_t calls, uint64_t mismatches);

#endif
