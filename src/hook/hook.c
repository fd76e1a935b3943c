#include "hook/hook.h"

#include "base/log.h"
#include "base/variables.h"
#include "base/visibility.h"
#include "base/step.h"
#include "hook/context.h"
#include "hook/helper.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Atomic bool att_hook_stopped;

static pthread_mutex_t attach_lock = PTHREAD_MUTEX_INITIALIZER;
static bool attach_tried;
static _Atomic bool attached;
static att_hook_t hook;

void att_hook_say(att_nccl_logger_fn logger, const char *format, ...)
{
    if (logger == NULL)
        return;
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    logger(ATT_NCCL_LOG_INFO, ATT_NCCL_SUBSYSTEM_INIT | ATT_NCCL_SUBSYSTEM_TUNING, __FILE__,
           __LINE__, "attune: %s", text);
}

/* A child shares the mapping but not the identity of its parent: it must never write there. */
static void stop_in_child(void)
{
    att_helper_forget();
    atomic_store_explicit(&att_hook_stopped, true, memory_order_relaxed);
}

/* A sidecar may come later: at the start this is information, and at the end too, since a job
 * without sidecar is a job as NCCL alone would run it. */
static void explain_absence(const char *when)
{
    char why[512];
    if (att_log_level() < ATT_LOG_INFO)
        return;
    att_visibility_text(att_segment_file(hook.segment), why, sizeof why);
    att_log(ATT_LOG_INFO, "%s: %s", when, why);
}

static bool attach(att_nccl_logger_fn logger)
{
    if (att_variable_is_on("ATTUNE_DISABLE")) {
        att_hook_say(logger, "switched off by ATTUNE_DISABLE");
        return false;
    }
    if (!att_variable_is_on("ATTUNE_RUN_ID") && !att_variable_is_on("SLURM_JOB_ID")) {
        att_hook_say(logger, "inactive: neither ATTUNE_RUN_ID nor SLURM_JOB_ID is set");
        return false;
    }
    att_error_t error = {""};
    att_segment_name_t from_environment = {0};
    if (att_step_init(getenv("ATTUNE_DEBUG_STEPS"), &error) != ATT_OK) {
        att_log(ATT_LOG_WARN, "this process is not tuned: %s", error.text);
        return false;
    }
    if (att_segment_open(&from_environment, ATT_SEGMENT_HOOK, &hook.segment, &error) != ATT_OK) {
        att_log(ATT_LOG_WARN, "this process is not tuned: %s", error.text);
        return false;
    }
    hook.memory = att_segment_memory(hook.segment);
    hook.process_index = att_segment_add_process(hook.memory, program_invocation_name);
    if (hook.process_index == ATT_NONE || pthread_atfork(NULL, NULL, stop_in_child) != 0) {
        att_log(ATT_LOG_WARN, "this process is not tuned: more than %d processes on this node",
                ATT_PROCESSES);
        att_segment_close(hook.segment);
        return false;
    }
    att_segment_guard(hook.segment, hook.process_index);
    hook.process = &hook.memory->processes[hook.process_index];
    hook.ring = &hook.memory->rings[hook.process_index];
    bool served = att_segment_agent_alive(hook.segment);
    att_hook_say(logger, "%s is attached to %s%s", ATTUNE_VERSION, att_segment_file(hook.segment),
                 served ? "" : "; no sidecar yet (ATTUNE_LOG=info says why)");
    if (!served)
        explain_absence("no sidecar yet");
    return true;
}

const att_hook_t *att_hook_attach(att_nccl_logger_fn logger)
{
    if (att_hook_is_stopped())
        return NULL;
    pthread_mutex_lock(&attach_lock);
    if (!attach_tried && !attach(logger))
        hook.memory = NULL;
    attach_tried = true;
    atomic_store_explicit(&attached, hook.memory != NULL, memory_order_release);
    pthread_mutex_unlock(&attach_lock);
    return hook.memory != NULL ? &hook : NULL;
}

const att_hook_t *att_hook_attached(void)
{
    return !att_hook_is_stopped() && atomic_load_explicit(&attached, memory_order_acquire) ? &hook
                                                                                           : NULL;
}

void att_hook_serve_homes(void)
{
    pthread_mutex_lock(&attach_lock);
    if (hook.memory != NULL)
        att_helper_start(hook.memory, hook.process);
    pthread_mutex_unlock(&attach_lock);
}

/* The mapping stays (threads of NCCL may still run); only the file goes, when nobody else uses it.
 */
__attribute__((destructor)) static void leave(void)
{
    if (att_hook_is_stopped() || hook.memory == NULL)
        return;
    att_context_flush_all();
    atomic_store_explicit(&att_hook_stopped, true, memory_order_relaxed);
    atomic_store(&hook.process->state, ATT_ENTRY_RETIRED);
    if (atomic_load(&hook.memory->header.agent_epoch) == 0)
        explain_absence("no sidecar came, nothing was tuned");
    att_log_finish();
    att_segment_let_go(hook.segment);
}
