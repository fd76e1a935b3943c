/*
 * message: what agents send each other about groups over several nodes (control/protocol.h names
 * the types). Fixed layout; the same machine type on all agents of a job is assumed, as MPI_BYTE
 * does. Only att_message_bytes() of it travel.
 */
#ifndef ATT_CONTROL_MESSAGE_H
#define ATT_CONTROL_MESSAGE_H

#include "control/facts.h"
#include "control/identity.h"
#include "control/protocol.h"
#include "control/task.h"
#include "profile/aggregate.h"

#define ATT_REASON_BYTES    200
#define ATT_SAMPLES_A_SLICE 256

/* Where the home words of a group are served. */
typedef struct att_home_path {
    uint32_t port; /* 0: nowhere */
    uint32_t reserved;
    uint8_t key[16];
    char address[ATT_ADDRESSES][ATT_ADDRESS_TEXT];
} att_home_path_t;

typedef struct att_message {
    uint32_t type;  /* att_message_type_t */
    uint32_t count; /* of ranks, parts or samples */
    att_group_key_t group;
    att_task_key_t task;
    union {
        struct {
            uint32_t nodes; /* as NCCL says */
            uint32_t rank[ATT_RANKS_A_SLICE];
        } ranks; /* REGISTER */
        struct {
            uint32_t first, total; /* slice of the list */
            uint32_t agent[ATT_RANKS_A_SLICE];
        } agents;                      /* NODES */
        att_place_t place;             /* PLACE */
        char reason[ATT_REASON_BYTES]; /* END, ENDED */
        att_home_path_t path;          /* PATH */
        struct {
            uint32_t agents; /* that reached the home */
            uint32_t failed; /* one that did not, ATT_NONE */
        } reached;           /* REACHED */
        uint32_t on;         /* TIMING */
        struct {
            uint32_t home_task;
            uint32_t reserved;
            att_schedule_t schedule;
        } prepare;           /* PREPARE */
        att_ballot_t ballot; /* VOTE */
        struct {
            uint32_t txn, state;
        } outcome;                          /* OUTCOME, RECORDED */
        att_reported_t facts;               /* FACTS */
        att_part_t part[ATT_PARTS_A_SLICE]; /* PARTS */
        struct {
            att_task_report_t row;
            char reason[ATT_REASON_BYTES];
        } report; /* REPORT */
        struct {
            att_coverage_t coverage;
            uint64_t records;
            uint32_t last; /* nothing more will come from this agent */
            uint32_t reserved;
        } node; /* COVERAGE */
        struct {
            uint32_t index, nodes, nccl_version;
            char device[ATT_DEVICE_TEXT];
            att_schedule_t schedule;
        } list; /* LIST */
        struct {
            uint32_t index, txn;
        } over; /* OVER */
        struct {
            uint32_t number, phase;
            att_setting_t setting;
            uint64_t first_call;
            uint32_t calls, outcome;
            double median_us, baseline_us;
            double samples_us[ATT_SAMPLES_A_SLICE];
        } trial; /* TRIAL */
    } body;
} att_message_t;
_Static_assert(sizeof(att_message_t) <= 4096, "a message fits the messenger");

/* Records that its parts stand for. */
uint64_t att_message_records(const att_message_t *message);
/* Bytes of it that travel; 0: not a message. */
uint32_t att_message_bytes(const att_message_t *message);
/* Copy what came; -ATT_EINPUT: not a message of the right size, or a count beyond its body. */
int att_message_read(const void *bytes, uint32_t size, att_message_t *message);

#endif
