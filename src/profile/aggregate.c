#include "profile/aggregate.h"

#include "attune/setting.h"

#include <stdlib.h>

struct att_aggregate {
    uint32_t ranks;
    uint64_t lost;
    att_aggregate_fates_t fates;
    att_part_t window[ATT_AGGREGATE_WINDOW]; /* ranks = 0: empty */
};

const char *att_reduction_name(att_reduction_t reduction)
{
    static const char *const names[] = {"none", "common clock", "shortest rank", "start to start"};
    return reduction < ATT_REDUCTION_COUNT ? names[reduction] : "unknown";
}

att_reduction_t att_reduction_choose(int collective, bool one_clock)
{
    if (one_clock)
        return ATT_REDUCTION_COMMON;
    switch (collective) {
    case ATT_COLLECTIVE_ALL_REDUCE:
    case ATT_COLLECTIVE_ALL_GATHER:
    case ATT_COLLECTIVE_REDUCE_SCATTER:
        return ATT_REDUCTION_MIN;
    default:
        return ATT_REDUCTION_NONE;
    }
}

att_part_t att_part_of_record(const att_record_t *record)
{
    return (att_part_t){
        .call = record->call,
        .last_start_ns = record->start_ns,
        .last_stop_ns = record->stop_ns,
        .shortest_ns = record->stop_ns - record->start_ns,
        .start_sum_ns = record->start_ns,
        .nccl_seq = record->nccl_seq,
        .ranks = 1,
        .txn = record->txn,
        .untimed = record->source == ATT_TIME_NONE && record->untimed == ATT_UNTIMED_NO
                       ? ATT_UNTIMED_LOST
                       : record->untimed,
        .algorithm = record->algorithm,
        .protocol = record->protocol,
        .channels = record->channels,
    };
}

int att_aggregate_create(uint32_t ranks, struct att_aggregate **out)
{
    struct att_aggregate *aggregate = calloc(1, sizeof *aggregate);
    if (aggregate == NULL)
        return -ATT_ENOMEM;
    aggregate->ranks = ranks;
    *out = aggregate;
    return ATT_OK;
}

void att_aggregate_destroy(struct att_aggregate *aggregate)
{
    free(aggregate);
}

/* The two last starts of both, and whose the last one is. */
static void merge_starts(att_part_t *into, const att_part_t *part)
{
    uint64_t second = part->last_start_ns;
    if (part->last_start_ns > into->last_start_ns) {
        second = into->last_start_ns;
        into->last_start_ns = part->last_start_ns;
        into->last_rank = part->last_rank;
    }
    if (part->second_start_ns > second)
        second = part->second_start_ns;
    if (second > into->second_start_ns)
        into->second_start_ns = second;
}

static void merge(att_part_t *into, const att_part_t *part)
{
    bool differs = into->txn != part->txn ||
                   (into->untimed == ATT_UNTIMED_NO && part->untimed == ATT_UNTIMED_NO &&
                    into->nccl_seq != part->nccl_seq);
    if (!into->differs && (differs || part->differs)) {
        into->differs = 1;
        into->odd_rank = part->differs ? part->odd_rank : part->rank;
        if (part->differs)
            into->rank = part->rank;
    }
    into->disturbed |= part->disturbed;
    if (into->untimed != ATT_UNTIMED_NO && part->untimed == ATT_UNTIMED_NO) {
        into->nccl_seq = part->nccl_seq;
        into->algorithm = part->algorithm;
        into->protocol = part->protocol;
        into->channels = part->channels;
    }
    if (part->untimed == ATT_UNTIMED_NO) {
        merge_starts(into, part);
        if (part->last_stop_ns > into->last_stop_ns)
            into->last_stop_ns = part->last_stop_ns;
        if (into->untimed != ATT_UNTIMED_NO || part->shortest_ns < into->shortest_ns)
            into->shortest_ns = part->shortest_ns;
    }
    if (into->untimed == ATT_UNTIMED_NO)
        into->untimed = part->untimed;
    into->start_sum_ns += part->start_sum_ns;
    into->ranks += part->ranks;
}

int att_aggregate_add(struct att_aggregate *aggregate, const att_part_t *part, att_part_t *whole)
{
    att_part_t *slot = &aggregate->window[part->call % ATT_AGGREGATE_WINDOW];
    att_aggregate_fates_t *fates = &aggregate->fates;
    fates->added += part->ranks;
    if (slot->ranks != 0 && slot->call != part->call) {
        if (part->call < slot->call) { /* later than the window: its call was counted as lost */
            fates->late += part->ranks;
            return 0;
        }
        aggregate->lost++;
        fates->lost += slot->ranks;
        fates->waiting -= slot->ranks;
        slot->ranks = 0;
    }
    fates->waiting += part->ranks;
    if (slot->ranks == 0)
        *slot = *part;
    else
        merge(slot, part);
    if (slot->ranks < aggregate->ranks)
        return 0;
    *whole = *slot;
    fates->whole += slot->ranks;
    fates->waiting -= slot->ranks;
    slot->ranks = 0;
    return 1;
}

att_aggregate_fates_t att_aggregate_fates(const struct att_aggregate *aggregate)
{
    return aggregate->fates;
}

att_aggregate_fates_t att_aggregate_end(struct att_aggregate *aggregate)
{
    att_aggregate_fates_t fates = aggregate->fates;
    fates.lost += fates.waiting;
    fates.waiting = 0;
    att_aggregate_destroy(aggregate);
    return fates;
}

uint64_t att_aggregate_lost(const struct att_aggregate *aggregate)
{
    return aggregate->lost;
}

double att_part_interval_us(const att_part_t *whole, const att_part_t *next)
{
    if (next->call != whole->call + 1 || whole->untimed != ATT_UNTIMED_NO || whole->differs ||
        next->untimed != ATT_UNTIMED_NO || next->differs || whole->ranks != next->ranks)
        return -1;
    int64_t sum = (int64_t)(next->start_sum_ns - whole->start_sum_ns);
    return sum > 0 ? (double)sum / whole->ranks * 1e-3 : -1;
}

double att_part_duration_us(const att_part_t *whole, att_reduction_t reduction)
{
    if (whole->untimed != ATT_UNTIMED_NO || whole->differs)
        return -1;
    switch (reduction) {
    case ATT_REDUCTION_COMMON:
        return whole->last_stop_ns > whole->last_start_ns
                   ? (double)(whole->last_stop_ns - whole->last_start_ns) * 1e-3
                   : -1;
    case ATT_REDUCTION_MIN:
        return whole->shortest_ns > 0 ? (double)whole->shortest_ns * 1e-3 : -1;
    default:
        return -1;
    }
}
