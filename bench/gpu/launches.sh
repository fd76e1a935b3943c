#!/bin/bash
# What attune costs a job that it does not tune: AllReduce in alternating launches of
#
#   unhooked  attune bench
#   idle      with the hook, no sidecar
#   observe   under attune run --observe: counted and timed
#   trace     under attune run --observe --trace on: every call recorded
#   settled   under attune run --apply, with what a run of TUNE_SECONDS before the launches found
#
#   bench/gpu/launches.sh [--fabric]
#
# ends with a line a size and kind: the median over launches, its ratio of speed to the first kind's
# with a 95 % interval (bootstrap over launches), and what the host takes for a call, where it does
# not wait for the device (ITERATIONS below NCCL's queue of 1024). launches_report.py makes it again
# from launches.txt, of several runs too.
#
#   --fabric    on the host fabric instead of GPUs
#
# KINDS            of the five ("unhooked idle")
# ATTUNE_NCCL_LIB  NCCL to run on (without --fabric); ATTUNE_BUILD the build folder (build/release)
# LAUNCHES         of each kind (15), as many as begin within LIMIT_SECONDS (all); SIZES (8,64K,1M,64M);
#                  RANKS (4); TUNE_SECONDS (30)
# AS               processes (default): a rank each, under MPS, on processors of its own; threads of one
#                  process, whose launches of kernels wait for one another: launches then differ by 10 %
#                  where messages are short
# ITERATIONS       timed calls of each size (500), ROUNDS times a launch (4). The median counts, of all rounds
#                  but the first DROP (1), in which a settled job is still being switched and timed (at 8 B:
#                  20 of 40; 100 ms after the first call it still is).
# OUT              folder of the raw lines, launches.txt: us of a call, and of the host (build/launches)
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
export ATTUNE_BUILD=${ATTUNE_BUILD:-$root/build/release}
. "$root/bench/gpu/machine.sh"
export PATH=$ATTUNE_BUILD/bin:$PATH
case ${1:-} in
--fabric)
    export ATTUNE_NCCL_LIB=$ATTUNE_BUILD/fabric/libnccl.so.2
    ranks=${RANKS:-2} sizes=${SIZES:-4K,64K,1M}
    ;;
'')
    export NCCL_NVLS_ENABLE=${NCCL_NVLS_ENABLE:-0} NCCL_RUNTIME_CONNECT=0
    ranks=${RANKS:-4} sizes=${SIZES:-8,64K,1M,64M}
    ;;
*) sed -n '2,/^set -u/s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
if [ ! -r "${ATTUNE_NCCL_LIB:-}" ]; then
    echo "ATTUNE_NCCL_LIB must name an NCCL" >&2
    exit 2
fi
out=${OUT:-$root/build/launches}
mkdir -p "$out" || exit 1
raw=$out/launches.txt
scratch=$(mktemp -d)
trap 'stop_mps; rm -rf "$scratch"' EXIT # its pipes are in there
hook=$ATTUNE_BUILD/lib/libattune-nccl.so
case ${AS:-processes} in
threads) as=-t ;;
processes)
    as=--procs
    [ "${1:-}" = --fabric ] || { start_mps "$scratch" && as='--bind --procs'; }
    ;;
*) echo "AS is processes or threads, not '$AS'" >&2 && exit 2 ;;
esac
calls=(attune bench allreduce --size-list "$sizes" $as "$ranks" -w 20 -c 0 --place out)
bench=("${calls[@]}" -J "$scratch/bench.json" -n "${ITERATIONS:-500}" --rounds "${ROUNDS:-4}")
read -ra kinds <<<"${KINDS:-unhooked idle}"

if [[ " ${kinds[*]} " == *" settled "* ]]; then
    tune=${TUNE_SECONDS:-30}
    if ! timeout -k 5 $((tune + 60)) attune run --quiet --max-cost 0 --run-dir "$scratch/tuned" -- \
        "${calls[@]}" -n 50 --time "$tune" >"$scratch/output" 2>"$scratch/errors"; then
        echo "the run that tunes failed:" >&2
        tail -n 5 "$scratch/output" "$scratch/errors" >&2
        exit 1
    fi
    cp "$scratch/tuned/summary.json" "$out/tuned.json"
fi
echo "# kind launch bytes us host_us" >"$raw"
for ((i = 1; i <= ${LAUNCHES:-15} && SECONDS < ${LIMIT_SECONDS:-1000000}; i++)); do
    order=("${kinds[@]}") # A B, B A, A B, ...: what comes second gains nothing from it
    [ $((i % 2)) = 1 ] || order=($(printf '%s\n' "${kinds[@]}" | tac))
    for kind in "${order[@]}"; do
        case $kind in
        unhooked) launch=("${bench[@]}") ;;
        idle)
            launch=(env NCCL_TUNER_PLUGIN="$hook" NCCL_PROFILER_PLUGIN="$hook" LD_PRELOAD="$hook"
                ATTUNE_RUN_ID="idle-$$" "${bench[@]}")
            ;;
        observe) launch=(attune run --quiet --observe --run-dir "$scratch/$i" -- "${bench[@]}") ;;
        trace)
            launch=(attune run --quiet --observe --trace on --run-dir "$scratch/t$i" --
                "${bench[@]}")
            ;;
        settled)
            launch=(attune run --quiet --apply "$scratch/tuned" --run-dir "$scratch/s$i" --
                "${bench[@]}")
            ;;
        *) echo "KINDS: unknown kind '$kind'" >&2 && exit 2 ;;
        esac
        if ! timeout -k 5 60 "${launch[@]}" >"$scratch/output" 2>"$scratch/errors"; then
            echo "launch $i of kind $kind failed:" >&2
            tail -n 5 "$scratch/output" "$scratch/errors" >&2
            exit 1
        fi
        python3 - "$scratch/bench.json" "$kind" "$i" >>"$raw" <<'PYTHON' || exit 1
import json, sys
for row in json.load(open(sys.argv[1]))["results"]:
    side = row["out_of_place"]
    print(*sys.argv[2:], row["size"], f"{side['time']:.3f} {side['host']:.3f}")
PYTHON
    done
done

python3 "$root/bench/gpu/launches_report.py" "$raw" "${DROP:-1}" "${kinds[@]}"
