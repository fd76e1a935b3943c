#!/bin/bash
# fence.sh PROGRAM PLUGIN-PATH JSON: bench_fence with 1, 2, 4 and 8 agents, as a table and a JSON file.
# One agent a core is bound to it and, as root, runs before everything else: what is measured are
# agents that have a core, as MPI's polling does. More agents than cores are only reported.
set -u
program=$1 plugins=$2 json=$3
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
if ! command -v mpirun >/dev/null; then
    echo "bench/fence: mpirun is not installed" >&2
    exit 1
fi
first=()
if [ "$(id -u)" -eq 0 ] && chrt -f 1 true 2>/dev/null; then first=(chrt -f 1); fi
mkdir -p "$(dirname "$json")"
rows=()
for agents in ${ATTUNE_BENCH_AGENTS:-1 2 4 8}; do
    words=()
    if [ "$agents" -le "$(nproc)" ]; then
        words=("${first[@]}" env OMPI_MCA_hwloc_base_binding_policy=core)
    fi
    row=$(timeout 120 "${words[@]}" mpirun -np "$agents" "$program" "$plugins") || {
        echo "bench/fence: it failed with $agents agents" >&2
        exit 1
    }
    rows+=("$row")
done
{
    printf '{"version": 1, "attune": "%s", "units": "us", "rows": [\n' \
        "$(cat "$(dirname "$0")/../../VERSION")"
    for i in "${!rows[@]}"; do
        [ "$i" -eq 0 ] || printf ',\n'
        printf ' %s' "${rows[$i]}"
    done
    printf '\n]}\n'
} >"$json"
echo "# a switch over several agents against MPI_Bcast + MPI_Allreduce of its bytes"
echo "# target, at most one agent a core: switch <= 2 x pair + 20 us"
printf '%6s %9s %10s %10s %10s %10s %10s %10s %8s %8s %8s\n' agents switches commit switch p95 pair p95 bound waited steady waited
printf '%6s %9s %10s %10s %10s %10s %10s %10s %8s %8s %8s\n' '' '' '(us)' '(us)' '(us)' '(us)' '(us)' '(us)' '(calls)' '(calls)' '(calls)'
for row in "${rows[@]}"; do
    awk -v row="$row" 'function field(k,  s) { match(row, "\"" k "\": [0-9.]+"); s = substr(row, RSTART, RLENGTH)
            sub(/.*: /, "", s); return s }
        BEGIN { printf "%6d %9d %10.1f %10.1f %10.1f %10.1f %10.1f %10.1f %8d %8d %8d\n", field("agents"), field("switches"),
            field("commit_us"), field("switch_us"), field("switch_us_p95"), field("pair_us"),
            field("pair_us_p95"), field("bound_us"), field("calls_waited"),
            field("steady_calls"), field("steady_waited") }'
done
