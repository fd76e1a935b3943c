/*
 * worker: the far end of one search: serves the requests of a strategy host from its own process.
 *
 * Requests (payload):  BEGIN  seed, length + path, length + spec, att_space_t, subspaces
 *                      CHECK  the same
 *                      ASK    uint32 most
 *                      TELL   att_setting_t, att_result_t, samples
 * Every request but TELL is answered once: ANSWER with {request, status, count} and, when status is
 * 0, `count` settings, as many numbers of samples, and the best setting, else the text. A failed TELL fails the next ASK.
 */
#ifndef ATT_SEARCH_WORKER_H
#define ATT_SEARCH_WORKER_H

#include <stdint.h>

enum {
    ATT_WORKER_BEGIN = 1,
    ATT_WORKER_CHECK = 2,
    ATT_WORKER_ASK = 3,
    ATT_WORKER_TELL = 4,
    ATT_WORKER_ANSWER = 5
};

typedef struct att_worker_answer {
    uint32_t request;
    int32_t status; /* 0 or -ATT_E... */
    uint32_t count;
    uint32_t reserved;
} att_worker_answer_t;

/* Serve until end of file; an att_child_fn. */
void att_worker_serve(int fd);

#endif
