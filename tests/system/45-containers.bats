# Sidecar and job in mount and pid namespaces of their own, as in containers.
load setup

setup() {
    attune_setup
    reason=$(unshare "${user[@]}" --mount --pid --fork --mount-proc mount -t tmpfs tmpfs /dev/shm 2>&1) ||
        skip "this machine gives us no namespaces: $reason"
    unset ATTUNE_SHM_DIR
    export ATTUNE_RUN_ID=boxed NCCL_TUNER_PLUGIN=$ATTUNE_BUILD/lib/libattune-nccl.so
    export NCCL_PROFILER_PLUGIN=$NCCL_TUNER_PLUGIN NCCL_RUNTIME_CONNECT=0
    mkdir shared
}
user=()
[ "$(id -u)" -eq 0 ] || user=(--user --map-root-user)

# box COMMAND...: in a mount and pid namespace of its own, with a /dev/shm of its own.
box() {
    exec unshare "${user[@]}" --mount --pid --fork --kill-child --mount-proc sh -c \
        'mount -t tmpfs -o mode=1777 tmpfs /dev/shm && exec "$@"' box "$@"
}
job() { (LD_LIBRARY_PATH=$ATTUNE_BUILD/fabric box attune bench allreduce -b 64K -e 64K -t 2 -n "${1:-3000}"); }
sidecar() { # SIGNALs go to attuned, not to the first process of its namespace's parent
    (box attuned --run-dir "$CASE_DIR/run" --strategy random:trials=5 --max-cost 0) \
        >agent.log 2>&1 3>&- &
    outer=$!
}
end_sidecar() {
    kill -USR1 "$(pgrep -P $outer)"
    wait $outer
}

@test "each with a /dev/shm of its own: the job says that it sees no sidecar, and why" {
    sidecar
    wait_for 15 grep -qs . run/tasks.json
    ATTUNE_LOG=info run --separate-stderr job 20
    expect_status 0
    end_sidecar
    output=$stderr
    expect_output 'no sidecar yet: no sidecar of this run is in /dev/shm as this process sees it: .*another mount namespace or container \(this one: mnt:\[[0-9]+\]'
    expect_output 'no sidecar came, nothing was tuned: .*ATTUNE_SHM_DIR=DIR on both sides'
    [ "$(jq '.tasks | length' run/tasks.json)" -eq 0 ]
    # Without being asked it says nothing.
    run --separate-stderr job 20
    expect_status 0
    [ -z "$stderr" ] || fail "it talks"
}

@test "ATTUNE_SHM_DIR in a folder that both see: a mapped file, and the job is tuned" {
    export ATTUNE_SHM_DIR=$PWD/shared
    sidecar
    wait_for 15 test -s "shared/attune-$(id -u)-boxed"
    run job
    expect_status 0
    end_sidecar
    jq -e '[.tasks[] | select(.switches > 0)] | length > 0' run/tasks.json
    [ "$(jq .coverage.dropped run/tasks.json)" = 0 ]
    [ -z "$(ls shared)" ] || fail "left: $(ls shared)"
}

@test "liveness across pid namespaces: a dead sidecar is noticed, a live job is not swept" {
    export ATTUNE_SHM_DIR=$PWD/shared
    sidecar
    wait_for 15 test -s "shared/attune-$(id -u)-boxed"
    job 60000 >job.log 2>&1 3>&- &
    local running=$!
    seen() { [ "$(jq '.tasks | length' run/tasks.json)" -gt 0 ]; }
    wait_for 15 seen
    kill -KILL $outer
    wait $outer || true
    # A new sidecar, in yet another namespace, finds the segment held by the job and takes over.
    sidecar
    wait $running
    end_sidecar
    ! grep -q 'replaced the stale' agent.log || fail "the job's segment was swept"
    [ -z "$(ls shared)" ] || fail "left: $(ls shared)"
}

@test "other run id, other node name: the job says which" {
    export ATTUNE_SHM_DIR=$PWD/shared
    sidecar
    wait_for 15 test -s "shared/attune-$(id -u)-boxed"
    ATTUNE_LOG=info ATTUNE_RUN_ID=another run job 20
    expect_status 0
    expect_output 'the sidecar here serves .*/shared/attune-[0-9]+-boxed, and this process wants attune-[0-9]+-another: the run ids \(ATTUNE_RUN_ID, else SLURM_JOB_ID\) differ'
    end_sidecar
}
