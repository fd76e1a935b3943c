/*
 * status: one list of outcomes for every function of attune.
 *
 * Functions return ATT_OK or a negated code (-ATT_E...); tools exit with the positive code. Text
 * goes through a caller's att_error_t, which may be NULL. Who discovers an error logs it or fills
 * the att_error_t, once; callers pass it up.
 */
#ifndef ATT_BASE_STATUS_H
#define ATT_BASE_STATUS_H

typedef enum att_status {
    ATT_OK = 0,
    ATT_EFAIL = 1,   /* a finding or failure that no other code names */
    ATT_EUSAGE = 2,  /* wrong flag or argument */
    ATT_EINPUT = 3,  /* a file or message is malformed */
    ATT_ESYSTEM = 4, /* a system call failed: text has errno */
    ATT_ENOMEM = 5,
    ATT_ENOENT = 6,   /* not found */
    ATT_EVERSION = 7, /* another ABI, layout or version */
    ATT_EBUSY = 8,    /* try again later */
    ATT_EFULL = 9,    /* a table of fixed size is full */
    ATT_ETIMEOUT = 10,
    ATT_EILLEGAL = 11,  /* a setting that is not legal here */
    ATT_EPLUGIN = 12,   /* a strategy refused, crashed, hung or returned nonsense */
    ATT_EMISMATCH = 13, /* ranks or runs differ where they must agree */
    ATT_EPERMISSION = 14,
    ATT_EUNSUPPORTED = 15,
    ATT_ESTALE = 16,
    ATT_STATUS_COUNT = 17
} att_status_t;

/* Caller-supplied text of one error: one line, what, where, what to do. */
typedef struct att_error {
    char text[512];
} att_error_t;

/* "ok", "usage", ...; takes either sign; never NULL. */
const char *att_status_name(int status);

/* Fill error->text (if error is not NULL) and return -code, so that a caller can `return` it. */
int att_fail(att_error_t *error, att_status_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with ": strerror(errno)" appended; code is ATT_ESYSTEM. */
int att_fail_errno(att_error_t *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
