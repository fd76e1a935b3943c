# companion.sh: what the job scripts here have in common. To be sourced by bash inside a Slurm
# allocation (sbatch or salloc), with the command attune in PATH:
#
#     . "$(attune slurm --jobs)/companion.sh" || exit
#     attune_begin --max-cost 2%                # the sidecar, one agent a node; options of attuned
#     attune_run "${attune_step[@]}" ./train    # the application: an srun, or anything else
#     status=$?
#     attune_end                                # the sidecar goes, its segments too
#     exit $status                              # the application's exit status wins
#
# attune_step holds "srun -J application -K ..." as this Slurm wants it; options may follow. -K ends a
# step whose rank has failed: without it the others may wait for ever.
#
# ATTUNE_RUN_DIR  folder of the results; attune-<job id> where the script runs when not set
# ATTUNE_RUN_ID   name of the run; the job id when not set
#
# Whatever ends the script, attune_end is called. An interrupt (Ctrl-C under salloc) is passed on to
# the application. scancel and the time limit signal all steps by themselves.

attune_lines=$(attune slurm --shell) || return 1
eval "$attune_lines"
unset attune_lines
if [ -z "${SLURM_JOB_ID:-}" ] || [ -z "${SLURM_JOB_NUM_NODES:-}" ]; then
    echo "attune: error: companion.sh is for a Slurm allocation: use sbatch or salloc" >&2
    return 2
fi
ulimit -c 0 # a killed rank leaves no core file
export ATTUNE_RUN_ID=${ATTUNE_RUN_ID:-$SLURM_JOB_ID}
export ATTUNE_RUN_DIR=${ATTUNE_RUN_DIR:-$PWD/attune-$ATTUNE_RUN_ID}
attune_agents=  # process id of the sidecar's srun
attune_command= # of the application in the foreground

# attune_await PID: the exit status of a child, also when a signal with a trap breaks the wait.
attune_await() {
    local status again
    while :; do
        wait "$1"
        status=$?
        kill -0 "$1" 2>/dev/null || break
    done
    wait "$1" 2>/dev/null
    again=$?
    [ $again -eq 127 ] || status=$again
    return $status
}

# attune_begin [OPTION...]: start the sidecar beside whatever runs or will run in this allocation.
attune_begin() {
    mkdir -p "$ATTUNE_RUN_DIR" || return
    "${attune_sidecar[@]}" "$attune_attuned" --run-dir "$ATTUNE_RUN_DIR" "$@" </dev/null &
    attune_agents=$!
}

# attune_run COMMAND...: run it and return its exit status.
attune_run() {
    local status
    "$@" <&0 &
    attune_command=$!
    attune_await $attune_command
    status=$?
    attune_command=
    return $status
}

attune_interrupted() { # srun wants it twice within a second
    [ -z "$attune_command" ] || kill -INT "$attune_command" 2>/dev/null
    sleep 0.1
    [ -z "$attune_command" ] || kill -INT "$attune_command" 2>/dev/null
}

# attune_gone PID SECONDS: wait that long for it to end.
attune_gone() {
    local turns=$(($2 * 10))
    while kill -0 "$1" 2>/dev/null; do
        [ $turns -gt 0 ] || return 1
        turns=$((turns - 1))
        sleep 0.1
    done
}

# attune_end: stop the sidecar. USR1 is passed on by srun and mpirun to all agents, which write their
# last report, remove the segments and end with 0. Agents that do not answer are killed, and what they
# leave is removed.
attune_end() {
    local status
    [ -n "$attune_agents" ] || return 0
    kill -USR1 "$attune_agents" 2>/dev/null
    attune_gone "$attune_agents" 10 || kill -TERM "$attune_agents" 2>/dev/null
    attune_gone "$attune_agents" 10 || kill -KILL "$attune_agents" 2>/dev/null
    attune_await "$attune_agents"
    status=$?
    attune_agents=
    [ $status -ne 0 ] || return 0
    echo "attune: warning: the sidecar ended with status $status; the application was not harmed" >&2
    # Not possible any more when the job itself is being ended: then the agents have done it.
    timeout 20 srun -J attune-clean $attune_overlap -N "$SLURM_JOB_NUM_NODES" \
        -n "$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 --gres=none --mem=0 --mpi=none \
        sh -c 'rm -f "${ATTUNE_SHM_DIR:-/dev/shm}/attune-$(id -u)-$ATTUNE_RUN_ID"*' >/dev/null 2>&1
    return 0
}

trap : TERM USR1 USR2 HUP
trap attune_interrupted INT
trap 'attune_status=$?; attune_end; exit $attune_status' EXIT
