#!/bin/bash
# bench/sim/live.sh [SEEDS] [SURFACE] [LOAD] [NOISE] [STRATEGY]: the same search live and simulated.
#
# Live: through the sidecar on the model fabric, 8 ranks, SEEDS runs (5). Simulated: attune sim with
# the same surface, load, noise and strategy, 100 seeds, enough calls to settle. Prints calls in
# trials and comparisons and the noiseless gap of the setting in force at the end, side by side.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${ATTUNE_BUILD:-$root/build/release}
seeds=${1:-5} surface=${2:-a40-nvlink-8-allgather} load=${3:-none} noise=${4:-0.05}
strategy=${5:-default}
calls=${CALLS:-1500} # of each of the two rows that bench runs
for variable in $(compgen -e); do
    case $variable in ATTUNE_* | NCCL_*) unset "$variable" ;; esac
done
export PATH=$build/bin:$PATH OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
out=$root/build/sim/live
rm -rf "$out"
mkdir -p "$out"
case $surface in
*allgather*) collective=allgather ;;
*reducescatter*) collective=reducescatter ;;
*) collective=allreduce ;;
esac
for ((seed = 1; seed <= seeds; seed++)); do
    ATTUNE_FABRIC_NOISE=$noise ATTUNE_FABRIC_SEED=$seed timeout -k 5 300 \
        attune run --run-dir "$out/$seed" --quiet --fabric model --surface "$surface" --load "$load" \
        --strategy "$strategy" --seed "$seed" --max-cost 0 -- \
        attune bench "$collective" -b 80M -e 80M -t 8 -w 5 -n "$calls" >"$out/$seed.log" 2>&1 </dev/null ||
        { echo "FAILED: $out/$seed.log"; exit 1; }
done
"$build/bin/sim_live_gap" "$surface" "$load" "$out"/*/ >"$out/live.tsv" || exit 1
attune sim --surface "$surface" --load "$load" --noise "$noise" --strategy "$strategy" --seeds 100 \
    --budget $((2 * calls)) --csv "$out/sim.csv" --json "$out/sim.json" --quiet >"$out/sim.txt"

middle() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
worst() { sort -g | tail -n 1; }
key() { grep -oE "\"$1\": ?[0-9.e-]+" "$out/sim.json" | head -n 1 | grep -oE '[0-9.e-]+$'; }
echo "$strategy on $surface, load $load, noise $noise; the live setting of each seed:"
sed 's/^/    /' "$out/live.tsv"
printf '%-34s %10s %10s\n' '' live simulated
printf '%-34s %10s %10s\n' 'runs' "$seeds" 100
printf '%-34s %10.0f %10.0f\n' 'calls in trials, median' "$(cut -f1 "$out/live.tsv" | middle)" \
    "$(key trial_calls_median)"
printf '%-34s %9.2f%% %9.2f%%\n' 'final gap, median' \
    "$(cut -f2 "$out/live.tsv" | middle | awk '{ print 100 * $1 }')" \
    "$(key gap_final_median | awk '{ print 100 * $1 }')"
printf '%-34s %9.2f%% %9.2f%%\n' 'final gap, worst' \
    "$(cut -f2 "$out/live.tsv" | worst | awk '{ print 100 * $1 }')" \
    "$(key gap_final_worst | awk '{ print 100 * $1 }')"
