/*
 * trace_records FOLDER RECORDS [NODES [RANKS [ring:BYTES]]]: a run folder with so many timed calls,
 * as NODES agents (4) with RANKS ranks (16) would have written them: two message sizes in turn, a
 * list of trials every 1000 calls, clocks seconds apart that drift. "exact" times: nothing is
 * random but a hash of the call, so that two runs are equal.
 *
 * Prints records, seconds and bytes.
 */
#include "base/clock.h"
#include "base/segment.h"
#include "profile/stream_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PERIOD_NS 500000ll
#define TASKS     2u

typedef struct node {
    struct att_stream_writer *writer;
    int64_t offset_ns;
    double drift;
    uint32_t first_rank, ranks;
} node_t;

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

static int64_t local(const node_t *n, int64_t ns)
{
    return ns + n->offset_ns + (int64_t)(n->drift * (double)ns);
}

static void describe(node_t *n, uint32_t ranks, uint32_t nodes)
{
    att_stream_group_t group = {.hash = 0x7ace5eed, .index = 0, .ranks = ranks, .nodes = nodes};
    att_stream_writer_define(n->writer, ATT_FRAME_GROUP, 0, &group, sizeof group);
    for (uint32_t r = 0; r < n->ranks; r++) {
        att_stream_process_t process = {
            .index = r, .pid = (int32_t)(1000 + n->first_rank + r), .program = "made-up"};
        att_stream_writer_define(n->writer, ATT_FRAME_PROCESS, r, &process, sizeof process);
        att_stream_member_t member = {.index = r,
                                      .process = r,
                                      .rank = n->first_rank + r,
                                      .clock_kind = ATT_CLOCK_HOST,
                                      .clock_id = 1 + n->first_rank};
        member.device_id[0] = (uint8_t)(1 + r);
        member.device_id[1] = (uint8_t)n->first_rank;
        att_stream_writer_define(n->writer, ATT_FRAME_MEMBER, r, &member, sizeof member);
    }
    for (uint32_t t = 0; t < TASKS; t++) {
        att_stream_task_t task = {.bytes = 1u << (20 + 2 * t),
                                  .index = t,
                                  .collective = ATT_COLLECTIVE_ALL_REDUCE,
                                  .legal_pairs = 0x3f};
        att_stream_writer_define(n->writer, ATT_FRAME_TASK, t, &task, sizeof task);
    }
}

static void describe_lists(node_t *n, uint64_t call, int64_t ns)
{
    for (uint32_t t = 0; t < TASKS; t++) {
        att_stream_list_t list = {
            .task = t, .txn = (uint32_t)(call / 1000 + 1), .count = 2, .at_ns = local(n, ns)};
        list.entries[0].first_call = call;
        list.entries[0].setting = (att_setting_t){.algorithm = ATT_ALGORITHM_RING,
                                                  .protocol = ATT_PROTOCOL_LL128,
                                                  .transport = ATT_TRANSPORT_KEEP,
                                                  .channels = (uint16_t)(1 + call / 1000 % 16)};
        list.entries[1].first_call = call + 50;
        list.entries[1].setting = ATT_SETTING_KEEP;
        att_stream_writer_note(n->writer, ATT_FRAME_LIST, &list, sizeof list);
    }
}

static void put(node_t *n, uint32_t rank, uint32_t task, uint64_t call, int64_t ns)
{
    uint64_t noise = mix(call * 64 + n->first_rank + rank + 1);
    int64_t start = ns + (int64_t)(noise % 20000), stop = ns + 120000 + (int64_t)(call % 7 * 10000);
    att_stream_record_t r = {.call = call,
                             .start_ns = local(n, start),
                             .stop_ns = local(n, stop),
                             .decided_ns = local(n, start - 5000),
                             .seen_ns = local(n, stop + 5000),
                             .nccl_seq = (uint32_t)(call * TASKS + task),
                             .task = task,
                             .member = rank,
                             .process = rank,
                             .txn = (uint32_t)(call / 1000 + 1),
                             .channels = 8,
                             .threads = 512,
                             .algorithm = ATT_ALGORITHM_RING,
                             .protocol =
                                 call % 1000 < 50 ? ATT_PROTOCOL_LL128 : ATT_PROTOCOL_SIMPLE,
                             .datatype = 7};
    att_stream_writer_record(n->writer, &r, r.decided_ns, r.seen_ns);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: trace_records FOLDER RECORDS [NODES [RANKS [ring:BYTES]]]\n");
        return 2;
    }
    uint64_t records = strtoull(argv[2], NULL, 10), begun = att_clock_ns();
    uint32_t nodes = argc > 3 ? (uint32_t)atoi(argv[3]) : 4;
    uint32_t ranks = argc > 4 ? (uint32_t)atoi(argv[4]) : 16;
    bool ring = argc > 5 && strncmp(argv[5], "ring:", 5) == 0;
    static node_t all[64];
    char folder[4096];
    if (nodes < 1 || nodes > 64 || ranks < nodes || ranks > 1024)
        return 2;
    mkdir(argv[1], 0755);
    snprintf(folder, sizeof folder, "%s/" ATT_STREAM_FOLDER, argv[1]);
    for (uint32_t i = 0; i < nodes; i++) {
        node_t *n = &all[i];
        n->first_rank = i * ranks / nodes;
        n->ranks = (i + 1) * ranks / nodes - n->first_rank;
        n->offset_ns = (int64_t)i * 1500000000ll;
        n->drift = i * 10e-6;
        att_stream_options_t options = {.folder = folder,
                                        .ring = ring,
                                        .limit_bytes =
                                            ring ? strtoull(argv[5] + 5, NULL, 10) : 1ull << 40,
                                        .header = {.node = i,
                                                   .nodes = nodes,
                                                   .host = "made-up",
                                                   .attune = ATTUNE_VERSION,
                                                   .injected_offset_ns = n->offset_ns,
                                                   .injected_drift = n->drift}};
        options.header.node_id[0] = (uint8_t)(i + 1);
        att_error_t error;
        if (att_stream_writer_create(&options, &n->writer, &error) != ATT_OK) {
            fprintf(stderr, "trace_records: %s\n", error.text);
            return 4;
        }
        describe(n, ranks, nodes);
    }
    uint64_t written = 0, dropped = 0, bytes = 0;
    for (uint64_t step = 0; written < records; step++) {
        int64_t ns = 1000000000000ll + (int64_t)step * PERIOD_NS;
        uint64_t call = step / TASKS;
        for (uint32_t i = 0; i < nodes; i++) {
            node_t *n = &all[i];
            if (step % (TASKS * 1000) == 0)
                describe_lists(n, call, ns);
            if (step % 2000 == 0) {
                att_stream_clock_t point = {.at_ns = local(n, ns),
                                            .offset_ns = ns - local(n, ns),
                                            .drift = -n->drift,
                                            .uncertainty_ns = 500,
                                            .round_trip_ns = 900};
                att_stream_writer_define(n->writer, ATT_FRAME_CLOCK, step / 2000 % 256, &point,
                                         sizeof point);
            }
            for (uint32_t r = 0; r < n->ranks && written < records; r++, written++)
                put(n, r, (uint32_t)(step % TASKS), call, ns);
        }
        /* The disk sets the pace: nothing may be dropped here. */
        for (uint32_t i = 0; !ring && step % 512 == 511 && i < nodes; i++)
            att_stream_writer_wait(all[i].writer);
    }
    for (uint32_t i = 0; i < nodes; i++) {
        att_stream_counts_t counts;
        att_stream_writer_flush(all[i].writer);
        att_stream_writer_counts(all[i].writer, &counts);
        dropped += counts.dropped;
        bytes += counts.bytes;
        att_stream_writer_destroy(all[i].writer);
    }
    printf("%" PRIu64 " records, %" PRIu64 " dropped, %.3f s, %.1f MB\n", written, dropped,
           (double)(att_clock_ns() - begun) * 1e-9, (double)bytes * 1e-6);
    return 0;
}
