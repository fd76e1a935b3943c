#include "cli/bench_job.h"

#include "base/names.h"
#include "base/one_line.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Versions: reference/nccl.md section 5, NCCL release notes of 2.30.3. */
#define SHARED_GPU_VERSION ATT_NCCL_VERSION(2, 30, 3)
/* Multiprocessors kept free when several ranks share a GPU and its channels are limited here. */
#define RESERVED_UNITS 4
#define MOST_CHANNELS  32

int att_bench_job_device_of(const att_bench_job_t *job, int rank)
{
    return job->device_count > 0 ? rank % job->device_count : 0;
}

static int ranks_a_device(const att_bench_job_t *job)
{
    return job->device_count > 0 ? (job->ranks + job->device_count - 1) / job->device_count : 1;
}

/* Set a variable that NCCL needs here unless the user has set it; `noted` gathers "NAME=value". */
static void set_default(const char *name, const char *value, char *noted, size_t size)
{
    if (getenv(name) != NULL)
        return;
    setenv(name, value, 1);
    size_t used = strlen(noted);
    snprintf(noted + used, size - used, " %s=%s", name, value);
}

/* NCCL refuses several ranks on one GPU, or needs telling; with a kernel of each rank resident at
 * once, the channels of all must fit onto the GPU. */
static int share_device(att_bench_job_t *job, char *noted, size_t size, att_error_t *error)
{
    int sharing = ranks_a_device(job);
    if (sharing < 2)
        return ATT_OK;
    char version[24], text[64];
    int units;
    int rc = job->device.ops->describe(job->device.state, 0, text, sizeof text, &units, error);
    if (rc != 0)
        return rc;
    if (job->nccl.version >= SHARED_GPU_VERSION) {
        set_default("NCCL_MULTI_RANK_GPU_ENABLE", "1", noted, size);
        set_default("NCCL_NVLS_ENABLE", "0", noted, size);
        int channels = (units - RESERVED_UNITS) / sharing;
        snprintf(text, sizeof text, "%d",
                 channels < 1 ? 1 : (channels > MOST_CHANNELS ? MOST_CHANNELS : channels));
        set_default("NCCL_MAX_CTAS", text, noted, size);
        return ATT_OK;
    }
    if (job->options->threads * job->options->ranks_per_thread > 1)
        return att_fail(error, ATT_EUNSUPPORTED,
                        "%d ranks on %d GPU%s: NCCL %s takes only one rank a process there; use "
                        "--procs %d",
                        job->ranks, job->device_count, job->device_count == 1 ? "" : "s",
                        att_nccl_version_text(job->nccl.version, version, sizeof version),
                        job->ranks);
    /* Each process counts as a node of its own, and the nodes meet over loopback. */
    snprintf(text, sizeof text, "attune-bench-%d", job->process);
    set_default("NCCL_HOSTID", text, noted, size);
    set_default("NCCL_SOCKET_IFNAME", "lo", noted, size);
    set_default("NCCL_MAX_CTAS", "4", noted, size);
    return ATT_OK;
}

static int make_rows(att_bench_job_t *job, att_error_t *error)
{
    const att_bench_options_t *o = job->options;
    job->rows = calloc((size_t)o->collective_count * (size_t)o->size_count, sizeof *job->rows);
    if (job->rows == NULL)
        return att_fail(error, ATT_ENOMEM, "no memory for the list of rows");
    for (int c = 0; c < o->collective_count; c++)
        for (int s = 0; s < o->size_count; s++) {
            att_shape_t shape =
                att_shape_make(o->collectives[c], o->sizes[s], o->type, o->op, o->root, job->ranks);
            if (shape.bytes > job->buffer_bytes)
                job->buffer_bytes = shape.bytes;
            job->rows[job->row_count++] = shape;
        }
    return ATT_OK;
}

static int make_tables(att_bench_job_t *job, att_error_t *error)
{
    const att_bench_options_t *o = job->options;
    job->sent = calloc((size_t)job->ranks, sizeof *job->sent);
    int rc = job->sent != NULL ? ATT_OK : -ATT_ENOMEM;
    for (int rank = 0; rc == 0 && rank < job->ranks; rank++)
        rc = att_data_of_rank(&job->sent[rank], o->type, o->op, job->ranks, rank);
    if (rc == 0)
        rc = att_data_reduced(&job->reduced, o->type, o->op, job->ranks);
    return rc == 0 ? ATT_OK : att_fail(error, ATT_ENOMEM, "no memory for the data tables");
}

static int open_parts(att_bench_job_t *job, att_error_t *error)
{
    int rc = att_nccl_load(&job->nccl, error);
    if (rc == 0)
        rc = att_device_open(job->nccl.fabric ? &att_device_host : &att_device_cuda, &job->device,
                             error);
    if (rc == 0)
        rc = job->device.ops->count(job->device.state, &job->device_count, error);
    if (rc == 0)
        rc = att_nccl_check(&job->nccl, job->nccl.get_version(&job->nccl.version), "ncclGetVersion",
                            error);
    job->gemm_shape = job->options->gemm_shape;
    if (job->nccl.fabric && !job->options->gemm_type_given)
        job->gemm_shape.type = ATT_NCCL_FLOAT;
    const char *mode = getenv("ATTUNE_FABRIC_MODE");
    job->virtual_time = job->nccl.fabric && mode != NULL && strcmp(mode, "model") == 0;
    char noted[512] = "";
    if (rc == 0)
        rc = share_device(job, noted, sizeof noted, error);
    if (rc == 0 && noted[0] != '\0' && job->process == 0)
        printf("# set for %d ranks a GPU:%s\n", ranks_a_device(job), noted);
    if (rc == 0)
        rc = make_rows(job, error);
    return rc != 0 ? rc : make_tables(job, error);
}

int att_bench_job_open(att_bench_job_t *job, const att_bench_options_t *options, int argc,
                       char **argv, int process, struct att_world *world,
                       struct att_bench_setting *setting, att_error_t *error)
{
    memset(job, 0, sizeof *job);
    job->argc = argc;
    job->argv = argv;
    job->options = options;
    job->process = process;
    job->ranks = att_bench_options_ranks(options);
    job->world = world;
    job->setting = setting;
    int rc = open_parts(job, error);
    if (rc != 0)
        att_bench_job_close(job);
    return rc;
}

void att_bench_job_close(att_bench_job_t *job)
{
    for (int rank = 0; job->sent != NULL && rank < job->ranks; rank++)
        att_data_free(&job->sent[rank]);
    free(job->sent);
    job->sent = NULL;
    att_data_free(&job->reduced);
    free(job->rows);
    job->rows = NULL;
    att_device_close(&job->device);
}

static void print_devices(const att_bench_job_t *job)
{
    char host[64] = "?", text[128];
    gethostname(host, sizeof host - 1);
    printf("# Using devices\n");
    int local = job->options->threads * job->options->ranks_per_thread;
    for (int rank = 0; rank < job->ranks; rank++) {
        int units = 0, index = att_bench_job_device_of(job, rank);
        if (job->device.ops->describe(job->device.state, index, text, sizeof text, &units, NULL) !=
            0)
            snprintf(text, sizeof text, "?");
        if (rank < local)
            printf("#  Rank %2d Group  0 Pid %6d on %10s device %2d %s\n", rank, (int)getpid(),
                   host, index, text);
        else
            printf("#  Rank %2d Group  0 Process %2d on %10s device %2d %s\n", rank, rank / local,
                   host, index, text);
    }
}

void att_bench_job_print_header(const att_bench_job_t *job)
{
    const att_bench_options_t *o = job->options;
    char version[24], path[ATT_ONE_LINE];
    printf("# attune bench version %s nccl-library=%d\n", ATTUNE_VERSION, job->nccl.version);
    printf(
        "# NCCL %s from %s%s\n", att_nccl_version_text(job->nccl.version, version, sizeof version),
        att_one_line(job->nccl.path, path, sizeof path), job->nccl.fabric ? " (host fabric)" : "");
    printf("# nThread %d nGpus %d minBytes %" PRIu64 " maxBytes %" PRIu64 " step: %" PRIu64
           "(%s) warmup iters: %d iters: %d agg iters: 1 validation: %d graph: 0\n",
           o->threads, o->ranks_per_thread, o->min_bytes, o->max_bytes,
           o->step_factor > 1 ? o->step_factor : o->step_bytes,
           o->step_factor > 1 ? "factor" : "bytes", o->warmup, o->iterations, o->check);
    if (o->processes > 1)
        printf("# %d processes\n", o->processes);
    if (o->sync_every)
        printf("# Blocking Enabled: wait after each call\n");
    if (o->has_setting) {
        char text[ATT_SETTING_TEXT];
        printf("# setting: %s\n", att_setting_text(o->setting, text, sizeof text));
    }
    if (o->gemm)
        printf("# beside each rank: %s products of %dx%d by %dx%d, one after the other\n",
               att_nccl_type_name(job->gemm_shape.type), job->gemm_shape.m, job->gemm_shape.k,
               job->gemm_shape.k, job->gemm_shape.n);
    if (o->compute_us > 0)
        printf("# between two calls: %g us of compute on the fabric's clock\n", o->compute_us);
    printf("#\n");
    print_devices(job);
    if (job->virtual_time)
        printf("#\n# modelled fabric: times are of its own clock; wall time means nothing here\n");
}
