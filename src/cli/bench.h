/*
 * bench: the workload driver `attune bench`, in nccl-tests' spelling and columns.
 *
 * It runs collectives on whichever libnccl.so.2 it finds (ATTUNE_NCCL_LIB, else the library path)
 * with ranks as threads or processes, on GPUs or on the host fabric, and checks the results.
 */
#ifndef ATT_CLI_BENCH_H
#define ATT_CLI_BENCH_H

/* argv[0] is the word "bench" (any name will do). Returns the exit status: 0 passed, 1 wrong
 * results, 2 usage, else the positive att_status_t of what failed. */
int att_bench_main(int argc, char **argv);
/* The same for options that are parsed already; argv is noted in results. */
struct att_bench_options;
int att_bench_run(const struct att_bench_options *options, int argc, char **argv);

#endif
