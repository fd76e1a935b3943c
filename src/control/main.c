/* attuned: the sidecar. One MPI process a node. */
#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "control/agent.h"
#include "base/step.h"
#include "control/messenger.h"
#include "control/pinger.h"
#include "search/strategy_host.h"

#include <errno.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define STRATEGY_DEADLINE_S 10.0

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
    att_log(ATT_LOG_ERROR, "%s", error->text);
    tell_starter(ready_fd, error->text);
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

int main(int argc, char **argv)
{
    att_log_set_name("attuned");
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
        return 0;
    }
    if (status == ATT_OK && next < argc)
        status = att_fail(&error, ATT_EUSAGE, "unexpected argument '%s': see attuned --help",
                          argv[next]);
    if (status == ATT_OK)
        status = att_step_init(config.debug_steps, &error);
    struct att_strategy_host *host = NULL;
    /* Before MPI, threads and the segment: the strategies' process must share none of them. */
    if (status == ATT_OK)
        status = att_strategy_host_create(config.plugin_path, ATT_HOST_CHILD, STRATEGY_DEADLINE_S,
                                          &host, &error);
    if (status == ATT_OK && !config.observe)
        status = att_strategy_host_check(host, config.strategy, &error);
    if (status != ATT_OK)
        return fail(ready_fd, status, &error);

    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    /* MPI installs handlers of its own: ours come after. */
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);

    struct att_messenger *messenger = NULL;
    struct att_pinger *pinger = NULL;
    struct att_agent *agent = NULL;
    status = att_messenger_create(&messenger, &error);
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
    att_pinger_destroy(pinger);
    att_messenger_destroy(messenger);
    att_strategy_host_destroy(host);
    att_step_close();
    att_config_free(&config);
    MPI_Finalize();
    return 0;
}
