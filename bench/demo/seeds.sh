#!/bin/bash
# The modelled AllGather of the demo over many seeds, each tuned online through the sidecar.
#
#   bench/demo/seeds.sh [SEEDS] [STRATEGY...]     20 seeds; coordinate_descent exhaustive random
#
# Prints for each load and strategy: NCCL's choice, median, least and most of the tuned algorithm
# bandwidth, its share of the surface's optimum (what a tuner can set per call), runs below NCCL's
# choice and mismatches. Fails when a run failed, ended below NCCL's choice, or ranks differed.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${ATTUNE_BUILD:-$root/build/release}
out=$root/build/seeds
seeds=${1:-20}
shift
[ $# -gt 0 ] || set -- coordinate_descent exhaustive random
for variable in $(compgen -e); do
    case $variable in ATTUNE_* | NCCL_*) unset "$variable" ;; esac
done
export PATH=$build/bin:$PATH OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
rm -rf "$out"
mkdir -p "$out"
: >"$out/rows.tsv" # load, strategy, seed, default, tuned, mismatches

# field NAME FILE: the first number of that name in a summary.json.
field() { grep -oE "\"$1\": ?[0-9.]+" "$2" | head -n 1 | grep -oE '[0-9.]+$'; }

failed=0
for load in none light heavy; do
    for strategy; do
        calls=1500 # of both kinds: twice what a search takes, on a machine with little time for the sidecar too
        for ((seed = 1; seed <= seeds; seed++)); do
            run=$out/$load-$strategy-$seed
            if ! timeout -k 5 120 attune run --run-dir "$run" --quiet --fabric model \
                --surface a40-nvlink-8-allgather --load "$load" --strategy "$strategy" \
                --seed "$seed" --max-cost 0 -- \
                attune bench allgather -b 80M -e 80M -t 8 -w 5 -n "$calls" >"$run.log" 2>&1 </dev/null; then
                echo "FAILED: $run.log"
                failed=1
                continue
            fi
            printf '%s\t%s\t%d\t%s\t%s\t%s\n' "$load" "$strategy" "$seed" \
                "$(field default_gbs "$run/summary.json")" "$(field tuned_gbs "$run/summary.json")" \
                "$(field mismatches "$run/summary.json")" >>"$out/rows.tsv"
        done
    done
done

# Optimum of the surface over algorithm, protocol, channels and chunk (docs/surfaces.md), GB/s.
sort -t "$(printf '\t')" -k1,1 -k2,2 -k5,5g "$out/rows.tsv" | awk -F '\t' '
    function close_group() {
        if (n == 0) return
        middle = n % 2 ? tuned[(n + 1) / 2] : (tuned[n / 2] + tuned[n / 2 + 1]) / 2
        printf "%-6s %-20s %5d %8.2f %8.2f %8.2f %8.2f %9.3f %7d %10d\n", load, strategy, n,
            sum / n, middle, tuned[1], tuned[n], middle / best[load], below, differ
        bad += below + differ
        n = sum = below = differ = 0
    }
    BEGIN {
        best["none"] = 38.49; best["light"] = 35.28; best["heavy"] = 32.88
        printf "%-6s %-20s %5s %8s %8s %8s %8s %9s %7s %10s\n", "load", "strategy", "seeds", "NCCL",
            "median", "least", "most", "/optimum", "below", "mismatches"
    }
    $1 != load || $2 != strategy { close_group(); load = $1; strategy = $2 }
    { tuned[++n] = $5; sum += $4; below += $5 < $4 * 0.995; differ += $6 }
    END { close_group(); exit bad > 0 }' || failed=1
exit $failed
