#!/bin/bash
# bench/sim/negative.sh [SEEDS]: two results that a tuner should not have, reproduced.
#
# 1. AutoCCL's accelerated step, as its code takes it, leaves the axis that it follows.
# 2. Lagom's case: the setting with the best bandwidth makes the step slower than NCCL's choice;
#    with the step as the objective the default strategy finds one that makes it faster.
set -eu
cd "$(dirname "$0")/../.."
build=${ATTUNE_BUILD:-$PWD/build/release}
seeds=${1:-20}
trace=$(mktemp)
trap 'rm -f "$trace"' EXIT

echo 'Trials that change channels and chunk at once, seen from every setting tried before in the'
echo 'same algorithm and protocol (one run of 600 calls, budget 150 trials):'
for variant in paper code; do
    "$build/bin/attune" sim --surface a40-nvlink-8-allgather --budget 600 --seeds 1 --noise 5% \
        --strategy "coordinate_descent:variant=$variant" --trace "$trace" --quiet >"$trace.out"
    rm -f "$trace.out"
    awk -F, -v variant="$variant" '
        $4 == "search" && $8 > 0 {
            pair = $5 "/" $6; key = pair " " $8 " " $10
            if (key in seen) next
            seen[key] = 1; tried++; n[pair]++
            both = n[pair] > 1
            for (k in channels) if (where[k] == pair && (channels[k] == $8 || chunk[k] == $10)) both = 0
            if (both) { leaves++; if (variant == "code" && leaves <= 3)
                printf "    %s: channels %s, chunk %s shares neither with any of %d before\n", pair, $8, $10, n[pair] - 1 }
            channels[key] = $8; chunk[key] = $10; where[key] = pair
        }
        END { printf "  %-6s %d of %d trials\n", variant, leaves, tried }' "$trace"
done

echo
echo 'One AllGather beside compute (data/sim/lagom-phi2-fsdp.json), speed of the step over that with'
echo "NCCL's choice; published: 0.87x for the best bandwidth, 1.35x for Lagom's choice."
for objective in collective step; do
    "$build/bin/attune" sim --surface data/sim/lagom-phi2-fsdp.json --objective "$objective" \
        --compute-us 1980 --slowdown 0.1 --noise 3% --seeds "$seeds" --budget 600 \
        --strategy default --quiet 2>/dev/null | sed -n '2,3p; 6p'
done
