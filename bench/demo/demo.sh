#!/bin/bash
# The demo: collectives tuned while they run, through hook and sidecar, on machines without a GPU.
#
#   modelled  8 ranks, 80 MiB AllGather on the A40 surface, under three loads, by four strategies
#   real      4 ranks that move and reduce data on this machine's cores
#
# Leaves build/demo/summary.json and a run folder per run. ATTUNE_BUILD: the build to use.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${ATTUNE_BUILD:-$root/build/release}
out=$root/build/demo
# An option in the environment would change what is shown.
for variable in $(compgen -e); do
    case $variable in
    ATTUNE_TEST_* | ATTUNE_TALLY) ;;
    ATTUNE_* | NCCL_*) unset "$variable" ;;
    esac
done
export PATH=$build/bin:$PATH OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
rm -rf "$out"
mkdir -p "$out"
began=$SECONDS
failed=0
runs=()

# A container has 64 MiB of /dev/shm as a rule, and the real runs take up to 1.5 GiB.
room=$(df -Pm /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')
if [ "${room:-0}" -lt 2048 ]; then
    mkdir "$out/shm"
    export ATTUNE_SHM_DIR=$out/shm ATTUNE_FABRIC_SHM_DIR=$out/shm
    printf '/dev/shm has %d MiB: shared memory lies in %s instead\n' "${room:-0}" "${ATTUNE_SHM_DIR#"$root"/}"
fi

# tune NAME OPTION... -- COMMAND...: one run; its output goes to NAME.log.
tune() {
    local name=$1 at=$SECONDS
    shift
    runs+=("$out/$name")
    printf '%-34s' "$name"
    if timeout -k 5 120 attune run --run-dir "$out/$name" "$@" </dev/null >"$out/$name.log" 2>&1; then
        printf 'done in %d s\n' $((SECONDS - at))
    else
        printf 'FAILED with status %d\n' $?
        tail -n 12 "$out/$name.log"
        failed=1
    fi
}

for load in none light heavy; do
    for strategy in default coordinate_descent exhaustive random; do
        calls=1000
        [ "$strategy" != exhaustive ] || calls=1500
        tune "model-$load-$strategy" --fabric model --surface a40-nvlink-8-allgather \
            --load "$load" --strategy "$strategy" --max-cost 0 -- \
            attune bench allgather -b 80M -e 80M -t 8 -w 5 -n "$calls"
    done
done
for collective in allreduce allgather reducescatter; do
    tune "real-$collective" --fabric real --max-cost 0 -- \
        attune bench "$collective" -b 64K -e 1M -f 4 -t 4 -w 5 -n 3000
done

echo
demo_table "$out/summary.json" "$root/bench/demo/published.json" "${runs[@]}" || failed=1
printf 'took %d s; run folders and %s lie in %s\n' $((SECONDS - began)) summary.json "${out#"$root"/}"
exit $failed
