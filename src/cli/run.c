#include "cli/run.h"

#include "base/config.h"
#include "base/log.h"
#include "base/one_line.h"
#include "base/segment.h"
#include "base/variables.h"
#include "cli/counters_missing.h"
#include "cli/findings.h"
#include "cli/job.h"
#include "cli/job_environment.h"
#include "cli/places.h"
#include "cli/progress.h"
#include "cli/run_check.h"
#include "cli/job_folder.h"
#include "cli/shell_word.h"
#include "cli/sidecar.h"
#include "cli/summary.h"
#include "cli/tasks_file.h"
#include "cli/tuner_csv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define READY_LIMIT_MS 20000
#define STOP_LIMIT_MS  5000
#define TICK_NS        200000000

typedef struct run {
    att_config_t config;
    att_places_t places;
    att_job_folder_t folder;
    att_sidecar_t sidecar;
    att_job_t job;
    att_manifest_t manifest;
    bool untuned;      /* the sidecar did not start: the command runs without attune */
    sigset_t signals;  /* passed on to the command */
    sigset_t watched;  /* those and SIGCHLD: blocked while attune run works */
    sigset_t original; /* mask that attune was started with, for its children */
} run_t;

static int refuse(const att_error_t *error)
{
    att_log(ATT_LOG_ERROR, "%s", error->text);
    return ATT_RUN_FAILED;
}

static void print_help(void)
{
    printf("Usage: attune run [options] -- command [argument...]\n\n"
           "Run a command that uses NCCL, and tune its collectives while it runs.\n\n"
           "  attune run -- mpirun -n 8 ./train\n"
           "  attune run --max-cost 1%% --strategy random:trials=50 -- python train.py\n"
           "  attune run --fabric model --surface a40-nvlink-8-allgather -- \\\n"
           "      attune bench allgather -b 80M -e 80M -t 8 -n 4000\n\n");
    att_config_print_help(stdout, ATT_FOR_RUN);
    printf(
        "\nExit status: the command's own; 128+n when signal n ended it; 125 when attune failed\n"
        "before starting it; 126 when it cannot be run; 127 when it is not found. Where the\n"
        "sidecar cannot start on this machine, a command that uses a GPU's NCCL runs without\n"
        "attune; where an option asks for what cannot be had (a port that is taken), nothing "
        "runs.\n");
}

static void write_manifest(run_t *run)
{
    att_error_t error;
    run->manifest.sidecar_end = run->sidecar.end[0] != '\0' ? run->sidecar.end : NULL;
    if (att_job_folder_manifest(&run->folder, &run->manifest, &error) != ATT_OK)
        att_log(ATT_LOG_WARN, "%s", error.text);
}

static void tell_missing_counters(const run_t *run)
{
    char text[ATT_COUNTERS_MISSING];
    if (att_counters_missing(run->folder.path, run->config.counters, text)[0] != '\0')
        att_log(ATT_LOG_WARN, "%s", text);
}

/* Make the folder and have the sidecar ready. A machine on which it does not start costs the job
 * its tuning only; with a fabric of attune's there is no job but attune's. Returns 0, or the exit
 * status with the line said. */
static int start_sidecar(run_t *run)
{
    char log_file[PATH_MAX];
    att_error_t error = {""};
    int rc = att_job_folder_create(run->config.run_dir, run->config.run_id, &run->folder, &error);
    if (rc == ATT_OK)
        rc = att_config_set(&run->config, "run-dir", run->folder.path, "--run-dir", &error);
    if (rc == ATT_OK)
        rc = att_config_set(&run->config, "run-id", run->folder.run_id, "--run-id", &error);
    if (rc != ATT_OK)
        return refuse(&error);
    write_manifest(run);
    att_job_folder_file(&run->folder, "attuned.log", log_file);
    rc = att_sidecar_start(&run->sidecar, run->places.sidecar, &run->config, log_file,
                           &run->original, &error);
    if (rc == ATT_OK)
        rc = att_sidecar_wait_ready(&run->sidecar, &run->signals, READY_LIMIT_MS, &error);
    if (rc == ATT_OK) {
        tell_missing_counters(run);
        return 0;
    }
    att_sidecar_stop(&run->sidecar, STOP_LIMIT_MS);
    if (rc == -ATT_EBUSY) {
        const struct timespec now = {0, 0};
        int signal_number = sigtimedwait(&run->signals, NULL, &now);
        return 128 + (signal_number > 0 ? signal_number : SIGTERM);
    }
    run->untuned = strcmp(run->config.fabric, "none") == 0 && rc != -ATT_EUSAGE;
    att_log(run->untuned ? ATT_LOG_WARN : ATT_LOG_ERROR,
            "the sidecar did not start: %s (its log is %s)%s", error.text, log_file,
            run->untuned ? ": the command runs without attune" : ": the command was not run");
    return run->untuned ? 0 : ATT_RUN_FAILED;
}

static void watch_job(run_t *run)
{
    char tasks_file[PATH_MAX];
    const struct timespec tick = {0, TICK_NS};
    bool sidecar_runs = !run->untuned;
    att_progress_t progress;
    att_progress_init(&progress, att_job_folder_file(&run->folder, "tasks.json", tasks_file),
                      run->config.quiet);
    while (att_job_running(&run->job)) {
        siginfo_t info;
        int signal_number = sigtimedwait(&run->watched, &info, &tick);
        if (signal_number > 0 && signal_number != SIGCHLD)
            att_job_forward(&run->job, &info);
        if (sidecar_runs && !att_sidecar_running(&run->sidecar)) {
            sidecar_runs = false;
            write_manifest(run); /* for those that wait for its reports */
            att_progress_clear(&progress);
            att_log(ATT_LOG_WARN,
                    "the sidecar is gone (%s): the job goes on without tuning; see %s",
                    run->sidecar.end, att_job_folder_file(&run->folder, "attuned.log", tasks_file));
            att_job_folder_file(&run->folder, "tasks.json", tasks_file);
        }
        if (sidecar_runs)
            att_progress_update(&progress);
    }
    att_progress_clear(&progress);
}

static void tell_failures(const att_tasks_t *tasks)
{
    const char *reason = "";
    size_t failed = att_tasks_failed(tasks, &reason);
    if (failed > 0)
        att_log(ATT_LOG_WARN, "%zu of %zu tasks %s not tuned: %s", failed, tasks->count,
                failed == 1 ? "was" : "were", reason);
}

/* Perhaps a setting on trial was to blame. */
static void suspect(const run_t *run, const att_tasks_t *tasks)
{
    int searching = 0;
    for (size_t i = 0; i < tasks->count; i++)
        searching += strcmp(tasks->rows[i].phase, "search") == 0 ||
                     strcmp(tasks->rows[i].phase, "final") == 0 ||
                     strcmp(tasks->rows[i].phase, "guard") == 0;
    bool reader_left = run->job.exit_status == 128 + SIGPIPE;
    if (run->job.exit_status != 0 && !reader_left && searching > 0)
        att_log(ATT_LOG_WARN,
                "the command failed while %d task%s being tuned; to leave out what was on trial "
                "then: attune run --quarantine %s -- ...",
                searching, searching == 1 ? " was" : "s were", run->config.run_dir);
}

/* Something that another run may begin with. */
static bool has_result(const att_tasks_t *tasks)
{
    for (size_t i = 0; i < tasks->count; i++)
        if (strcmp(tasks->rows[i].phase, "settled") == 0)
            return true;
    return false;
}

static void print_summary(const run_t *run, const att_summary_t *summary, FILE *out)
{
    char path[ATT_ONE_LINE];
    att_summary_print(summary, out);
    fprintf(out, "# run folder: %s", att_one_line(run->folder.path, path, sizeof path));
    if (has_result(summary->tasks)) {
        fputs(" (tuner.csv is for stock NCCL; again without a search:\n#   attune run --apply ",
              out);
        att_shell_word(out, run->config.run_dir);
        fputs(" -- ...)", out);
    }
    fputc('\n', out);
}

static void write_summary(const run_t *run, const att_summary_t *summary)
{
    char path[PATH_MAX];
    FILE *file = fopen(att_job_folder_file(&run->folder, "summary.txt", path), "we");
    bool bad = file == NULL;
    if (file != NULL) {
        print_summary(run, summary, file);
        bad = fflush(file) != 0 || ferror(file);
        bad |= fclose(file) != 0;
    }
    if (bad)
        att_log(ATT_LOG_ERROR, "%s: %s", path, strerror(errno));
}

/* What the job and the sidecar left, as summary.json, tuner.csv, summary.txt and the table. */
static void report(run_t *run)
{
    char path[PATH_MAX], when[32];
    att_error_t error = {""};
    att_tasks_t tasks;
    att_findings_t findings;
    att_summary_t summary;
    if (att_tasks_read(att_job_folder_file(&run->folder, "tasks.json", path), &tasks, &error) !=
        ATT_OK) {
        memset(&tasks, 0, sizeof tasks);
        att_log(ATT_LOG_WARN, "no tasks to show: %s", error.text);
    }
    if (att_findings_read(run->folder.path, &findings, &error) != ATT_OK)
        att_log(ATT_LOG_WARN, "%s", error.text);
    att_summary_init(&summary, run->folder.name, run->config.fabric, run->config.surface,
                     run->config.load, run->sidecar.end, &findings, &tasks);
    if (att_summary_write(&summary, att_job_folder_file(&run->folder, "summary.json", path),
                          &error) != ATT_OK)
        att_log(ATT_LOG_ERROR, "%s", error.text);
    if (att_tuner_csv_write(&tasks, run->folder.name,
                            att_job_folder_when(&run->folder, when, sizeof when),
                            att_job_folder_file(&run->folder, "tuner.csv", path), &error) != ATT_OK)
        att_log(ATT_LOG_ERROR, "%s", error.text);
    write_summary(run, &summary);
    if (!run->config.quiet) {
        fputc('\n', stderr);
        print_summary(run, &summary, stderr);
    }
    tell_failures(&tasks);
    suspect(run, &tasks);
    att_tasks_free(&tasks);
}

/* A pattern after --apply that names several folders leaves a word over, which is then the command.
 */
static bool stands_before_separator(char **command)
{
    bool separated = strcmp(command[-1], "--") == 0;
    for (int i = 1; !separated && command[i] != NULL; i++)
        if (strcmp(command[i], "--") == 0)
            return true;
    return false;
}

static int refuse_command(const run_t *run, char **command, const att_error_t *error)
{
    att_log(ATT_LOG_ERROR, "%s%s", error->text,
            stands_before_separator(command)
                ? "; it stands before --, and the option before it takes one word"
                : "");
    return run->job.exit_status >= 0 ? run->job.exit_status : ATT_RUN_FAILED;
}

static int run_job(run_t *run, char **command)
{
    att_error_t error = {""};
    if (!run->untuned &&
        att_job_environment_set(&run->places, &run->config, &run->folder, &error) != ATT_OK)
        return refuse(&error);
    run->manifest.environment = environ;
    write_manifest(run);
    if (att_job_start(&run->job, command, &run->original, &error) != ATT_OK)
        return refuse_command(run, command, &error);
    watch_job(run);
    return run->job.exit_status;
}

static int run_all(run_t *run, char **argv, char **command)
{
    run->manifest = (att_manifest_t){.argv = argv,
                                     .command = command,
                                     .environment = environ,
                                     .config = &run->config,
                                     .sidecar = run->places.sidecar,
                                     .exit_status = -1};
    att_error_t error = {""};
    if (att_job_check(&run->job, command, &error) != ATT_OK)
        return refuse_command(run, command, &error);
    int status = start_sidecar(run);
    if (status == 0) {
        status = run_job(run, command);
        att_sidecar_stop(&run->sidecar, STOP_LIMIT_MS);
        if (!run->untuned && run->job.exit_status >= 0 && run->job.exit_status != 126 &&
            run->job.exit_status != 127)
            report(run);
        att_segment_sweep(run->config.shm_dir);
    }
    if (run->folder.path[0] != '\0') {
        run->manifest.exit_status = status;
        write_manifest(run);
    }
    return status;
}

int att_run_main(int argc, char **argv)
{
    run_t run;
    memset(&run, 0, sizeof run);
    att_error_t error = {""};
    int next = 0, status = ATT_RUN_FAILED;
    if (att_config_init(&run.config, &error) != ATT_OK)
        return refuse(&error);
    if (att_config_parse(&run.config, ATT_FOR_RUN, argc, argv, &next, &error) != ATT_OK) {
        if (error.text[0] != '\0') {
            refuse(&error);
            goto free_config;
        }
        print_help();
        status = 0;
        goto free_config;
    }
    if (next >= argc) {
        att_log(ATT_LOG_ERROR, "no command; use: attune run [options] -- command [argument...]");
        goto free_config;
    }
    att_log_set_level_name(run.config.log);
    att_variables_warn();
    if (att_run_check(&run.config, &run.places, &error) != ATT_OK) {
        refuse(&error);
        goto free_config;
    }
    att_job_signals(&run.signals);
    run.watched = run.signals;
    sigaddset(&run.watched, SIGCHLD);
    sigprocmask(SIG_BLOCK, &run.watched, &run.original);
    status = run_all(&run, argv, argv + next);
free_config:
    att_config_free(&run.config);
    return status;
}
