#!/bin/bash
# bench/sim/live_gpu.sh WORK [STRATEGY] [SEEDS]: searches on an H200 beside the same searches simulated.
#
# WORK is the unpacked work.tar.gz of bench/gpu/first_light.sh (needs no GPU any more). Live: calls that
# each task's search took, and how far the setting it ended with is behind the best of the sweep that was
# measured beside it. Simulated: attune sim on the recorded surface of the same task (data/surfaces), the
# settings that a job without further communicators can take, SEEDS seeds (20), with the surface's own
# noise and with the job's 16 samples a trial.
#
# STRATEGY is that of the run (default:stop=0,budget=299). ATTUNE_BUILD is the build folder.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,/^set -eu/s/^# \{0,1\}//p' "$0" | sed '$d' >&2; exit 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$1 strategy=${2:-default:stop=0,budget=299} seeds=${3:-20}
export PATH=${ATTUNE_BUILD:-$root/build/release}/bin:$PATH
for needed in "$work"/run-{alone,gemm}/summary.json; do
    [ -r "$needed" ] || { echo "no $needed: WORK is the unpacked work.tar.gz of first_light.sh" >&2; exit 2; }
done
for needed in attune jq; do
    command -v "$needed" >/dev/null || { echo "no $needed: build attune (ATTUNE_BUILD), install jq" >&2; exit 2; }
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
printf '%-28s %8s %10s %8s %10s %10s\n' task 'calls' 'simulated' 'gap' 'simulated' '99 of 100'
for load in alone gemm; do
    jq -r '.runs[0].tasks[] | [.collective, .bytes, .calls] | @tsv' "$work/run-$load/summary.json" >"$scratch/tasks"
    while read -r collective bytes calls; do
        gap=$(jq -s --arg c "$collective" --argjson b "$bytes" \
            '[.[].tasks[] | select(.collective == $c and .bytes == $b)][0] | .tuned_us / .best_us - 1' \
            "$work"/sweep-$load*.json)
        name=h200-4-$collective-$((bytes >> 20))m
        [ $load = alone ] || name=$name-gemm
        zcat "$root/data/surfaces/$name.json.gz" |
            jq -c '.results |= map(select(.configuration.threads == "keep"))' >"$scratch/$name.json"
        attune sim --surface "$scratch/$name.json" --strategy "$strategy" --seeds "$seeds" --samples 16 \
            --noise surface --budget 20000 --json "$scratch/rows.json" --quiet >/dev/null
        jq -r --arg name "${name#h200-4-}" --argjson calls "$calls" --argjson gap "$gap" '.rows[0] |
            [$name, $calls, (.trial_calls_median // "-"), 100 * $gap, 100 * .gap_final_geomean, 100 * .gap_final_p99] |
            @tsv' "$scratch/rows.json" |
            awk -F'\t' '{ printf "%-28s %8d %10s %7.2f%% %9.2f%% %9.2f%%\n", $1, $2, $3, $4, $5, $6 }'
    done <"$scratch/tasks"
done | tee "$scratch/table"
awk '{ n++; live += log(1 + $4 / 100); sim += log(1 + $5 / 100); a += log($2); b += log($3) }
    END { printf "%-28s %8.0f %10.0f %7.2f%% %9.2f%%\n", "geometric mean", exp(a / n), exp(b / n),
        100 * (exp(live / n) - 1), 100 * (exp(sim / n) - 1) }' "$scratch/table"
