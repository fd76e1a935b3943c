/* variants: the list as the user writes it. */
#include "base/variants.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static att_variants_t parsed(const char *text)
{
    att_variants_t v;
    att_error_t error = {""};
    if (att_variants_parse(text, &v, &error) != ATT_OK)
        fail_msg("%s: %s", text, error.text);
    return v;
}

static void refused(const char *text, const char *why)
{
    att_variants_t v;
    att_error_t error = {""};
    assert_int_equal(att_variants_parse(text, &v, &error), -ATT_EUSAGE);
    if (strstr(error.text, why) == NULL)
        fail_msg("%s: %s", text, error.text);
}

static void lists(void **state)
{
    att_variants_t none = parsed("");
    assert_int_equal(none.count, 0);
    assert_int_equal(none.digest, 0);
    att_variants_t v = parsed("nt=128,256,512");
    assert_int_equal(v.count, 3);
    assert_int_equal(v.items[1].threads, 256);
    assert_int_equal(v.items[1].transport, ATT_TRANSPORT_KEEP);
    /* Every combination but "all as it is". */
    v = parsed("nt=128;t=p2p,shm");
    assert_int_equal(v.count, 5);
    assert_int_equal(v.items[0].threads, 128);
    assert_int_equal(v.items[1].threads, 0);
    assert_int_equal(v.items[1].transport, ATT_TRANSPORT_P2P);
    assert_int_equal(v.items[4].threads, 128);
    assert_int_equal(v.items[4].transport, ATT_TRANSPORT_SHM);
    /* The knobs may be split over items; the digest tells lists apart. */
    assert_int_equal(parsed("t=p2p;nt=128;t=shm").digest, v.digest);
    assert_int_not_equal(parsed("t=shm,p2p;nt=128").digest, v.digest);
    assert_int_not_equal(parsed("nt=128").digest, v.digest);
    assert_int_equal(parsed("nt=128,256,512;t=p2p,shm,net").count, ATT_VARIANTS);
}

/* Of NCCL without a chunk per call: the chunk that a buffer gives a pair names the variant. */
static void buffers(void **state)
{
    att_variants_t v = parsed("buffer=512K,1M;nt=128");
    assert_int_equal(v.count, 5);
    assert_true(v.buffers);
    assert_false(parsed("nt=128").buffers);
    assert_int_equal(v.items[0].threads, 128);
    assert_int_equal(v.items[1].buffer, 512 << 10);
    assert_int_equal(v.items[4].threads, 128);
    assert_int_equal(v.items[4].buffer, 1 << 20);
    assert_int_not_equal(parsed("buffer=512K").digest, parsed("buffer=1M").digest);
    att_setting_t s = {.algorithm = ATT_ALGORITHM_RING,
                       .protocol = ATT_PROTOCOL_SIMPLE,
                       .transport = ATT_TRANSPORT_KEEP,
                       .chunk_bytes = 256 << 10};
    assert_int_equal(att_variants_find(&v, ATT_COLLECTIVE_ALL_GATHER, s), 1); /* 4 steps of 8 */
    assert_int_equal(att_variants_find(&v, ATT_COLLECTIVE_BROADCAST, s), -2);
    s.chunk_bytes = 64 << 10; /* one step */
    assert_int_equal(att_variants_find(&v, ATT_COLLECTIVE_BROADCAST, s), 1);
    s.algorithm = ATT_ALGORITHM_TREE;
    assert_int_equal(att_variants_find(&v, ATT_COLLECTIVE_ALL_REDUCE, s), 1);
    s.threads = 128;
    assert_int_equal(att_variants_find(&v, ATT_COLLECTIVE_ALL_REDUCE, s), 2);
    s.chunk_bytes = 0;
    assert_int_equal(att_variants_find(&v, ATT_COLLECTIVE_ALL_REDUCE, s), 0);
    s.threads = 0;
    assert_int_equal(att_variants_find(&v, ATT_COLLECTIVE_ALL_REDUCE, s), -1);
    s.protocol = ATT_PROTOCOL_LL; /* has a buffer of its own */
    s.chunk_bytes = 64 << 10;
    assert_int_equal(att_variants_find(&v, ATT_COLLECTIVE_ALL_REDUCE, s), -2);
    /* With a chunk per call it names nothing. */
    v = parsed("nt=128");
    assert_int_equal(att_variants_find(&v, ATT_COLLECTIVE_ALL_REDUCE, s), -1);
    refused("buffer=", "a power of two from 64K to 16M");
    refused("buffer=1000000", "a power of two");
    refused("buffer=32K", "a power of two");
    refused("buffer=32M", "a power of two");
    refused("buffer=1M,1M", "twice");
    refused("chunk=1M", "nt=THREADS,..., t=TRANSPORT,... or buffer=BYTES,...");
}

static void bad_lists(void **state)
{
    refused("nt=480", "128, 256 or 512");
    refused("nt=", "128, 256 or 512");
    refused("nt=128,", "128, 256 or 512");
    refused("nt=99999999999999", "128, 256 or 512");
    refused("nt=128,128", "twice");
    refused("t=ib", "p2p, shm or net");
    refused("t=p2pp2pp2pp2pp2pp2p", "p2p, shm or net");
    refused("t=p2p;t=p2p", "twice");
    refused("threads=128", "expected nt=");
    refused("nt", "expected nt=");
}

static void where_a_setting_runs(void **state)
{
    att_variants_t v = parsed("nt=128,256;t=shm");
    att_setting_t s = ATT_SETTING_KEEP;
    assert_int_equal(att_variants_find(&v, ATT_COLLECTIVE_ALL_GATHER, s), -1);
    s.channels = 3;
    assert_int_equal(att_variants_find(&v, ATT_COLLECTIVE_ALL_GATHER, s), -1);
    for (uint32_t i = 0; i < v.count; i++) {
        s.threads = v.items[i].threads;
        s.transport = v.items[i].transport;
        assert_int_equal(att_variants_find(&v, ATT_COLLECTIVE_ALL_GATHER, s), i);
    }
    s.threads = 512;
    assert_int_equal(att_variants_find(&v, ATT_COLLECTIVE_ALL_GATHER, s), -2);
}

static void memory(void **state)
{
    /* 24 channels: 4 connections of 9.2 MiB each, and 1 MiB. */
    const att_variants_t one = parsed("nt=128"), three = parsed("nt=128,256,512"),
                         none = parsed("");
    assert_int_equal(att_variants_bytes(&one, 24), 24ull * 4 * 9633792 + 1048576);
    assert_int_equal(att_variants_bytes(&three, 24), 3 * att_variants_bytes(&one, 24));
    assert_int_equal(att_variants_bytes(&none, 24), 0);
    const att_variants_t small = parsed("buffer=64K");
    assert_int_equal(att_variants_bytes(&small, 24),
                     24ull * 4 * (9633792 - 4194304 + 65536) + 1048576);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists),     cmocka_unit_test(buffers),
        cmocka_unit_test(bad_lists), cmocka_unit_test(where_a_setting_runs),
        cmocka_unit_test(memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
