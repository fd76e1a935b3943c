/* attuned: the sidecar. One MPI process a node. */
#include "base/clock.h"
#include "base/config.h"
#include "base/descriptor.h"
#include "base/log.h"
#include "base/segment.h"
#include "control/agent.h"
#include "base/step.h"
#include "base/variables.h"
#include "control/messenger.h"
#include "control/pinger.h"
#include "search/knobs.h"
#include "search/strategy_host.h"

#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define STRATEGY_DEADLINE_S 10.0
/* Longest waits at the end: for the other agents, which may be dead; for training processes that
 * end with us. */
#define GOODBYE_S 3
#define LINGER_S  2

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    stop = number;
}

/* The starter waits on this descriptor: one byte and a close mean ready, text means failure. */
static void tell_starter(int fd, const char *text)
{
    if (fd < 0)
        return;
    const char *bytes = text != NULL ? text : "+";
    if (write(fd, bytes, strlen(bytes)) < 0 && errno != EPIPE)
        att_log(ATT_LOG_WARN, "cannot tell the starter: %s", strerror(errno));
    close(fd);
}

static int fail(int ready_fd, int status, const att_error_t *error)
{
    char line[sizeof error->text + 1];
    att_log(ATT_LOG_ERROR, "%s", error->text);
    /* A mark tells the user's mistakes, files that options name among them, from what the machine
     * lacks. */
    bool users = status == -ATT_EUSAGE || status == -ATT_EINPUT;
    snprintf(line, sizeof line, "%s%s", users ? "!" : "", error->text);
    tell_starter(ready_fd, line);
    return -status;
}

/* --ready-fd is between attune and attuned, so it is not in the options table. */
static int take_ready_fd(int *argc, char **argv)
{
    for (int i = 1; i + 1 < *argc; i++)
        if (strcmp(argv[i], "--ready-fd") == 0) {
            int fd = atoi(argv[i + 1]);
            memmove(&argv[i], &argv[i + 2], (size_t)(*argc - i - 1) * sizeof *argv);
            *argc -= 2;
            return fd;
        }
    return -1;
}

/* Who closes the segment last removes it, but training processes may be killed and close nothing:
 * stay for a moment after the end to remove what they leave. Slurm ends a cancelled step's
 * processes all at once, us included: then the name goes now, and the memory with its last user. */
static void clean_up(const att_config_t *config, pid_t starter)
{
    char path[PATH_MAX];
    att_segment_name_t name = {config->shm_dir, config->run_id, config->node};
    if (att_segment_path(&name, path, sizeof path, NULL) != ATT_OK)
        return;
    const char *step = getenv("SLURM_STEP_ID");
    bool cancelled = stop == SIGTERM && starter == 0 && step != NULL && step[0] != '\0';
    if (cancelled)
        unlink(path);
    uint64_t until_ns = att_clock_ns() + LINGER_S * 1000000000ull;
    while (access(path, F_OK) == 0 && att_clock_ns() < until_ns) {
        if (att_segment_sweep(config->shm_dir) == 0)
            att_clock_sleep_ns(20000000);
    }
}

/* The segment is closed and the report written: nothing is lost by leaving. */
static void on_alarm(int number)
{
    static const char text[] = "attuned: warning: another agent does not answer at the end: it is "
                               "dead or was stopped alone\n";
    ssize_t written = write(2, text, sizeof text - 1);
    _exit(written < 0 ? ATT_ESYSTEM : ATT_ETIMEOUT);
}

static void serve(struct att_agent *agent, pid_t starter)
{
    while (!stop) {
        uint64_t sleep_ns = att_agent_round(agent);
        if (sleep_ns > 0)
            att_clock_sleep_ns(sleep_ns);
        else
            sched_yield(); /* an agent that spins shares its core with what it waits for */
        if (starter > 1 && getppid() != starter)
            stop = SIGHUP; /* the starter is gone: so is the job that it ran */
    }
}

#if defined(OPEN_MPI)
#define STRING_OF(number) #number
#define DOTTED(a, b, c)   STRING_OF(a) "." STRING_OF(b) "." STRING_OF(c)
#define BUILT_WITH        "Open MPI " DOTTED(OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION)
#elif defined(MPICH_VERSION)
#define BUILT_WITH "MPICH " MPICH_VERSION
#else
#define BUILT_WITH "unknown MPI"
#endif

int main(int argc, char **argv)
{
    att_log_set_name("attuned");
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("attuned %s (%s)\n", ATTUNE_VERSION, BUILT_WITH);
        return att_descriptor_finish_output(0);
    }
    int ready_fd = take_ready_fd(&argc, argv);
    pid_t starter = ready_fd >= 0 ? getppid() : 0;
    att_config_t config = {0};
    att_error_t error = {""};
    int next = 1;
    int status = att_config_init(&config, &error);
    if (status == ATT_OK)
        status = att_config_parse(&config, ATT_FOR_AGENT, argc, argv, &next, &error);
    if (status == -ATT_EUSAGE && error.text[0] == '\0') {
        printf("usage: attuned [options]\n\n"
               "The sidecar of attune: started by `attune run`, or one process a node by mpirun or "
               "srun.\n\n");
        att_config_print_help(stdout, ATT_FOR_AGENT);
        return att_descriptor_finish_output(0);
    }
    att_descriptor_hold_standard(0); /* before anything is opened */
    if (status == ATT_OK && next < argc)
        status = att_fail(&error, ATT_EUSAGE, "unexpected argument '%s': see attuned --help",
                          argv[next]);
    if (status == ATT_OK)
        att_log_set_level_name(config.log);
    if (status == ATT_OK)
        status = att_step_init(config.debug_steps, &error);
    struct att_strategy_host *host = NULL;
    /* Before MPI, threads and the segment: the strategies' process must share none of them. */
    if (status == ATT_OK)
        status = att_strategy_host_create(config.plugin_path, ATT_HOST_CHILD, STRATEGY_DEADLINE_S,
                                          &host, &error);
    if (status == ATT_OK && !config.observe)
        status = att_strategy_host_check(host, config.strategy, &error);
    if (status == ATT_OK && !config.observe && att_knobs_get(&error) == NULL)
        status = -ATT_ENOENT;
    if (status != ATT_OK)
        return fail(ready_fd, status, &error);

    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL); /* a job may end while its sidecar still begins */
    /* Open MPI starts a daemon beside a process that no launcher started. We spawn nothing, and the
     * daemon wants a network interface that is up, descriptors and memory. */
    setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    /* MPI installs handlers of its own: ours come after. */
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    sigaction(SIGUSR1, &action, NULL); /* srun and mpirun pass it on, and do not die of it */
    signal(SIGPIPE, SIG_IGN);

    struct att_messenger *messenger = NULL;
    struct att_pinger *pinger = NULL;
    struct att_agent *agent = NULL;
    status = att_messenger_create(&messenger, &error);
    if (status == ATT_OK && starter == 0 && att_messenger_self(messenger) == 0)
        att_variables_warn(); /* attune run has looked itself; of many agents one is enough */
    if (status == ATT_OK)
        status = att_pinger_create(&pinger, &error);
    if (status == ATT_OK)
        status = att_agent_create(&config, host, messenger, pinger, &agent, &error);
    if (status != ATT_OK) {
        int code = fail(ready_fd, status, &error);
        if (att_messenger_count(messenger) > 1)
            MPI_Abort(MPI_COMM_WORLD, code);
        att_pinger_destroy(pinger);
        att_messenger_destroy(messenger);
        MPI_Finalize();
        att_strategy_host_destroy(host);
        return code;
    }
    tell_starter(ready_fd, NULL);
    serve(agent, starter);
    att_agent_finish(agent);
    att_agent_destroy(agent);
    signal(SIGALRM, on_alarm);
    alarm(GOODBYE_S);
    att_pinger_destroy(pinger);
    att_messenger_destroy(messenger);
    att_strategy_host_destroy(host);
    att_step_close();
    MPI_Finalize();
    alarm(0);
    att_log_finish();
    clean_up(&config, starter);
    att_config_free(&config);
    return 0;
}
