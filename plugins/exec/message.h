/* message: the lines between the strategy exec and its program, JSON objects;
 * docs/write-a-strategy.md is their description. Texts that are returned are malloc'ed and end with
 * a newline. */
#ifndef ATT_EXEC_MESSAGE_H
#define ATT_EXEC_MESSAGE_H

#include "attune/strategy.h"

#define MESSAGE_VERSION 1

char *message_create(const att_space_t *space, uint64_t seed);
char *message_ask(uint32_t max);
char *message_tell(const att_setting_t *setting, const att_result_t *result);

/* Answers. 0, or -1 and one line in `why`, which is the program's own word when it says error. */
int message_ready(const char *line, char *why, size_t size);
/* samples[i]: 0 where none are named. */
int message_settings(const char *line, att_setting_t *settings, uint32_t *samples, uint32_t max,
                     uint32_t *count, char *why, size_t size);
int message_best(const char *line, att_setting_t *setting, char *why, size_t size);

#endif
