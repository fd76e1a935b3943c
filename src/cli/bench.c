#include "cli/bench.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/one_line.h"
#include "cli/bench_driver.h"
#include "cli/bench_options.h"
#include "cli/bench_processes.h"
#include "cli/bench_record_run.h"
#include "cli/bench_sweep.h"
#include "cli/bench_table.h"
#include "cli/json_file.h"
#include "search/knobs.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* For driver threads that have seen a failure to end by themselves. */
#define GRACE_S 5

struct thread {
    const att_bench_job_t *job;
    int index;
    pthread_t id;
    bool passed;
};

static int run_driver(struct thread *thread, att_error_t *error)
{
    att_bench_driver_t driver = {0};
    int rc = att_bench_record_check(thread->job, error);
    if (rc == 0)
        rc = att_bench_driver_open(thread->job, thread->index, &driver, error);
    if (rc == 0 && thread->index == 0)
        att_bench_job_print_header(thread->job);
    if (rc == 0 && att_world_barrier(thread->job->world) != 0)
        rc = att_world_failure(thread->job->world, error);
    const att_bench_options_t *options = thread->job->options;
    if (rc == 0)
        rc = options->record != NULL ? att_bench_record_run(&driver, &thread->passed, error)
             : options->sweep        ? att_bench_sweep_run(&driver, &thread->passed, error)
                                     : att_bench_table_run(&driver, &thread->passed, error);
    /* Nobody takes its communicators away while others still call. */
    if (rc == 0 && att_world_barrier(thread->job->world) != 0)
        rc = att_world_failure(thread->job->world, error);
    if (rc == 0)
        att_bench_driver_close(&driver);
    else
        att_bench_driver_abandon(&driver);
    return rc;
}

static void *thread_main(void *argument)
{
    struct thread *thread = argument;
    att_error_t error = {""};
    thread->passed = true;
    int rc = run_driver(thread, &error);
    if (rc != 0)
        att_world_fail(thread->job->world, rc, error.text);
    return NULL;
}

static int complain(int status, const att_error_t *error)
{
    fflush(stdout);
    att_log(ATT_LOG_ERROR, "%s", error->text);
    return -status;
}

/* Join, but not for ever once the run has failed: a rank whose peer is gone never comes back from
 * its call, and ends with the process. */
static bool join_all(struct thread *threads, int count, struct att_world *world)
{
    bool failed = false;
    uint64_t limit_ns = 0;
    for (int i = 0; i < count;) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 50000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        if (pthread_timedjoin_np(threads[i].id, NULL, &until) == 0) {
            i++;
            continue;
        }
        if (!failed && att_world_failure(world, NULL) != 0) {
            failed = true;
            limit_ns = att_clock_ns() + GRACE_S * 1000000000ull;
        }
        if (failed && att_clock_ns() > limit_ns)
            return false;
    }
    return true;
}

/* All drivers of this process. The exit status. `alone`: there are no other processes. */
static int run_process(att_bench_job_t *job, bool alone)
{
    int count = job->options->threads;
    struct thread *threads = calloc((size_t)count, sizeof *threads);
    att_error_t error = {""};
    int started = 0;
    if (threads == NULL)
        return ATT_ENOMEM;
    for (; started < count; started++) {
        threads[started].job = job;
        threads[started].index = job->process * count + started;
        if (pthread_create(&threads[started].id, NULL, thread_main, &threads[started]) != 0) {
            att_world_fail(job->world, -ATT_ESYSTEM, "cannot start a driver thread");
            break;
        }
    }
    bool joined = join_all(threads, started, job->world);
    int status = att_world_failure(job->world, &error);
    int code = 0;
    if (status != 0)
        code = alone ? complain(status, &error) : -status;
    else if (!threads[0].passed)
        code = ATT_EFAIL;
    fflush(stdout);
    if (!joined)
        _exit(code);
    free(threads);
    return code;
}

static int run_child(const att_bench_options_t *options, int argc, char **argv, int process,
                     int world_descriptor, int setting_descriptor)
{
    att_error_t error = {""};
    struct att_world *world;
    struct att_bench_setting *setting = NULL;
    att_bench_job_t job;
    int rc = att_world_attach(world_descriptor, &world, &error);
    if (rc != 0)
        return complain(rc, &error);
    if (options->bind)
        rc = att_bench_process_bind(process, options->processes, &error);
    if (rc == 0 && setting_descriptor >= 0)
        rc = att_bench_setting_open(setting_descriptor, &setting, &error);
    if (rc == 0)
        rc = att_bench_job_open(&job, options, argc, argv, process, world, setting, &error);
    int code = -rc;
    if (rc != 0) {
        att_world_fail(world, rc, error.text);
    } else {
        code = run_process(&job, false);
        att_bench_job_close(&job);
    }
    att_bench_setting_close(setting);
    att_world_close(world);
    return code;
}

static int run_parent(const att_bench_options_t *options, int argc, char **argv)
{
    att_error_t error = {""};
    struct att_world *world = NULL;
    struct att_bench_setting *setting = NULL;
    att_bench_job_t job;
    int code = 0;
    /* Before hours of measurements, not after them. */
    int rc = options->json != NULL ? att_json_check_writable(options->json, &error) : ATT_OK;
    if (rc == 0)
        rc = att_world_create(options->processes * options->threads, &world, &error);
    if (rc == 0 && (options->sweep || options->has_setting || options->record != NULL))
        rc = att_bench_setting_open(-1, &setting, &error);
    if (rc == 0 && options->has_setting)
        att_bench_setting_apply(setting, options->setting);
    if (rc == 0 && options->processes > 1) {
        rc = att_bench_processes_run(options->processes, world, setting, &code, &error);
        if (rc == 0)
            rc = att_world_failure(world, &error);
    } else if (rc == 0) {
        rc = att_bench_job_open(&job, options, argc, argv, 0, world, setting, &error);
        if (rc == 0) {
            code = run_process(&job, true);
            att_bench_job_close(&job);
        }
    }
    if (rc != 0) {
        int failed = complain(rc, &error);
        code = code != 0 ? code : failed;
    }
    att_bench_setting_close(setting);
    att_world_close(world);
    return code;
}

/* A launcher has started several of them: nccl-tests would be one job. */
static void tell_launched(void)
{
    static const char *const launchers[][2] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                                               {"PMI_SIZE", "PMI_RANK"},
                                               {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"}};
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const char *size = getenv(launchers[i][0]), *rank = getenv(launchers[i][1]);
        if (size == NULL || rank == NULL || atoi(size) < 2)
            continue;
        if (atoi(rank) == 0)
            att_log(ATT_LOG_WARN,
                    "%s=%.16s: attune bench does not join the ranks of a launcher, these are %.16s "
                    "benchmarks at once; --procs N starts N processes of one",
                    launchers[i][0], size, size);
        return;
    }
}

int att_bench_run(const att_bench_options_t *options, int argc, char **argv)
{
    int process, world, setting;
    if (att_bench_process_self(&process, &world, &setting))
        return run_child(options, argc, argv, process, world, setting);
    tell_launched();
    return run_parent(options, argc, argv);
}

int att_bench_main(int argc, char **argv)
{
    att_bench_options_t *options = malloc(sizeof *options);
    att_error_t error = {""};
    if (options == NULL)
        return ATT_ENOMEM;
    char line[ATT_ONE_LINE];
    int code;
    int rc = att_bench_options_parse(options, argc, argv, NULL, &error);
    if (rc != 0 && error.text[0] == '\0') {
        att_bench_options_help(stdout);
        code = 0;
    } else if (rc != 0) {
        fprintf(stderr, "%s\n", att_one_line(error.text, line, sizeof line));
        code = ATT_EUSAGE;
    } else if (att_knobs_get(&error) == NULL) {
        fprintf(stderr, "%s\n", att_one_line(error.text, line, sizeof line));
        code = ATT_ENOENT;
    } else {
        code = att_bench_run(options, argc, argv);
    }
    free(options);
    return code;
}
