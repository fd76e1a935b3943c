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
echo "AutoCCL's search as coded, after its first step along the channels gained 10 %: what it tries"
echo 'next along the same axis (the published search changes one knob a step; both are asserted):'
"$build/tests/test_sim_accelerated_step" 2>&1 | grep -E '^code:|PASSED|FAILED' | sed 's/^/  /'

echo
echo 'One AllGather beside compute (data/sim/lagom-phi2-fsdp.json), speed of the step over that with'
echo "NCCL's choice; published: 0.87x for the best bandwidth, 1.35x for Lagom's choice."
for objective in collective step; do
    "$build/bin/attune" sim --surface data/sim/lagom-phi2-fsdp.json --objective "$objective" \
        --compute-us 1980 --slowdown 0.1 --noise 3% --seeds "$seeds" --budget 600 \
        --strategy default --quiet 2>/dev/null | sed -n '2,3p; 6p'
done
