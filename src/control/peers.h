/*
 * peers: this agent among the others: the messages of groups over several nodes find the registry,
 * the keeper of the turns or the group they belong to, and the others' reports find agent 0, which
 * writes the run folder. An agent alone has none.
 */
#ifndef ATT_CONTROL_PEERS_H
#define ATT_CONTROL_PEERS_H

#include "control/span.h"

struct att_messenger;
struct att_peers;
struct att_rows;

typedef void (*att_peers_refuse_fn)(void *context, uint32_t group, const char *why);

/* messenger NULL: alone. `refuse` is told of groups that are not tuned. */
int att_peers_create(struct att_messenger *messenger, att_task_shared_t *shared,
                     att_peers_refuse_fn refuse, void *context, struct att_peers **peers);
void att_peers_destroy(struct att_peers *peers); /* NULL is fine */
struct att_span *att_peers_span(struct att_peers *peers);

/* Receive, send, go on. Returns the number of messages; *busy: something is under way. */
uint32_t att_peers_step(struct att_peers *peers, uint64_t now_ns, int *busy);

/* Adds what became of the records of groups over several nodes at this agent. */
void att_peers_fates(const struct att_peers *peers, att_coverage_t *coverage);
/* Others than agent 0: send rows to it, some now and the rest in the next steps, as it takes them;
 * those that are as they were sent last are not sent again. They stay the caller's, as they are
 * until the next report. */
void att_peers_report(struct att_peers *peers, const att_task_report_t *rows, uint32_t count);
/* All rows were sent. */
int att_peers_told(const struct att_peers *peers);
/* The same: send coverage. `last`: nothing more will come. */
void att_peers_account(struct att_peers *peers, const att_coverage_t *coverage, uint64_t records,
                       int last);
/* Send a note to agent 0 (control/notes.h), and whether lists must wait for it to take them;
 * `peers` is a struct att_peers. */
void att_peers_note(void *peers, const att_message_t *message);
bool att_peers_notes_full(void *peers);
/* Agent 0: what the others sent. Rows are as they were until the next step. NULL elsewhere. */
const struct att_rows *att_peers_rows(const struct att_peers *peers);
void att_peers_coverage(const struct att_peers *peers, att_coverage_t *sum, uint64_t *records);
/* Agent 0: every other agent has sent its last report. */
int att_peers_all_gone(const struct att_peers *peers);

#endif
