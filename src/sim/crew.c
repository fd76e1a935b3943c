#include "sim/crew.h"

#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_WORKERS 256
#define POLL_NS      2000000
#define NO_JOB       UINT32_MAX

/* Shared between the processes. */
typedef struct att_crew_board {
    _Atomic uint32_t next, done, failed;
    int status; /* of the job that failed */
    att_error_t error;
    struct {
        _Atomic uint32_t job;
        _Atomic uint64_t since_ns;
    } seats[MOST_WORKERS];
} att_crew_board_t;

static void work(const att_crew_t *crew, att_crew_board_t *board, uint32_t seat, uint32_t jobs,
                 size_t size, char *results)
{
    uint32_t job;
    while (!board->failed && (job = atomic_fetch_add(&board->next, 1)) < jobs) {
        board->seats[seat].since_ns = att_clock_ns();
        board->seats[seat].job = job;
        att_error_t error = {""};
        int rc = crew->work(crew->context, job, results + job * size, &error);
        if (rc != ATT_OK && atomic_fetch_add(&board->failed, 1) == 0) {
            board->status = rc;
            board->error = error;
        }
        board->seats[seat].job = NO_JOB;
        board->done++;
    }
}

static int start(const att_crew_t *crew, att_crew_board_t *board, uint32_t seat, uint32_t jobs,
                 size_t size, char *results, pid_t *pid, att_error_t *error)
{
    pid_t parent = getpid();
    fflush(NULL);
    *pid = fork();
    if (*pid < 0)
        return att_fail_errno(error, "cannot start a process for simulation");
    if (*pid > 0)
        return ATT_OK;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent)
        work(crew, board, seat, jobs, size, results);
    fflush(NULL);
    _exit(0);
}

#define JOB_NAME 320

static const char *name_job(const att_crew_t *crew, uint32_t job, char text[JOB_NAME])
{
    if (job == NO_JOB)
        snprintf(text, JOB_NAME, "a process of %s", crew->what);
    else if (crew->name != NULL)
        crew->name(crew->context, job, text, JOB_NAME);
    else
        snprintf(text, JOB_NAME, "%s (number %u)", crew->what, job);
    return text;
}

/* How a process ended; ATT_OK when well. A library in it may end it with any status, 0 too: what
 * tells is the job that it was at. */
static int ended(const att_crew_t *crew, const att_crew_board_t *board, uint32_t seat, int status,
                 att_error_t *error)
{
    uint32_t job = board->seats[seat].job;
    char name[JOB_NAME];
    if (WIFSIGNALED(status))
        return att_fail(error, ATT_EFAIL, "%s crashed: signal %d, %s", name_job(crew, job, name),
                        WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (job != NO_JOB || WEXITSTATUS(status) != 0)
        return att_fail(error, ATT_EFAIL, "%s ended its process (exit status %d)",
                        name_job(crew, job, name), WEXITSTATUS(status));
    return ATT_OK;
}

static int overdue(const att_crew_t *crew, const att_crew_board_t *board, const pid_t *pids,
                   uint32_t workers, att_error_t *error)
{
    uint64_t now_ns = att_clock_ns();
    char name[JOB_NAME];
    for (uint32_t i = 0; crew->limit_s > 0 && i < workers; i++) {
        uint64_t since_ns = board->seats[i].since_ns;
        uint32_t job = board->seats[i].job;
        if (pids[i] > 0 && job != NO_JOB && now_ns > since_ns &&
            (double)(now_ns - since_ns) * 1e-9 > crew->limit_s)
            return att_fail(error, ATT_EFAIL, "%s takes longer than %g s",
                            name_job(crew, job, name), crew->limit_s);
    }
    return ATT_OK;
}

/* Wait for all; on an error end those that are left. */
static int attend(const att_crew_t *crew, const att_crew_board_t *board, pid_t *pids,
                  uint32_t workers, uint32_t jobs, int rc, att_error_t *error)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < workers; i++)
        left += pids[i] > 0;
    while (left > 0) {
        if (rc == ATT_OK)
            rc = overdue(crew, board, pids, workers, error);
        for (uint32_t i = 0; i < workers; i++) {
            int status;
            if (pids[i] <= 0)
                continue;
            if (rc != ATT_OK)
                kill(pids[i], SIGKILL);
            pid_t got = waitpid(pids[i], &status, rc != ATT_OK ? 0 : WNOHANG);
            if (got == 0 || (got < 0 && errno == EINTR))
                continue;
            if (rc == ATT_OK && got > 0)
                rc = ended(crew, board, i, status, error);
            pids[i] = 0;
            left--;
        }
        if (crew->progress != NULL)
            crew->progress(crew->context, board->done, jobs);
        if (left > 0)
            att_clock_sleep_ns(POLL_NS);
    }
    return rc;
}

int att_crew_run(const att_crew_t *crew, uint32_t jobs, size_t size, void *results,
                 att_error_t *error)
{
    uint32_t workers = crew->workers < jobs ? crew->workers : jobs;
    if (workers > MOST_WORKERS)
        workers = MOST_WORKERS;
    size_t length = sizeof(att_crew_board_t) + jobs * size;
    att_crew_board_t *board =
        mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        return att_fail_errno(error, "no memory for %u results", jobs);
    char *shared = (char *)(board + 1);
    pid_t pids[MOST_WORKERS] = {0};
    int rc = ATT_OK;
    for (uint32_t i = 0; i < workers; i++)
        board->seats[i].job = NO_JOB;
    for (uint32_t i = 0; i < workers && rc == ATT_OK; i++)
        rc = start(crew, board, i, jobs, size, shared, &pids[i], error);
    rc = attend(crew, board, pids, workers, jobs, rc, error);
    if (rc == ATT_OK && board->failed) {
        rc = board->status;
        if (error != NULL)
            *error = board->error;
    }
    if (rc == ATT_OK && board->done != jobs)
        rc = att_fail(error, ATT_EFAIL, "%s: only %u of %u were done", crew->what, board->done,
                      jobs);
    if (rc == ATT_OK && jobs > 0)
        memcpy(results, shared, jobs * size);
    munmap(board, length);
    return rc;
}
