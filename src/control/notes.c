#include "control/notes.h"

#include "control/run_folder.h"

#include <stdio.h>
#include <string.h>

bool att_notes_full(const att_notes_t *notes)
{
    return notes != NULL && notes->folder == NULL && notes->is_full != NULL &&
           notes->is_full(notes->context);
}

void att_notes_list(const att_notes_t *notes, uint32_t index, const att_identity_t *task,
                    const att_schedule_t *schedule)
{
    if (notes == NULL)
        return;
    if (notes->folder != NULL) {
        att_run_folder_list(notes->folder, index, task, schedule);
    } else if (notes->send != NULL) {
        att_message_t m = {.type = ATT_MESSAGE_LIST,
                           .group = {.ranks = task->ranks},
                           .task = {.bytes = task->bytes, .collective = task->collective}};
        m.body.list.index = index;
        m.body.list.nodes = task->nodes;
        m.body.list.nccl_version = task->nccl_version;
        memcpy(m.body.list.device, task->device, sizeof m.body.list.device);
        m.body.list.schedule = *schedule;
        notes->send(notes->context, &m);
    }
}

void att_notes_over(const att_notes_t *notes, uint32_t index, uint32_t txn)
{
    if (notes == NULL)
        return;
    if (notes->folder != NULL) {
        att_run_folder_list_over(notes->folder, index, txn);
    } else if (notes->send != NULL) {
        att_message_t m = {.type = ATT_MESSAGE_OVER};
        m.body.over.index = index;
        m.body.over.txn = txn;
        notes->send(notes->context, &m);
    }
}

void att_notes_trial(const att_notes_t *notes, const att_task_report_t *task,
                     const att_trial_t *trial, json_t *counted)
{
    if (notes == NULL)
        return;
    if (notes->folder != NULL) {
        att_run_folder_trial(notes->folder, task, trial, counted);
    } else if (notes->send != NULL) {
        const att_result_t *result = &trial->result;
        att_message_t m = {.type = ATT_MESSAGE_TRIAL,
                           .group = {.hash = task->hash, .ranks = task->ranks},
                           .task = {task->bytes, task->collective, task->legal_pairs}};
        m.count =
            result->sample_count < ATT_SAMPLES_A_SLICE ? result->sample_count : ATT_SAMPLES_A_SLICE;
        m.body.trial.number = trial->number;
        m.body.trial.phase = trial->phase;
        m.body.trial.setting = trial->setting;
        m.body.trial.first_call = trial->first_call;
        m.body.trial.calls = trial->calls;
        m.body.trial.outcome = result->outcome;
        m.body.trial.median_us = result->median_us;
        m.body.trial.baseline_us = result->baseline_median_us;
        if (m.count > 0)
            memcpy(m.body.trial.samples_us, result->samples_us, m.count * sizeof(double));
        notes->send(notes->context, &m);
    }
}

static void take_list(const att_notes_t *notes, uint32_t index, const att_message_t *m)
{
    att_identity_t task = {.nccl_version = m->body.list.nccl_version,
                           .collective = m->task.collective,
                           .ranks = m->group.ranks,
                           .nodes = m->body.list.nodes,
                           .bytes = m->task.bytes};
    snprintf(task.device, sizeof task.device, "%.*s", (int)sizeof m->body.list.device - 1,
             m->body.list.device);
    if (m->body.list.schedule.count <= ATT_SCHEDULE)
        att_run_folder_list(notes->folder, index, &task, &m->body.list.schedule);
}

static void take_trial(const att_notes_t *notes, const att_message_t *m)
{
    att_task_report_t task = {.hash = m->group.hash,
                              .ranks = m->group.ranks,
                              .collective = m->task.collective,
                              .bytes = m->task.bytes};
    att_trial_t trial = {.number = m->body.trial.number,
                         .phase = (att_phase_t)m->body.trial.phase,
                         .setting = m->body.trial.setting,
                         .first_call = m->body.trial.first_call,
                         .calls = m->body.trial.calls,
                         .result = {.outcome = m->body.trial.outcome,
                                    .sample_count = m->count,
                                    .samples_us = m->body.trial.samples_us,
                                    .median_us = m->body.trial.median_us,
                                    .baseline_median_us = m->body.trial.baseline_us}};
    att_run_folder_trial(notes->folder, &task, &trial, NULL);
}

void att_notes_take(const att_notes_t *notes, uint32_t from, const att_message_t *m)
{
    if (notes == NULL || notes->folder == NULL)
        return;
    uint32_t first = from * ATT_TASKS;
    if (m->type == ATT_MESSAGE_LIST)
        take_list(notes, first + m->body.list.index % ATT_TASKS, m);
    else if (m->type == ATT_MESSAGE_OVER)
        att_run_folder_list_over(notes->folder, first + m->body.over.index % ATT_TASKS,
                                 m->body.over.txn);
    else if (m->type == ATT_MESSAGE_TRIAL)
        take_trial(notes, m);
}
