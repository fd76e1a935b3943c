#!/bin/bash
# Several nodes without Slurm: the sidecar, one agent a node, and the application, both by mpirun.
#     mpirun.sh HOSTS MPIRUN-OPTION... -- ./train ARGUMENT...
#     mpirun.sh node1:8,node2:8 -n 16 -- ./train
# HOSTS as for mpirun --host. Open MPI; for MPICH see `attune slurm mpirun`.
hosts=${1:-}
options=()
shift
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    options+=("$1")
    shift
done
if [ -z "$hosts" ] || [ $# -lt 2 ]; then
    echo "usage: mpirun.sh HOST[:SLOTS],... [MPIRUN OPTION...] -- COMMAND [ARGUMENT...]" >&2
    exit 2
fi
shift
lines=$(attune slurm --shell mpirun) || exit
eval "$lines"
export ATTUNE_RUN_ID=${ATTUNE_RUN_ID:-attune$$-$RANDOM}
export ATTUNE_RUN_DIR=${ATTUNE_RUN_DIR:-$PWD/attune-$ATTUNE_RUN_ID}
mkdir -p "$ATTUNE_RUN_DIR" || exit
pass=()
for variable in ATTUNE_RUN_ID ATTUNE_RUN_DIR ATTUNE_SHM_DIR ATTUNE_LOG ATTUNE_GRAPHS NCCL_TUNER_PLUGIN \
    NCCL_PROFILER_PLUGIN NCCL_RUNTIME_CONNECT LD_PRELOAD LD_LIBRARY_PATH; do
    [ -z "${!variable+set}" ] || pass+=(-x "$variable")
done
mpirun --host "$hosts" --map-by ppr:1:node --bind-to none "${pass[@]}" \
    "$attune_attuned" --run-dir "$ATTUNE_RUN_DIR" </dev/null &
sidecar=$!
# Two mpiruns that start at the same moment race for Open MPI's session folder on each node: the
# application starts once the sidecar is up, which it shows by its files, or has ended, or after 10 s.
for ((turns = 0; turns < 100; turns++)); do
    [ ! -e "$ATTUNE_RUN_DIR/trials.jsonl" ] && kill -0 $sidecar 2>/dev/null || break
    sleep 0.1
done
stop() {
    local turns status
    kill -USR1 $sidecar 2>/dev/null # mpirun passes it on to all agents
    for ((turns = 0; turns < 100; turns++)); do
        kill -0 $sidecar 2>/dev/null || break
        sleep 0.1
    done
    [ $turns -lt 100 ] || kill -TERM $sidecar
    wait $sidecar
    status=$?
    [ $status -eq 0 ] || echo "attune: warning: the sidecar ended with status $status" >&2
}
trap 'kill -TERM $application 2>/dev/null' INT TERM
mpirun --host "$hosts" "${pass[@]}" "${options[@]}" "$@" <&0 &
application=$!
while wait $application; status=$?; kill -0 $application 2>/dev/null; do :; done
stop
exit $status
