#!/bin/bash
# bench/sim/speed.sh [SEEDS]: wall and processor time of SEEDS (1000) runs of coordinate descent as
# published and of the default strategy. Budget: a minute each on two cores that do nothing else.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${ATTUNE_BUILD:-$root/build/release}
TIMEFORMAT='%R s wall, %U s of processor'
for strategy in coordinate_descent:variant=paper default; do
    printf '%s, %s runs: ' "$strategy" "${1:-1000}"
    time "$build/bin/attune" sim --surface a40-nvlink-8-allgather --strategy "$strategy" \
        --seeds "${1:-1000}" --workers 2 --quiet >/dev/null
done
