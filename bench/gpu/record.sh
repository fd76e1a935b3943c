#!/bin/bash
# Records surfaces of one GPU shared by four ranks: AllReduce, AllGather and ReduceScatter at 1, 16
# and 80 MiB, alone and beside matrix products; channels 1-32, chunks 8 KiB to 512 KiB and "keep",
# NCCL's own threads a block and those of further communicators, all algorithms and protocols; the
# best 5 % again, interleaved, 30 samples each, and the fastest 16 of these until each has 200.
#
#   bench/gpu/record.sh [--fabric] [--no-build]
#
#   --fabric     on the host fabric instead (two ranks, small grid): a try of this script
#   --no-build   ATTUNE_BUILD is built already
#
# Run it again after it ended for want of time (status 10): it goes on where it was. OUT has at any
# time surfaces that attune sim reads, and the journals that the next run needs.
#
# ATTUNE_NCCL_LIB   NCCL 2.30.3 or later (several ranks on one GPU); needed without --fabric
# ATTUNE_BUILD      build folder, build/gpu by default
# OUT               where the surfaces go, build/record by default
# BUDGET            seconds for everything (540); a tenth of it is left for the start
# COLLECTIVES       of these (allreduce,allgather,reducescatter)
# THREADS           threads a block besides NCCL's own, as a list (128,256); "none" for no others
# CARRY             folder with libraries that the machine lacks (.carry/root)
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
fabric=no build=yes
for word; do
    case $word in
    --fabric) fabric=yes ;;
    --no-build) build=no ;;
    *) sed -n '2,/^set -u/s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
    esac
done
if [ $fabric = no ] && [ ! -r "${ATTUNE_NCCL_LIB:-}" ]; then
    echo "ATTUNE_NCCL_LIB must name NCCL 2.30.3 or later" >&2
    exit 2
fi
began=$SECONDS
budget=${BUDGET:-540}
export ATTUNE_BUILD=${ATTUNE_BUILD:-$root/build/gpu}
out=${OUT:-$root/build/record}
mkdir -p "$out" || exit 1

. "$root/bench/gpu/machine.sh"
if [ $build = yes ]; then
    echo "== build in $ATTUNE_BUILD"
    build_here "$out/build.log" || exit 1
    rm -f "$out/build.log"
fi
export PATH=$ATTUNE_BUILD/bin:$PATH

threads=()
if [ $fabric = yes ]; then
    export ATTUNE_NCCL_LIB=$ATTUNE_BUILD/fabric/libnccl.so.2
    what=(--size-list "16K,64K" -t 2 --channels 1,2,4 --chunks 8K,32K --batch 2 --again 5 --front 4 --front-samples 20)
    gemm=(--gemm 64,64,64)
    name=(--prefix fabric-2 --device "host fabric")
    collectives=${COLLECTIVES:-allreduce,allgather}
else
    export NCCL_MULTI_RANK_GPU_ENABLE=1 NCCL_NVLS_ENABLE=0 NCCL_MAX_CTAS=32
    # As attune run sets it: nothing is connected in the middle of a measurement.
    export NCCL_RUNTIME_CONNECT=0
    what=(--size-list "1M,16M,80M" -t 4 --channels 1-32)
    # The product that AutoCCL's figure 9 runs beside its collectives (m, n, k).
    gemm=(--gemm "3456,3456,128,bfloat16")
    gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1)
    name=(--prefix "${PREFIX:-h200-4}" --device "${gpu:-unknown GPU}"
        --description "four ranks on one GPU")
    [ "${THREADS:-128,256}" = none ] || threads=(--threads-list "${THREADS:-128,256}")
    collectives=${COLLECTIVES:-allreduce,allgather,reducescatter}
fi

{
    date -u +%FT%TZ
    attune --version
    echo "NCCL: $ATTUNE_NCCL_LIB"
    uname -srm
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm --format=csv,noheader 2>/dev/null
    env | grep -E '^(NCCL|ATTUNE|CUDA)_' | sort
} >>"$out/environment.txt"

# record SHARE OPTION...: with this share of what is left of the budget.
record() {
    local share=$1 left=$((budget - budget / 10 - (SECONDS - began)))
    shift
    local mine=$((left * share / 100))
    [ $mine -ge 1 ] || { echo "no time left for: $*" && return 10; }
    timeout -k 10 $((mine + budget / 10 + 30)) attune record $collectives "${what[@]}" --place "${PLACE:-out}" \
        "${threads[@]}" "${name[@]}" --out "$out" --budget $mine "$@"
}

status=0
# What failed counts more than what only was not finished (10).
take() {
    if [ "$1" -ne 0 ] && { [ $status -eq 0 ] || [ $status -eq 10 ]; }; then
        status=$1
    fi
}
echo "== alone"
record 50
take $?
echo "== beside a GEMM"
record 100 "${gemm[@]}"
take $?
echo "== $((SECONDS - began)) s, surfaces in $out"
attune surfaces "$out"/*.json.gz
[ $status -ne 10 ] || echo "not complete: run it again"
exit $status
