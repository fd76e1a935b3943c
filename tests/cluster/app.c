/*
 * app: a training job of many processes for the cluster tests, on the host fabric. Every rank joins
 * a communicator of all ranks and one of its node's, and calls AllReduce on both in turn.
 *
 *   app [--seconds S] [--bytes N] [--end HOW[:N][@RANK]] [--file FOLDER] [--pause MS] [--term]
 * [--all]
 *
 * --all: the communicator of all ranks alone. --beside: begin when the node's sidecar is there,
 * within 30 s; on a busy machine a short job would be over before. Ranks come from MPI (mpirun,
 * srun --mpi=pmix), or with --file from RANK, WORLD_SIZE (torchrun) or SLURM_PROCID, SLURM_NTASKS;
 * the unique id then goes through a file in FOLDER.
 * --end: what happens half way through, on one rank or (no @RANK) on all: ok, abort:N (MPI), segv,
 * kill, hang, exit:N@RANK; exit:N without a rank is an orderly end with status N. --term: SIGTERM
 * is ignored, as by a job that saves its state first. Last line of each rank: "rank R of N on HOST:
 * C calls".
 */
#include "base/segment.h"
#include "fabric/nccl_abi.h"

#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct options {
    double seconds;
    size_t bytes;
    char end[16];
    int end_number, end_rank;
    const char *folder;
    long pause_ms;
    bool all_only, beside;
} options_t;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void nap(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&t, NULL);
}

static void die(const char *text)
{
    fprintf(stderr, "app: %s\n", text);
    exit(2);
}

static void read_end(const char *text, options_t *o)
{
    size_t n = strcspn(text, ":@");
    if (n == 0 || n >= sizeof o->end)
        die("--end HOW[:N][@RANK]");
    memcpy(o->end, text, n);
    if (text[n] == ':')
        o->end_number = atoi(text + n + 1);
    const char *rank = strchr(text, '@');
    o->end_rank = rank != NULL ? atoi(rank + 1) : -1;
}

static options_t read_options(int argc, char **argv)
{
    options_t o = {.seconds = 1, .bytes = 65536, .end = "ok", .end_rank = -1};
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--term")) {
            signal(SIGTERM, SIG_IGN);
            continue;
        }
        if (!strcmp(argv[i], "--beside")) {
            o.beside = true;
            continue;
        }
        if (!strcmp(argv[i], "--all")) {
            o.all_only = true;
            continue;
        }
        if (i + 1 == argc)
            die("an option lacks its value");
        const char *value = argv[i + 1];
        if (!strcmp(argv[i], "--seconds"))
            o.seconds = atof(value);
        else if (!strcmp(argv[i], "--bytes"))
            o.bytes = (size_t)atol(value);
        else if (!strcmp(argv[i], "--end"))
            read_end(value, &o);
        else if (!strcmp(argv[i], "--file"))
            o.folder = value;
        else if (!strcmp(argv[i], "--pause"))
            o.pause_ms = atol(value);
        else
            die(argv[i]);
        i++;
    }
    return o;
}

static int number_of(const char *first, const char *second)
{
    const char *text = getenv(first);
    if (text == NULL)
        text = getenv(second);
    if (text == NULL)
        die("--file: neither torchrun nor srun has set the rank");
    return atoi(text);
}

/* Through a file that appears complete. */
static void share_by_file(const char *folder, int rank, ncclUniqueId *id)
{
    char path[512], temporary[520];
    const char *job = getenv("TORCHELASTIC_RUN_ID"), *step = getenv("SLURM_STEP_ID");
    snprintf(path, sizeof path, "%s/id-%s-%s", folder, job != NULL ? job : "", step ? step : "");
    snprintf(temporary, sizeof temporary, "%s.new", path);
    FILE *file = NULL;
    if (rank == 0) {
        file = fopen(temporary, "w");
        if (file == NULL || ncclGetUniqueId(id) != ncclSuccess ||
            fwrite(id, sizeof *id, 1, file) != 1 || fclose(file) != 0 || rename(temporary, path))
            die("cannot write the unique id");
        return;
    }
    for (double until = now() + 60; file == NULL; nap(10)) {
        file = fopen(path, "r");
        if (file == NULL && now() > until)
            die("rank 0 has written no unique id");
    }
    if (fread(id, sizeof *id, 1, file) != 1)
        die("the unique id is cut");
    fclose(file);
}

static int host_color(char *host, int size)
{
    gethostname(host, (size_t)size);
    unsigned hash = 5381;
    for (const char *c = host; *c; c++)
        hash = hash * 33 + (unsigned char)*c;
    return (int)(hash & 0xffffff);
}

static void end_early(const options_t *o, int rank)
{
    if (o->end_rank >= 0 && o->end_rank != rank)
        return;
    if (!strcmp(o->end, "exit") && o->end_rank >= 0)
        _exit(o->end_number);
    if (!strcmp(o->end, "abort"))
        MPI_Abort(MPI_COMM_WORLD, o->end_number);
    if (!strcmp(o->end, "segv"))
        raise(SIGSEGV);
    if (!strcmp(o->end, "kill"))
        raise(SIGKILL);
    while (!strcmp(o->end, "hang"))
        nap(1000);
}

/* Rank 0's first element says that the time is over, so that all stop at the same call. */
static long work(const options_t *o, int rank, int ranks, ncclComm_t all, ncclComm_t node)
{
    size_t count = o->bytes / sizeof(int32_t);
    int32_t *mine = calloc(count, sizeof *mine), *sum = calloc(count, sizeof *sum);
    long calls = 0;
    bool ended = false;
    double start = now();
    for (sum[0] = 0; mine != NULL && sum != NULL && sum[0] == 0; calls++) {
        double passed = now() - start;
        if (!ended && passed > o->seconds / 2) {
            ended = true;
            end_early(o, rank);
        }
        for (size_t i = 1; i < count; i += 997)
            mine[i] = rank + (int32_t)i;
        mine[0] = 0;
        if (node != NULL &&
            ncclAllReduce(mine, sum, count, ncclInt32, ncclSum, node, NULL) != ncclSuccess)
            return -1;
        mine[0] = rank == 0 && passed > o->seconds;
        if (ncclAllReduce(mine, sum, count, ncclInt32, ncclSum, all, NULL) != ncclSuccess)
            return -1;
        for (size_t i = 1; i < count; i += 997)
            if (sum[i] != ranks * (ranks - 1) / 2 + ranks * (int32_t)i)
                return -2;
        if (o->pause_ms > 0)
            nap(o->pause_ms);
    }
    free(mine);
    free(sum);
    return calls;
}

/* The agent holds byte 0 of the segment. Before the hook is loaded: its locks would be lost. */
static void await_sidecar(void)
{
    char path[512];
    if (att_segment_path(&(att_segment_name_t){0}, path, sizeof path, NULL) != 0)
        die("--beside: no run id");
    for (double until = now() + 30; now() < until; nap(20)) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
        int fd = open(path, O_RDWR | O_CLOEXEC);
        bool held = fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
        if (fd >= 0)
            close(fd);
        if (held)
            return;
    }
}

int main(int argc, char **argv)
{
    options_t o = read_options(argc, argv);
    if (o.beside)
        await_sidecar();
    int rank, ranks;
    ncclUniqueId id;
    if (o.folder != NULL) {
        rank = number_of("RANK", "SLURM_PROCID");
        ranks = number_of("WORLD_SIZE", "SLURM_NTASKS");
        share_by_file(o.folder, rank, &id);
    } else {
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
        if (rank == 0 && ncclGetUniqueId(&id) != ncclSuccess)
            die("no unique id");
        MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
    ncclComm_t all, node = NULL;
    char host[64];
    int color = host_color(host, sizeof host);
    if (ncclCommInitRank(&all, ranks, id, rank) != ncclSuccess ||
        (!o.all_only && ncclCommSplit(all, color, rank, &node, NULL) != ncclSuccess))
        die("no communicator");
    long calls = work(&o, rank, ranks, all, node);
    if (calls < 0) {
        fprintf(stderr, "app: rank %d: %s\n", rank,
                calls == -2 ? "wrong sums" : ncclGetLastError(all));
        _exit(5);
    }
    if (node != NULL)
        ncclCommDestroy(node);
    ncclCommDestroy(all);
    printf("rank %d of %d on %s: %ld calls\n", rank, ranks, host, calls);
    fflush(stdout);
    if (o.folder == NULL)
        MPI_Finalize();
    return !strcmp(o.end, "exit") ? o.end_number : 0;
}
