/*
 * log: one line per message (base/one_line.h) on standard error, "attune: LEVEL: text" (level left
 * out for info). Hot paths never log; a message that could repeat uses att_log_limited.
 */
#ifndef ATT_BASE_LOG_H
#define ATT_BASE_LOG_H

#include <stdatomic.h>
#include <stdint.h>

typedef enum att_log_level {
    ATT_LOG_ERROR = 0,
    ATT_LOG_WARN = 1,
    ATT_LOG_INFO = 2,
    ATT_LOG_DEBUG = 3
} att_log_level_t;

/* Threshold from ATTUNE_LOG (error, warn, info, debug; default warn), read at first use. */
att_log_level_t att_log_level(void);
void att_log_set_level(att_log_level_t level);
/* The level of that name; one that is none changes nothing. */
void att_log_set_level_name(const char *name);
/* Prefix after "attune", for example "attuned"; copied, at most 31 bytes. */
void att_log_set_name(const char *name);
/* Also append every line to this file (NULL stops). Returns 0 or -ATT_ESYSTEM. */
int att_log_set_file(const char *path);

void att_log(att_log_level_t level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* At most one line a second per site; the next line printed tells how many were left out. A site is
 * static: the end of the process finds it again. */
typedef struct att_log_site {
    _Atomic uint64_t last_ns;
    _Atomic uint64_t suppressed;
    struct att_log_site *next; /* of those that printed something */
    att_log_level_t level;
    char text[128]; /* the last line, cut */
} att_log_site_t;
void att_log_limited(att_log_site_t *site, att_log_level_t level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* For each site that left lines out since its last one: that line again and how many. When nothing
 * is logged any more: at the end of a process. */
void att_log_finish(void);

#endif
