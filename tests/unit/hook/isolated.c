#include "isolated.h"

#include "base/ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

void isolated(void (*body)(void), bool leaves)
{
    char directory[] = "/tmp/attune-hook-XXXXXX";
    assert_non_null(mkdtemp(directory));
    fflush(stdout);
    fflush(stderr);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("ATTUNE_SHM_DIR", directory, 1);
        setenv("ATTUNE_RUN_ID", "test", 1);
        unsetenv("SLURM_JOB_ID");
        unsetenv("ATTUNE_NODE");
        body();
        exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    int left = rmdir(directory);
    if (left != 0) {
        char command[64];
        snprintf(command, sizeof command, "rm -rf %s", directory);
        assert_int_equal(system(command), 0);
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(left != 0, leaves);
}

static att_segment_memory_t *memory;

att_segment_memory_t *agent_memory(void)
{
    struct att_segment *segment;
    att_error_t error = {""};
    att_segment_name_t name = {0};
    if (memory == NULL) {
        if (att_segment_open(&name, ATT_SEGMENT_AGENT, &segment, &error) != ATT_OK) {
            fprintf(stderr, "agent: %s\n", error.text);
            exit(1);
        }
        memory = att_segment_memory(segment);
    }
    return memory;
}

uint32_t agent_task(int collective, uint64_t bytes)
{
    uint32_t found = ATT_NONE;
    for (uint32_t i = 0; i < atomic_load(&memory->header.task_count); i++) {
        att_segment_task_t *task = &memory->tasks[i];
        if (atomic_load(&task->state) == ATT_ENTRY_LIVE &&
            task->collective == (uint32_t)collective && task->bytes == bytes) {
            CHECK(found == ATT_NONE);
            found = i;
        }
    }
    CHECK(found != ATT_NONE);
    return found;
}

uint32_t agent_lanes(uint32_t task, uint32_t *lanes)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < atomic_load(&memory->header.lane_count) && count < 64; i++)
        if (memory->lanes[i].task == task)
            lanes[count++] = i;
    return count;
}

void agent_commit(uint32_t index, uint64_t fence, const att_setting_t *settings, uint32_t count,
                  uint64_t calls)
{
    static uint32_t txn;
    att_segment_task_t *task = &memory->tasks[index];
    uint32_t lanes[64];
    uint32_t lane_count = agent_lanes(index, lanes);
    att_schedule_t schedule = {.txn = ++txn, .count = count};
    for (uint32_t i = 0; i < count; i++)
        schedule.entries[i] = (att_schedule_entry_t){fence + i * calls, settings[i]};
    CHECK_EQUAL(att_home_open(task, txn), ATT_OK);
    CHECK_EQUAL(att_vote_prepare(memory, task, lanes, lane_count, &schedule), ATT_VOTE_YES);
    CHECK_EQUAL(att_home_decide(task, txn, ATT_HOME_COMMITTED), ATT_HOME_COMMITTED);
}

bool agent_record(att_record_t *record)
{
    return att_ring_get(&agent_memory()->rings[0], record);
}
