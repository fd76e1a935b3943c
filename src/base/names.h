/*
 * names: words for collectives, algorithms, protocols, transports and whole settings. Lower case,
 * as NCCL's example tuner spells them ("allreduce", "ring", "ll128"); "keep" for NCCL's choice.
 */
#ifndef ATT_BASE_NAMES_H
#define ATT_BASE_NAMES_H

#include "attune/setting.h"

#include "base/nearest.h"

#include <stddef.h>

/* Never NULL; "unknown" for a number outside the enum. */
const char *att_collective_name(int collective);
const char *att_algorithm_name(int algorithm);
const char *att_protocol_name(int protocol);
const char *att_transport_name(int transport);

/* Case does not matter and '_' is ignored, so that NCCL's own words ("AllReduce", "RING",
 * "NVLS_TREE") are understood. Return the number, or -2 for an unknown word (-1 is "keep"). */
int att_collective_parse(const char *word);
int att_algorithm_parse(const char *word);
int att_protocol_parse(const char *word);
int att_transport_parse(const char *word);

/* Of a word that is none: " (did you mean 'X'?)", or "" (att_nearest_hint). */
const char *att_collective_nearest(att_nearest_t *nearest, const char *word);
const char *att_algorithm_nearest(att_nearest_t *nearest, const char *word);
const char *att_protocol_nearest(att_nearest_t *nearest, const char *word);
const char *att_transport_nearest(att_nearest_t *nearest, const char *word);

/* "ring/simple ch=8 chunk=128K", "keep"; returns text. 64 bytes are enough. */
#define ATT_SETTING_TEXT 64
const char *att_setting_text(att_setting_t setting, char *text, size_t size);

/* "64K", "16M", "12345": exact, binary suffix only when the number divides. 24 bytes are enough. */
const char *att_bytes_text(uint64_t bytes, char *text, size_t size);
/* The inverse, K/M/G/T binary, "inf" = UINT64_MAX. 0 or -ATT_EUSAGE. */
int att_bytes_parse(const char *text, uint64_t *bytes);

#endif
