/* attune: one command; the first word says which part of it. */
#include "base/descriptor.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/status.h"
#include "cli/doctor.h"
#include "cli/info.h"
#include "cli/knobs.h"
#include "cli/pin.h"
#include "cli/plugins.h"
#include "cli/report.h"
#include "cli/run.h"
#include "cli/sim.h"
#include "cli/slurm.h"
#include "cli/surfaces.h"
#include "cli/stragglers.h"
#include "cli/top.h"
#include "cli/trace.h"
#ifdef ATTUNE_BENCH
#include "cli/bench.h"
#include "cli/bench_record.h"
#endif

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static int show_version(int argc, char **argv);
static int show_help(int argc, char **argv);

static const struct {
    const char *name;
    int (*main)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"run", att_run_main, "run a command and tune its NCCL collectives while it runs"},
#ifdef ATTUNE_BENCH
    {"bench", att_bench_main, "run collectives of given sizes and check their results"},
    {"record", att_record_main, "record a surface: a grid of settings, measured"},
#endif
    {"sim", att_sim_main, "compare search strategies on recorded and modelled surfaces"},
    {"top", att_top_main, "watch a run: bandwidths, trials, coverage, who is late"},
    {"pin", att_pin_main, "hold tasks of a running job where they are"},
    {"unpin", att_unpin_main, "let them go on"},
    {"trace", att_trace_main, "write the recorded calls of a run for Perfetto and other tools"},
    {"stragglers", att_stragglers_main,
     "say which ranks arrive late, since when, and what it costs"},
    {"report", att_report_main, "make one page of a run, or compare two results"},
    {"surfaces", att_surfaces_main, "list surfaces: what they answer, their optimum, their shape"},
    {"plugins", att_plugins_main, "list search strategies, and refused ones with the reason"},
    {"knobs", att_knobs_main, "print what NCCL takes for each knob, and check a combination"},
    {"doctor", att_doctor_main, "say why attune is active or not, and check the machine"},
    {"slurm", att_slurm_main, "print the command lines that start a job under Slurm"},
    {"info", att_info_main, "show version, paths and every option"},
    {"version", show_version, "show the version"},
    {"help", show_help, "show this, or the help of a command"},
};
#define COMMANDS (sizeof commands / sizeof commands[0])

static int show_version(int argc, char **argv)
{
    printf("attune %s\n", ATTUNE_VERSION);
    return 0;
}

static void print_help(FILE *out)
{
    fprintf(out, "Usage: attune COMMAND [options]\n\n"
                 "attune tunes the collectives of an unmodified NCCL while the job runs.\n\n");
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
    fprintf(out, "\n'attune COMMAND --help' and attune-COMMAND(1) tell more.\n");
}

static int dispatch(const char *word, int argc, char **argv)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(word, commands[i].name) == 0)
            return commands[i].main(argc, argv);
    att_nearest_t nearest;
    att_nearest_init(&nearest, word);
    for (size_t i = 0; i < COMMANDS; i++)
        att_nearest_offer(&nearest, commands[i].name);
    att_nearest_offer(&nearest, "--version");
    att_nearest_offer(&nearest, "--help");
    att_log(ATT_LOG_ERROR, "no command '%.60s'%s; 'attune help' lists them", word,
            att_nearest_hint(&nearest));
    return ATT_EUSAGE;
}

static int show_help(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "help") != 0 && strcmp(argv[1], "version") != 0) {
        char help[] = "--help";
        char *words[] = {argv[1], help, NULL};
        return dispatch(argv[1], 2, words);
    }
    print_help(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    att_descriptor_hold_standard(O_CLOEXEC);
    if (argc < 2) {
        print_help(stderr);
        return ATT_EUSAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
        word = "version";
    else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        word = "help";
    return att_descriptor_finish_output(dispatch(word, argc - 1, argv + 1));
}
