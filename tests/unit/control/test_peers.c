/* What agents report to agent 0: every task, however many there are and however slowly it takes
 * them. The messenger is the test's own. */
#include "control/message.h"
#include "control/messenger.h"
#include "control/peers.h"
#include "control/rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { AGENTS = 4, WINDOW = 256, ROWS = WINDOW / 2 }; /* messages in flight; rows among them */

typedef struct mail {
    struct mail *next;
    uint32_t from, size;
    unsigned char bytes[];
} mail_t;

struct att_messenger {
    uint32_t self, unsent; /* to agent 0 */
    uint32_t most_unsent, sent;
    bool stopped; /* agent 0 takes nothing */
};

static struct att_messenger messengers[AGENTS];
static struct att_peers *peers[AGENTS];
static mail_t *inbox, **inbox_end = &inbox; /* of agent 0 */

uint32_t att_messenger_self(const struct att_messenger *t)
{
    return t->self;
}

uint32_t att_messenger_count(const struct att_messenger *t)
{
    (void)t;
    return AGENTS;
}

uint32_t att_messenger_unsent(const struct att_messenger *t, uint32_t to)
{
    return to == 0 ? t->unsent : 0;
}

int att_messenger_send(struct att_messenger *t, uint32_t to, const void *bytes, uint32_t size)
{
    if (to != 0)
        return ATT_OK;
    mail_t *mail = malloc(sizeof *mail + size);
    assert_non_null(mail);
    mail->next = NULL;
    mail->from = t->self;
    mail->size = size;
    memcpy(mail->bytes, bytes, size);
    *inbox_end = mail;
    inbox_end = &mail->next;
    t->unsent++;
    t->sent++;
    if (t->unsent > t->most_unsent)
        t->most_unsent = t->unsent;
    return ATT_OK;
}

uint32_t att_messenger_poll(struct att_messenger *t, att_message_fn each, void *context)
{
    uint32_t count = 0;
    while (t->self == 0 && inbox != NULL) {
        mail_t *mail = inbox;
        inbox = mail->next;
        each(context, mail->from, mail->bytes, mail->size);
        free(mail);
        count++;
    }
    if (inbox == NULL)
        inbox_end = &inbox;
    if (!t->stopped)
        t->unsent = 0;
    return count;
}

static att_segment_memory_t *memory;
static struct att_node *node;
static att_task_shared_t shared;

static void refuse(void *context, uint32_t group, const char *why)
{
    (void)context;
    (void)group;
    (void)why;
}

static int setup(void **state)
{
    (void)state;
    memory = aligned_alloc(64, (sizeof *memory + 63) / 64 * 64);
    if (memory == NULL)
        return 1;
    memset(memory, 0, offsetof(att_segment_memory_t, rings));
    if (att_node_create(memory, &node) != ATT_OK)
        return 1;
    shared = (att_task_shared_t){.node = node};
    for (uint32_t i = 0; i < AGENTS; i++) {
        messengers[i] = (struct att_messenger){.self = i};
        if (att_peers_create(&messengers[i], &shared, refuse, NULL, &peers[i]) != ATT_OK)
            return 1;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    int busy;
    att_peers_step(peers[0], 0, &busy);
    for (uint32_t i = 0; i < AGENTS; i++)
        att_peers_destroy(peers[i]);
    att_node_destroy(node);
    free(memory);
    return 0;
}

static att_task_report_t rows_of[AGENTS][2 * ATT_TASKS];

static void step_all(void)
{
    int busy;
    for (uint32_t i = 0; i < AGENTS; i++)
        att_peers_step(peers[i], 0, &busy);
}

static void report(uint32_t agent, uint32_t count, uint64_t calls, int last)
{
    att_coverage_t coverage = {0};
    att_task_report_t *reports = rows_of[agent];
    for (uint32_t i = 0; i < count; i++)
        reports[i] =
            (att_task_report_t){.hash = i, .bytes = 4096, .calls_seen = calls, .reason = "why"};
    att_peers_report(peers[agent], reports, count);
    att_peers_account(peers[agent], &coverage, 0, last);
}

static void every_task_of_every_agent_arrives(void **state)
{
    (void)state;
    for (uint32_t calls = 1; calls < 3; calls++) {
        for (uint32_t agent = 1; agent < AGENTS; agent++)
            report(agent, ATT_TASKS, calls, 0);
        assert_false(att_peers_told(peers[1]));
        for (uint32_t round = 0; round < ATT_TASKS / ROWS + 2; round++)
            step_all();
        assert_true(att_peers_told(peers[1]));
        const struct att_rows *rows = att_peers_rows(peers[0]);
        assert_int_equal(att_rows_count(rows), (AGENTS - 1) * ATT_TASKS);
        for (uint32_t i = 0; i < att_rows_count(rows); i++) {
            assert_string_equal(att_rows_get(rows, i)->reason, "why");
            assert_int_equal(att_rows_get(rows, i)->calls_seen, calls);
        }
    }
    assert_null(att_peers_rows(peers[1]));
}

static void a_row_that_has_not_changed_is_not_sent_again(void **state)
{
    (void)state;
    report(1, ATT_TASKS, 1, 0);
    while (!att_peers_told(peers[1]))
        step_all();
    messengers[1].sent = 0;
    report(1, ATT_TASKS, 1, 0);
    assert_true(att_peers_told(peers[1]));
    assert_int_equal(messengers[1].sent, 1); /* coverage */
    rows_of[1][7].calls_seen = 2;
    rows_of[1][8].reason = "another";
    rows_of[1][9].now_age_s = 3; /* agent 0 can tell */
    att_peers_report(peers[1], rows_of[1], ATT_TASKS);
    step_all(); /* agent 1 after agent 0 */
    step_all();
    assert_int_equal(messengers[1].sent, 3);
    const struct att_rows *rows = att_peers_rows(peers[0]);
    assert_int_equal(att_rows_count(rows), ATT_TASKS);
    assert_int_equal(att_rows_get(rows, 7)->calls_seen, 2);
    assert_string_equal(att_rows_get(rows, 8)->reason, "another");
}

static void an_agent_0_that_is_slow_hears_of_all_in_the_end(void **state)
{
    (void)state;
    /* It takes one queue a report. */
    for (uint32_t round = 0; round < ATT_TASKS / ROWS + 1; round++) {
        messengers[1].stopped = false;
        step_all();
        messengers[1].stopped = true;
        report(1, ATT_TASKS, round, 0);
    }
    messengers[1].stopped = false;
    step_all();
    assert_int_equal(att_rows_count(att_peers_rows(peers[0])), ATT_TASKS);
}

static void a_queue_that_is_full_grows_no_more(void **state)
{
    (void)state;
    messengers[1].stopped = true;
    for (uint32_t round = 0; round < 20; round++) {
        report(1, 1000, round, round == 19);
        int busy;
        att_peers_step(peers[1], 0, &busy);
    }
    /* And the word that there will be no more. */
    assert_true(messengers[1].most_unsent <= WINDOW + 1);
    assert_false(att_peers_all_gone(peers[0]));
}

static void lists_wait_for_an_agent_that_takes_none(void **state)
{
    (void)state;
    att_message_t list = {.type = ATT_MESSAGE_LIST}, trial = {.type = ATT_MESSAGE_TRIAL};
    messengers[1].stopped = true;
    uint32_t begun = 0;
    for (; begun < 10 * WINDOW && !att_peers_notes_full(peers[1]); begun++)
        att_peers_note(peers[1], &list);
    assert_int_equal(begun, WINDOW);
    att_peers_note(peers[1], &trial);
    assert_int_equal(messengers[1].most_unsent, WINDOW);
    messengers[1].stopped = false;
    step_all();
    assert_false(att_peers_notes_full(peers[1]));
}

static void rows_leave_room_for_everything_else(void **state)
{
    (void)state;
    att_coverage_t coverage = {.decisions = 7}, sum = {0};
    uint64_t records = 0;
    report(1, ATT_TASKS, 1, 0);
    att_peers_account(peers[1], &coverage, 5, 0);
    while (!att_peers_told(peers[1])) {
        assert_false(att_peers_notes_full(peers[1]));
        step_all();
    }
    att_peers_coverage(peers[0], &sum, &records);
    assert_int_equal(sum.decisions, 7);
    assert_int_equal(records, 5);
}

static void an_agent_that_floods_is_bounded(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 2 * ATT_TASKS / ROWS; round++) {
        report(1, 2 * ATT_TASKS, round, 0);
        step_all();
    }
    for (uint32_t round = 0; round < 2 * ATT_TASKS / ROWS + 2; round++)
        step_all();
    report(2, 5, 0, 0);
    step_all();
    assert_int_equal(att_rows_count(att_peers_rows(peers[0])), ATT_TASKS + 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_task_of_every_agent_arrives, setup, teardown),
        cmocka_unit_test_setup_teardown(a_row_that_has_not_changed_is_not_sent_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_agent_0_that_is_slow_hears_of_all_in_the_end, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_queue_that_is_full_grows_no_more, setup, teardown),
        cmocka_unit_test_setup_teardown(lists_wait_for_an_agent_that_takes_none, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_leave_room_for_everything_else, setup, teardown),
        cmocka_unit_test_setup_teardown(an_agent_that_floods_is_bounded, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
