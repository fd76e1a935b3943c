#include "base/protocol.h"
#include "search/knobs.h"
#include "search/space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static att_knobs_answer_t ask(const att_knobs_question_t *question)
{
    att_error_t error;
    const att_knobs_t *knobs = att_knobs_get(&error);
    assert_non_null(knobs);
    att_knobs_answer_t answer;
    att_knobs_ask(knobs, question, &answer);
    return answer;
}

/* Ring AllReduce of this protocol with one knob at this value. */
static att_knobs_answer_t ask_one(int knob, int protocol, uint64_t value, int version)
{
    att_knobs_question_t question = ATT_KNOBS_OPEN;
    question.version = version;
    question.collective = ATT_COLLECTIVE_ALL_REDUCE;
    question.algorithm = ATT_ALGORITHM_RING;
    question.protocol = protocol;
    question.set[knob] = true;
    question.value[knob] = value;
    return ask(&question);
}

static void threads_as_tabled(void **state)
{
    static const uint64_t values[] = {64, 96, 128, 256, 480, 512, 640};
    static const char *const legal[ATT_PROTOCOL_COUNT] = {
        [ATT_PROTOCOL_LL] = "..xx.x.",
        [ATT_PROTOCOL_LL128] = "...xxxx",
        [ATT_PROTOCOL_SIMPLE] = "..xx.x.",
    };
    static const char *const rule[ATT_PROTOCOL_COUNT] = {
        [ATT_PROTOCOL_LL] = "power of two",
        [ATT_PROTOCOL_LL128] = "multiples of 32 from 160",
        [ATT_PROTOCOL_SIMPLE] = "power of two",
    };
    for (int protocol = 0; protocol < ATT_PROTOCOL_COUNT; protocol++)
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            att_knobs_answer_t a = ask_one(ATT_KNOB_THREADS, protocol, values[i], 22809);
            assert_int_equal(a.legal, legal[protocol][i] == 'x');
            assert_int_equal(a.knob, ATT_KNOB_THREADS);
            assert_non_null(strstr(a.why, rule[protocol]));
        }
}

static void buffers_as_tabled(void **state)
{
    static const struct {
        int protocol;
        uint64_t value;
        bool legal;
        const char *rule;
    } vectors[] = {
        {ATT_PROTOCOL_SIMPLE, 1000000, false, "powers of two"},
        {ATT_PROTOCOL_SIMPLE, 1048576, true, "powers of two"},
        {ATT_PROTOCOL_SIMPLE, 4194304, true, "powers of two"},
        {ATT_PROTOCOL_LL128, 131072, false, "120 times a power of two"},
        {ATT_PROTOCOL_LL128, 122880, true, "120 times a power of two"},
        {ATT_PROTOCOL_LL128, 123000, false, "120 times a power of two"},
        {ATT_PROTOCOL_LL128, 245760, true, "120 times a power of two"},
        {ATT_PROTOCOL_LL128, 4915200, true, "120 times a power of two"},
        {ATT_PROTOCOL_LL, 524288, true, "powers of two"},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        att_knobs_answer_t a =
            ask_one(ATT_KNOB_BUFFER, vectors[i].protocol, vectors[i].value, 23007);
        assert_int_equal(a.legal, vectors[i].legal);
        assert_non_null(strstr(a.why, vectors[i].rule));
    }
}

static void chunks_by_version(void **state)
{
    assert_false(ask_one(ATT_KNOB_CHUNK, ATT_PROTOCOL_SIMPLE, 65536, 22907).legal);
    assert_true(ask_one(ATT_KNOB_CHUNK, ATT_PROTOCOL_SIMPLE, 65536, 23003).legal);
    assert_false(ask_one(ATT_KNOB_CHUNK, ATT_PROTOCOL_SIMPLE, 65537, 23003).legal);
    assert_false(ask_one(ATT_KNOB_CHUNK, ATT_PROTOCOL_SIMPLE, 2097664, 23003).legal);
    assert_true(ask_one(ATT_KNOB_CHUNK, ATT_PROTOCOL_LL128, 576000, 0).legal);
}

/* The hook and the host fabric have them as constants. */
static void chunks_as_in_the_code(void **state)
{
    const att_knobs_t *knobs = att_knobs_get(NULL);
    assert_non_null(knobs);
    int compared = 0;
    for (int c = 0; c < ATT_COLLECTIVE_COUNT; c++)
        for (int a = 0; a < ATT_ALGORITHM_COUNT; a++)
            for (int p = 0; p < ATT_PROTOCOL_COUNT; p++) {
                const att_knob_rule_t *rule = att_knobs_rule(knobs, ATT_KNOB_CHUNK, 23007, c, a, p);
                assert_non_null(rule);
                if (rule->never)
                    continue;
                assert_int_equal(rule->step, att_protocol_grain(p));
                assert_int_equal(rule->min, att_protocol_grain(p));
                assert_int_equal(rule->max,
                                 att_protocol_chunk_most(c, a, p, att_protocol_buffer(p)));
                assert_int_equal(att_chunk_grain(p), att_protocol_grain(p));
                compared++;
            }
    assert_true(compared > 20);
    for (int p = 0; p < ATT_PROTOCOL_COUNT; p++)
        assert_true(ask_one(ATT_KNOB_BUFFER, p, att_protocol_buffer(p), 23007).legal);
}

static void channels_by_version(void **state)
{
    assert_true(ask_one(ATT_KNOB_CHANNELS, ATT_PROTOCOL_LL, 32, 22403).legal);
    assert_false(ask_one(ATT_KNOB_CHANNELS, ATT_PROTOCOL_LL, 33, 22403).legal);
    assert_true(ask_one(ATT_KNOB_CHANNELS, ATT_PROTOCOL_LL, 64, 22501).legal);
    assert_false(ask_one(ATT_KNOB_CHANNELS, ATT_PROTOCOL_LL, 0, 22501).legal);
    assert_false(ask_one(ATT_KNOB_CHANNELS, ATT_PROTOCOL_LL, 65, 0).legal);
}

static void pairs_by_version(void **state)
{
    const att_knobs_t *knobs = att_knobs_get(NULL);
    uint32_t pat = ATT_PAIR_BIT(ATT_ALGORITHM_PAT, ATT_PROTOCOL_SIMPLE);
    assert_false(att_knobs_pairs(knobs, ATT_COLLECTIVE_ALL_GATHER, 22203) & pat);
    assert_true(att_knobs_pairs(knobs, ATT_COLLECTIVE_ALL_GATHER, 22304) & pat);
    assert_false(att_knobs_pairs(knobs, ATT_COLLECTIVE_ALL_REDUCE, 0) & pat);
    att_knobs_question_t question = ATT_KNOBS_OPEN;
    question.collective = ATT_COLLECTIVE_BROADCAST;
    question.algorithm = ATT_ALGORITHM_TREE;
    att_knobs_answer_t answer = ask(&question);
    assert_false(answer.legal);
    assert_non_null(strstr(answer.why, "no kernel"));
}

static void what_is_left_open_may_be_anything(void **state)
{
    att_knobs_question_t question = ATT_KNOBS_OPEN;
    question.version = 22809;
    question.collective = ATT_COLLECTIVE_ALL_REDUCE;
    question.set[ATT_KNOB_THREADS] = true;
    question.value[ATT_KNOB_THREADS] = 480;
    att_knobs_answer_t answer = ask(&question);
    assert_true(answer.legal);
    assert_int_equal(answer.pairs, ATT_PAIR_BIT(ATT_ALGORITHM_RING, ATT_PROTOCOL_LL128));
    question.protocol = ATT_PROTOCOL_SIMPLE;
    answer = ask(&question);
    assert_false(answer.legal);
    assert_non_null(strstr(answer.source, "nccl#698"));
    question.algorithm = ATT_ALGORITHM_TREE;
    answer = ask(&question);
    assert_non_null(strstr(answer.why, "640"));
    question.version = 21903; /* Tree's threads could be set then */
    question.value[ATT_KNOB_THREADS] = 256;
    assert_true(ask(&question).legal);
}

static void order_of_additions(void **state)
{
    const att_knobs_t *knobs = att_knobs_get(NULL);
    for (int knob = 0; knob < ATT_KNOB_COUNT; knob++) {
        assert_true(att_knobs_change_order(knobs, ATT_COLLECTIVE_ALL_REDUCE, knob));
        assert_true(att_knobs_change_order(knobs, ATT_COLLECTIVE_REDUCE_SCATTER, knob));
        assert_true(att_knobs_change_order(knobs, ATT_COLLECTIVE_REDUCE, knob));
        assert_false(att_knobs_change_order(knobs, ATT_COLLECTIVE_ALL_GATHER, knob));
        assert_false(att_knobs_change_order(knobs, ATT_COLLECTIVE_BROADCAST, knob));
    }
}

static void versions(void **state)
{
    int version = 0;
    assert_int_equal(att_nccl_version_parse("2.28.9", &version), 0);
    assert_int_equal(version, 22809);
    assert_int_equal(att_nccl_version_parse("2.28", &version), 0);
    assert_int_equal(version, 22800);
    static const char *const bad[] = {"", "2", "2.28.", "2.28.9x", "2.128.1", "x", "-2.1.1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(att_nccl_version_parse(bad[i], &version), -ATT_EUSAGE);
}

#define DOCUMENT(rule)                                                                             \
    "{\"version\":1,\"pairs_why\":\"w\",\"pairs\":[],\"knobs\":[{\"name\":\"threads\","            \
    "\"scopes\":[],\"read_back\":[],\"rules\":[" rule "]}],\"reduction_order\":[]}"

static void malformed_catalogues_are_named(void **state)
{
    static const struct {
        const char *text, *message;
    } vectors[] = {
        {"{", "line 1"},
        {"{\"version\":2}", "version 1"},
        {"{\"version\":1}", "pairs"},
        {DOCUMENT("7"), "threads, rule 1"},
        {DOCUMENT("{\"why\":\"w\",\"source\":\"s\"}"), "needs \"never\""},
        {DOCUMENT("{\"never\":true}"), "needs \"why\""},
        {DOCUMENT("{\"max\":4,\"why\":\"w\",\"source\":\"s\"}"), "\"step\""},
        {DOCUMENT("{\"max\":-4,\"why\":\"w\",\"source\":\"s\"}"), "max: expected"},
        {DOCUMENT("{\"since\":3,\"why\":\"w\",\"source\":\"s\"}"), "since"},
        {DOCUMENT("{\"protocol\":[\"ll\",\"lll\"],\"why\":\"w\",\"source\":\"s\"}"), "'lll'"},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        att_knobs_t *knobs = NULL;
        att_error_t error = {""};
        assert_true(att_knobs_parse(vectors[i].text, strlen(vectors[i].text), &knobs, &error) < 0);
        assert_null(knobs);
        assert_non_null(strstr(error.text, vectors[i].message));
    }
    att_knobs_t *knobs = NULL;
    static const char good[] = DOCUMENT("{\"never\":true,\"why\":\"w\",\"source\":\"s\"}");
    assert_int_equal(att_knobs_parse(good, sizeof good - 1, &knobs, NULL), 0);
    att_knobs_destroy(knobs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_as_tabled),
        cmocka_unit_test(buffers_as_tabled),
        cmocka_unit_test(chunks_by_version),
        cmocka_unit_test(chunks_as_in_the_code),
        cmocka_unit_test(channels_by_version),
        cmocka_unit_test(pairs_by_version),
        cmocka_unit_test(what_is_left_open_may_be_anything),
        cmocka_unit_test(order_of_additions),
        cmocka_unit_test(versions),
        cmocka_unit_test(malformed_catalogues_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
