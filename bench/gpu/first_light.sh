#!/bin/bash
# First light on a GPU: AllReduce, AllGather and ReduceScatter at 1, 16 and 80 MiB on four ranks of
# one GPU, alone and beside matrix products:
#
#   default   attune bench: NCCL's choice
#   tuned     attune run -- attune bench: found online through the sidecar
#   sweep     attune bench --sweep --also RUN: a grid of settings; its best 20, NCCL's choice and the
#             tuned setting again, interleaved, 30 samples each
#
# ends with one table of the sweeps' medians, the geometric mean of tuned over best, and PASSED when
# it is at least 0.98 and no task is below 0.95.
#
#   bench/gpu/first_light.sh [--fabric] [--quick] [--no-build]
#
#   --fabric     on the host fabric instead (two ranks, small messages): a try of this script
#   --quick      one collective and size
#   --no-build   ATTUNE_BUILD is built already
#
# ATTUNE_NCCL_LIB     NCCL 2.30.3 or later (several ranks on one GPU); needed without --fabric
# ATTUNE_NCCL_SOCKETS older NCCL: also one run with a process a rank over sockets
# ATTUNE_BUILD        build folder, build/gpu by default
# OUT                 where the logs go, build/first-light by default: at most 8 files
# TUNE_SECONDS        for each of the two tuned runs (60); LIMIT_SECONDS for everything (560)
# STRATEGY            how it searches (coordinate_descent:budget=400)
# PLACE               out (default), in or both: the kind of calls
# CARRY               folder with libraries that the machine lacks (.carry/root)
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
fabric=no quick=no build=yes
for word; do
    case $word in
    --fabric) fabric=yes ;;
    --quick) quick=yes ;;
    --no-build) build=no ;;
    *) sed -n '2,/^set -u/s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
    esac
done
if [ $fabric = no ] && [ ! -r "${ATTUNE_NCCL_LIB:-}" ]; then
    echo "ATTUNE_NCCL_LIB must name NCCL 2.30.3 or later" >&2
    exit 2
fi

export ATTUNE_BUILD=${ATTUNE_BUILD:-$root/build/gpu}
out=${OUT:-$root/build/first-light}
work=$root/build/first-light.work
began=$SECONDS
until=${LIMIT_SECONDS:-560}
mkdir -p "$out" || exit 1
if [ -z "${FIRST_LIGHT_LOG:-}" ]; then
    export FIRST_LIGHT_LOG=$out/first-light.log
    "$0" "$@" 2>&1 | tee "$FIRST_LIGHT_LOG"
    exit "${PIPESTATUS[0]}"
fi
rm -rf "$work"
mkdir -p "$work" || exit 1

. "$root/bench/gpu/machine.sh"
if [ $build = yes ]; then
    say "build in $ATTUNE_BUILD"
    build_here "$work/build.log" || exit 1
fi
export PATH=$ATTUNE_BUILD/bin:$PATH

collectives=allreduce,allgather,reducescatter
# One kind of call, as a training job has: in-place and out-of-place ones differ by up to a fifth.
place=(--place "${PLACE:-out}")
if [ $fabric = yes ]; then
    export ATTUNE_NCCL_LIB=$ATTUNE_BUILD/fabric/libnccl.so.2
    sizes=64K,256K,1M ranks=2
    gemm=(--gemm "64,64,64")
    sweeps=("all --size-list $sizes --max-channels 4 --time 1")
    tune=${TUNE_SECONDS:-10}
else
    export NCCL_MULTI_RANK_GPU_ENABLE=1 NCCL_NVLS_ENABLE=0 NCCL_MAX_CTAS=32
    # As attune run sets it: the three measurements must not differ in what is connected.
    export NCCL_RUNTIME_CONNECT=0
    sizes=1M,16M,80M ranks=4
    # The product that AutoCCL's figure 9 runs beside its collectives (m, n, k).
    gemm=(--gemm "3456,3456,128,bfloat16")
    # Many calls a sample: they follow each other as in the tuned job. The host paces short ones: more.
    sweeps=("short --size-list 1M --max-channels 32 --time 4 --batch 64 --repeats 64"
        "long --size-list 16M,80M --max-channels 32 --time 4 --batch 16 --repeats 32")
    tune=${TUNE_SECONDS:-60}
fi
[ $quick = no ] || collectives=allreduce sizes=1M sweeps=("${sweeps[0]}")
what=(--size-list "$sizes" -t "$ranks")

{
    date -u +%FT%TZ
    git -C "$root" rev-parse HEAD 2>/dev/null
    attune --version
    echo "NCCL: $ATTUNE_NCCL_LIB"
    uname -srm
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm --format=csv,noheader 2>/dev/null
    env | grep -E '^(NCCL|ATTUNE|CUDA)_' | sort
} | tee "$work/environment.txt"

say "one AllReduce, to see that it runs"
limited 60 attune bench allreduce --size-list 64K -t "$ranks" -n 5 || exit 1

failed=0
# measure LOAD BENCH-OPTION...
measure() {
    local load=$1 objective=collective
    # Beside compute a call also waits for multiprocessors, before its first stamp: start to start has
    # that, as the sweep's samples do.
    [ "$load" = alone ] || objective=step
    shift
    say "$load: NCCL's choice"
    limited 60 attune bench $collectives "${what[@]}" "${place[@]}" "$@" -w 5 -n 50 -J "$work/default-$load.json" ||
        failed=1
    say "$load: tuned online for $tune s"
    limited $((tune + 60)) attune run --run-dir "$work/run-$load" --max-cost 0 --samples 16 --objective $objective \
        --strategy "${STRATEGY:-coordinate_descent:budget=400}" -- \
        attune bench $collectives "${what[@]}" "${place[@]}" "$@" -w 5 -n 50 --time "$tune" --watch-tuned=10 || failed=1
    local sweep name options
    for sweep in "${sweeps[@]}"; do
        read -r name options <<<"$sweep"
        say "$load: sweep, $name calls"
        # shellcheck disable=SC2086
        limited 200 attune bench $collectives $options -t "$ranks" "${place[@]}" "$@" --sweep \
            --also "$work/run-$load" -J "$work/sweep-$load-$name.json" | tee "$work/sweep-$load-$name.log"
        [ "${PIPESTATUS[0]}" -eq 0 ] || failed=1
    done
}
measure alone
measure gemm "${gemm[@]}"

if [ -n "${ATTUNE_NCCL_SOCKETS:-}" ]; then
    say "one process a rank over sockets: $ATTUNE_NCCL_SOCKETS"
    (
        unset NCCL_MULTI_RANK_GPU_ENABLE NCCL_MAX_CTAS
        export ATTUNE_NCCL_LIB=$ATTUNE_NCCL_SOCKETS
        limited 100 attune run --run-dir "$work/run-sockets" --max-cost 0 -- \
            attune bench allreduce --size-list 1M --procs 4 -w 2 -n 20 --time 30 --watch-tuned=10
    ) || failed=1
fi

# The summary lines of a sweep: collective bytes load default tuned best default/best tuned/best.
say "medians of the sweeps, us"
sed -n 's/^  \(allreduce\|allgather\|reducescatter\) /&/p' "$work"/sweep-*.log |
    awk '
    BEGIN {
        printf "%-14s %10s %5s %10s %10s %10s %9s %9s %8s  %s\n", "collective", "bytes", "load",
            "default", "tuned", "best", "default/", "tuned/", "speedup", "best setting"
        printf "%-14s %10s %5s %10s %10s %10s %9s %9s\n", "", "", "", "", "", "", "best", "best"
    }
    {
        setting = $9
        for (i = 10; i <= NF; i++) setting = setting " " $i
        speedup = $5 == "-" ? "-" : sprintf("%.3f", $4 / $5)
        printf "%-14s %10s %5s %10s %10s %10s %9s %9s %8s  %s\n", $1, $2, $3, $4, $5, $6, $7, $8,
            speedup, setting
        tasks++
        if ($8 == "-") { missing++; next }
        sum += log($8); gain += log($4 / $5)
        if (least == "" || $8 < least) least = $8
    }
    END {
        known = tasks - missing
        if (known == 0) { print "no tuned task"; exit 1 }
        mean = exp(sum / known)
        printf "tuned / best: geometric mean %.3f, least %.3f; tuned over default %.3f; %d of %d tasks tuned\n",
            mean, least, exp(gain / known), known, tasks
        good = mean >= 0.98 && least >= 0.95 && missing == 0
        print good ? "PASSED" : "FAILED (wanted: geometric mean 0.98, least 0.95, all tasks)"
        exit !good
    }' | tee "$work/table.txt"
[ "${PIPESTATUS[1]}" -eq 0 ] || failed=1

cp "$work"/table.txt "$work"/environment.txt "$out"/ 2>/dev/null
tar -C "$work" -czf "$out/work.tar.gz" . 2>/dev/null
say "logs in $out"
exit $failed
