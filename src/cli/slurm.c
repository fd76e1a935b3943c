#include "cli/slurm.h"

#include "base/log.h"
#include "base/nearest.h"
#include "cli/places.h"
#include "cli/shell_word.h"
#include "cli/slurm_site.h"

#include <stdio.h>
#include <string.h>

typedef struct lines {
    att_places_t places;
    att_slurm_site_t site;
} lines_t;

/* --- shell text ------------------------------------------------------------------------------- */

static void put_word(const char *word)
{
    att_shell_word(stdout, word);
}

static void put_export(const char *name, const char *value)
{
    printf("export %s=", name);
    put_word(value);
    putchar('\n');
}

/* The loader's list has no quotes. */
static bool preloads(const lines_t *lines)
{
    return strpbrk(lines->places.hook, " :") == NULL;
}

/* What the application's processes need, whatever starts them. */
static void put_environment(const lines_t *lines)
{
    put_export("NCCL_TUNER_PLUGIN", lines->places.hook);
    put_export("NCCL_PROFILER_PLUGIN", lines->places.hook);
    put_export("NCCL_RUNTIME_CONNECT", "0");
    if (preloads(lines)) {
        printf("export LD_PRELOAD=");
        put_word(lines->places.hook);
        printf("${LD_PRELOAD:+:$LD_PRELOAD}\n");
    }
}

static bool by_srun(const lines_t *lines)
{
    return lines->site.mpi == ATT_SLURM_MPI_MPICH ? lines->site.pmi2 : lines->site.pmix;
}

static void put_fence(const lines_t *lines)
{
    if (!by_srun(lines) || lines->site.mpi == ATT_SLURM_MPI_MPICH)
        return;
    if (lines->site.ring)
        printf("# mpi.conf has PMIxCollFence=ring already; harmless where it is set again\n");
    put_export("SLURM_PMIX_FENCE", "ring");
}

/* The words in front of attuned. Variables of the job's GPU, memory and processor requests would
 * become requests of the step; without a binding the kernel keeps the agent off busy processors. */
static void put_sidecar(const lines_t *lines)
{
    const att_slurm_site_t *site = &lines->site;
    if (!by_srun(lines)) {
        printf("env SLURM_STEP_GRES=none%s mpirun --map-by ppr:1:node --bind-to none",
               att_slurm_has_overlap(site) ? " SLURM_OVERLAP=1" : "");
        return;
    }
    static const char *const requests[] = {
        "GPUS",        "GPUS_PER_NODE", "GPUS_PER_TASK", "GPU_BIND",      "NTASKS_PER_GPU",
        "MEM_PER_CPU", "MEM_PER_GPU",   "TRES_PER_TASK", "CPUS_PER_TASK", "THREADS_PER_CORE"};
    printf("env -u SRUN_CPUS_PER_TASK");
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++)
        printf(" -u SLURM_%s", requests[i]);
    printf(" \\\n    srun -J attuned%s -K -N \"$SLURM_JOB_NUM_NODES\" -n \"$SLURM_JOB_NUM_NODES\""
           " --ntasks-per-node=1 \\\n    --gres=none --mem=0%s --mpi=%s",
           att_slurm_has_overlap(site) ? " --overlap" : "",
           site->no_binding ? "" : " --cpu-bind=none",
           site->mpi == ATT_SLURM_MPI_MPICH ? "pmi2" : "pmix");
}

static void put_step(const lines_t *lines)
{
    printf("srun -J application%s -K",
           att_slurm_overlap_is_mutual(&lines->site) ? " --overlap" : "");
}

static void put_attuned(const lines_t *lines)
{
    put_sidecar(lines);
    putchar(' ');
    put_word(lines->places.sidecar);
    printf(" --run-dir \"attune-$SLURM_JOB_ID\"");
}

static void put_stop(void)
{
    printf("kill -USR1 $sidecar # srun passes it on; TERM would make srun kill the agents\n"
           "wait $sidecar\n");
}

/* --- patterns --------------------------------------------------------------------------------- */

static void companion_with(const lines_t *lines, const char *command, const char *more)
{
    put_environment(lines);
    put_fence(lines);
    put_attuned(lines);
    printf(" & sidecar=$!\n");
    put_step(lines);
    printf(" %s\nstatus=$?\n", command);
    fputs(more, stdout);
    put_stop();
    printf("exit $status\n");
}

static void companion(const lines_t *lines)
{
    companion_with(lines, "./train", "");
}

static void torchrun(const lines_t *lines)
{
    printf("head=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n");
    companion_with(lines,
                   "--ntasks-per-node=1 torchrun --nnodes=\"$SLURM_JOB_NUM_NODES\" "
                   "--nproc-per-node=8 \\\n    --rdzv-id=\"$SLURM_JOB_ID\" --rdzv-backend=c10d "
                   "--rdzv-endpoint=\"$head:29500\" train.py",
                   "");
}

static void steps(const lines_t *lines)
{
    companion_with(lines, "./prepare",
                   "[ $status -ne 0 ] || { srun -J application -K ./train; status=$?; }\n");
}

static void late(const lines_t *lines)
{
    printf("# in the job script: the hook must be there from the start\n");
    put_environment(lines);
    put_step(lines);
    printf(" ./train\n"
           "# later, from anywhere: the sidecar joins job JOB on its N nodes, and ends with it\n");
    put_fence(lines);
    printf("export SLURM_JOB_NUM_NODES=N\n");
    if (!by_srun(lines)) {
        printf("# attuned cannot be started by srun here (no fitting --mpi): start it in the job "
               "script\n");
        return;
    }
    put_sidecar(lines);
    printf(" --jobid=JOB ");
    put_word(lines->places.sidecar);
    printf(" --run-dir \"$PWD/attune-JOB\" &\n"
           "# to stop it earlier\nkill -USR1 $!\n");
}

static void earlier(const lines_t *lines)
{
    printf("export ATTUNE_RUN_ID=run$$ # one name for both jobs\n");
    put_environment(lines);
    put_fence(lines);
    printf("first=$(sbatch --parsable -J attuned -N 2 --ntasks-per-node=1 --oversubscribe <<'END'\n"
           "#!/bin/sh\nexec ");
    put_attuned(lines);
    printf("\nEND\n)\n"
           "until [ \"$(squeue -h -j $first -o %%T)\" = RUNNING ]; do sleep 5; done\n"
           "sbatch --wait -J application -w \"$(squeue -h -j $first -o %%N)\" --oversubscribe "
           "train.sbatch; status=$?\n"
           "scancel -s USR1 $first # the agents end well; the job is COMPLETED\n"
           "exit $status\n");
}

static void put_mpirun_environment(const lines_t *lines)
{
    put_environment(lines);
    printf("export ATTUNE_RUN_ID=run$$ # without Slurm the run needs a name\n");
}

static void over_mpirun(const lines_t *lines)
{
    put_mpirun_environment(lines);
    if (lines->site.mpi == ATT_SLURM_MPI_MPICH) {
        printf("mpiexec -f hosts -ppn 1 -n $(wc -l <hosts) ");
        put_word(lines->places.sidecar);
        printf(" --run-dir \"attune-$ATTUNE_RUN_ID\" & sidecar=$!\n"
               "mpiexec -f hosts ./train; status=$?\n");
    } else {
        printf("mpirun --hostfile hosts --map-by ppr:1:node --bind-to none -x ATTUNE_RUN_ID ");
        put_word(lines->places.sidecar);
        printf(" --run-dir \"attune-$ATTUNE_RUN_ID\" & sidecar=$!\n"
               "mpirun --hostfile hosts -x ATTUNE_RUN_ID -x NCCL_TUNER_PLUGIN -x "
               "NCCL_PROFILER_PLUGIN \\\n    -x NCCL_RUNTIME_CONNECT%s ./train; status=$?\n",
               preloads(lines) ? " -x LD_PRELOAD" : "");
    }
    printf("kill -USR1 $sidecar # mpirun passes it on\nwait $sidecar\nexit $status\n");
}

static void one_node(const lines_t *lines)
{
    put_word(lines->places.program);
    printf(" run -- ./train\n");
    put_word(lines->places.program);
    printf(" run -- torchrun --nproc-per-node=8 train.py\n");
}

static const struct {
    const char *name;
    bool needs_slurm;
    void (*print)(const lines_t *lines);
    const char *help, *script;
} patterns[] = {
    {"companion", true, companion, "sidecar and application as two steps of one allocation",
     "companion.sbatch, companion.salloc"},
    {"torchrun", true, torchrun, "the same with one torchrun a node", "torchrun.sbatch"},
    {"steps", true, steps, "several application steps in one allocation", "steps.sbatch"},
    {"late", true, late, "a sidecar that joins a running job", "late.sbatch"},
    {"earlier", true, earlier,
     "a sidecar in a job of its own, before the application's, on its nodes", "earlier.sh"},
    {"mpirun", false, over_mpirun, "several nodes without Slurm", "mpirun.sh"},
    {"one-node", false, one_node, "one node, with or without Slurm", "one-node.sh"},
};
#define PATTERNS (sizeof patterns / sizeof patterns[0])

static void put_head(const lines_t *lines)
{
    const att_slurm_site_t *site = &lines->site;
    printf("# Slurm %s; attuned is built with %s and started by %s\n", site->version,
           site->mpi_text[0] != '\0' ? site->mpi_text : "an unknown MPI",
           !by_srun(lines)                    ? "mpirun: srun has no fitting --mpi"
           : site->mpi == ATT_SLURM_MPI_MPICH ? "srun --mpi=pmi2"
                                              : "srun --mpi=pmix");
    if (site->has_config && site->kill_wait_s > 0)
        printf("# a cancelled job has %d s to end (KillWait)", site->kill_wait_s);
    if (site->has_config && site->kill_wait_s > 0 && site->node_timeout_s > 0)
        printf("; a dead node is noticed after %d s (SlurmdTimeout)", site->node_timeout_s);
    if (site->has_config && site->kill_wait_s > 0)
        putchar('\n');
    if (site->kill_wait_s > 0 && site->kill_wait_s < 4)
        printf(
            "# warning: KillWait is short: the agents may be killed before they have cleaned up\n");
}

/* What jobs/companion.sh evaluates. */
static void put_shell(const lines_t *lines, bool slurm)
{
    put_environment(lines);
    printf("attune_attuned=");
    put_word(lines->places.sidecar);
    putchar('\n');
    if (!slurm)
        return;
    put_fence(lines);
    printf("attune_sidecar=(");
    put_sidecar(lines);
    printf(")\nattune_step=(");
    put_step(lines);
    printf(")\nattune_overlap=%s\n", att_slurm_has_overlap(&lines->site) ? "--overlap" : "");
}

static void print_help(void)
{
    printf("Usage: attune slurm [--for VERSION] [PATTERN]\n"
           "       attune slurm --jobs | --shell [PATTERN]\n\n"
           "Print the command lines that start a job with attune on the Slurm found here.\n\n"
           "Patterns (all of them when none is given):\n");
    for (size_t i = 0; i < PATTERNS; i++)
        printf("  %-10s %s (%s)\n", patterns[i].name, patterns[i].help, patterns[i].script);
    printf(
        "\n"
        "  --for VERSION  for a Slurm of this version, for example 20.02, instead of the one here\n"
        "  --jobs         the folder with the ready scripts\n"
        "  --shell        the parts of the lines as bash variables, for scripts:\n"
        "                 eval \"$(attune slurm --shell)\"; with mpirun or one-node: without "
        "Slurm\n\n"
        "Exit status: 0; 2 wrong usage; 6 no Slurm or a part of attune is not there; 4 srun\n"
        "does not work.\n");
}

typedef struct wish {
    const char *version, *pattern;
    bool jobs, shell, help;
} wish_t;

static int read_arguments(int argc, char **argv, wish_t *wish, att_error_t *error)
{
    static const char *const words[] = {"--for", "--jobs", "--shell", "--help", NULL};
    att_nearest_t nearest;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
            wish->help = true;
        else if (strcmp(word, "--jobs") == 0)
            wish->jobs = true;
        else if (strcmp(word, "--shell") == 0)
            wish->shell = true;
        else if (strcmp(word, "--for") == 0 && i + 1 < argc)
            wish->version = argv[++i];
        else if (strncmp(word, "--for=", 6) == 0)
            wish->version = word + 6;
        else if (strcmp(word, "--for") == 0)
            return att_fail(error, ATT_EUSAGE, "--for needs a value: a version such as 22.05");
        else if (word[0] == '-')
            return att_fail(error, ATT_EUSAGE, "no option %.60s%s; attune slurm --help lists them",
                            word, att_nearest_of(&nearest, word, words));
        else if (wish->pattern != NULL)
            return att_fail(error, ATT_EUSAGE, "one pattern at a time: '%.60s' is a second one",
                            word);
        else
            wish->pattern = word;
    }
    return ATT_OK;
}

static int need(const char *path, const char *what, const char *searched, att_error_t *error)
{
    return path[0] != '\0'
               ? ATT_OK
               : att_fail(error, ATT_ENOENT, "%s is not there: looked for %.400s", what, searched);
}

static int print_lines(lines_t *lines, const wish_t *wish, att_error_t *error)
{
    size_t chosen = PATTERNS;
    for (size_t i = 0; i < PATTERNS && wish->pattern != NULL; i++)
        if (strcmp(patterns[i].name, wish->pattern) == 0)
            chosen = i;
    if (wish->pattern != NULL && chosen == PATTERNS) {
        att_nearest_t nearest;
        att_nearest_init(&nearest, wish->pattern);
        for (size_t i = 0; i < PATTERNS; i++)
            att_nearest_offer(&nearest, patterns[i].name);
        return att_fail(error, ATT_EUSAGE, "no pattern '%.60s'%s; attune slurm --help lists them",
                        wish->pattern, att_nearest_hint(&nearest));
    }
    int rc = need(lines->places.sidecar, "attuned", lines->places.sidecar_searched, error);
    if (rc == ATT_OK)
        rc = need(lines->places.hook, "attune's NCCL plugin", lines->places.hook_searched, error);
    bool slurm = chosen == PATTERNS || patterns[chosen].needs_slurm;
    if (rc == ATT_OK && wish->version != NULL)
        rc = att_slurm_site_assume(wish->version, lines->places.sidecar, &lines->site, error);
    else if (rc == ATT_OK && slurm)
        rc = att_slurm_site_find(lines->places.sidecar, &lines->site, error);
    else if (rc == ATT_OK)
        att_slurm_site_ask(lines->places.sidecar, &lines->site);
    if (rc != ATT_OK)
        return rc;
    if (wish->shell) {
        put_shell(lines, slurm);
        return ATT_OK;
    }
    if (slurm)
        put_head(lines);
    if (lines->places.jobs[0] != '\0')
        printf("# ready scripts: %s\n", lines->places.jobs);
    for (size_t i = 0; i < PATTERNS; i++) {
        if (chosen != PATTERNS && chosen != i)
            continue;
        printf("\n# %s: %s (%s)\n", patterns[i].name, patterns[i].help, patterns[i].script);
        patterns[i].print(lines);
    }
    return ATT_OK;
}

int att_slurm_main(int argc, char **argv)
{
    static lines_t lines;
    wish_t wish = {0};
    att_error_t error = {""};
    int rc = read_arguments(argc, argv, &wish, &error);
    if (rc == ATT_OK && wish.help) {
        print_help();
        return 0;
    }
    if (rc == ATT_OK)
        rc = att_places_find(&lines.places, &error);
    if (rc == ATT_OK && wish.jobs) {
        rc = need(lines.places.jobs, "the folder of job scripts", lines.places.jobs_searched,
                  &error);
        if (rc == ATT_OK)
            puts(lines.places.jobs);
    } else if (rc == ATT_OK) {
        rc = print_lines(&lines, &wish, &error);
    }
    if (rc != ATT_OK)
        att_log(ATT_LOG_ERROR, "%s", error.text);
    return -rc;
}
