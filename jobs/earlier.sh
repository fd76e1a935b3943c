#!/bin/bash
# The sidecar in a job of its own, which is there before the application's job on the same nodes, and
# outlives it or several such jobs. Both jobs share the nodes: the partition must allow that
# (OverSubscribe=YES) or have processors to spare for one task a node.
#     earlier.sh NODES SCRIPT [ARGUMENT...]
# SCRIPT is a batch script of yours; attune's hook reaches it by the environment. The exit status is
# the script's. SIDECAR_OPTIONS and APPLICATION_OPTIONS are further options for the two sbatch.
if [ $# -lt 2 ] || ! [[ $1 =~ ^[1-9][0-9]*$ ]]; then
    echo "usage: earlier.sh NODES SCRIPT [ARGUMENT...]" >&2
    exit 2
fi
nodes=$1
shift
lines=$(attune slurm --shell) || exit
eval "$lines" # exports the hook's variables
export ATTUNE_RUN_ID=${ATTUNE_RUN_ID:-attune$$-$RANDOM}
export ATTUNE_RUN_DIR=${ATTUNE_RUN_DIR:-$PWD/attune-$ATTUNE_RUN_ID}
mkdir -p "$ATTUNE_RUN_DIR" || exit

sidecar=$(sbatch --parsable -J attuned -N "$nodes" --ntasks-per-node=1 --no-requeue \
    -o "$ATTUNE_RUN_DIR/attuned-%j.log" ${SIDECAR_OPTIONS:-} <<'END'
#!/bin/bash
lines=$(attune slurm --shell) || exit
eval "$lines"
trap : USR1
"${attune_sidecar[@]}" "$attune_attuned" --run-dir "$ATTUNE_RUN_DIR" &
while wait $!; status=$?; kill -0 $! 2>/dev/null; do :; done
exit $status
END
) || exit
sidecar=${sidecar%%;*}
stop() {
    scancel -s USR1 "$sidecar" 2>/dev/null # the agents end well, the job is COMPLETED
}
trap stop EXIT
trap 'exit 130' INT TERM
while :; do
    state=$(squeue -h -j "$sidecar" -o %T 2>/dev/null)
    case $state in
    RUNNING) break ;;
    PENDING | CONFIGURING) sleep "${POLL_SECONDS:-2}" ;;
    *)
        echo "attune: error: the sidecar's job $sidecar is ${state:-gone}; see $ATTUNE_RUN_DIR" >&2
        exit 1
        ;;
    esac
done
list=$(squeue -h -j "$sidecar" -o %N)
sbatch --wait -J application -N "$nodes" -w "$list" --no-requeue ${APPLICATION_OPTIONS:-} "$@"
exit $?
