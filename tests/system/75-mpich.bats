# bats file_tags=long
# The sidecar with another MPI: attuned built with Debian's MPICH, in a build folder of its own.
load setup

MPICH_BUILD=$ATTUNE_ROOT/build/mpich
setup() {
    attune_setup
    command -v mpicc.mpich >/dev/null || skip "mpicc.mpich is not installed (libmpich-dev)"
    command -v mpiexec.mpich >/dev/null || skip "mpiexec.mpich is not installed (mpich)"
    export NCCL_TUNER_PLUGIN=$ATTUNE_BUILD/lib/libattune-nccl.so
    export NCCL_PROFILER_PLUGIN=$NCCL_TUNER_PLUGIN NCCL_RUNTIME_CONNECT=0
    attuned=$MPICH_BUILD/bin/attuned
}

ranks() { "$ATTUNE_BUILD/tests/test_ranks" "$@"; }
segments() { [ "$(ls "$ATTUNE_SHM_DIR" | wc -l)" -eq "$1" ]; }
needs_build() { [ -x "$attuned" ] || fail "it was not built"; }

@test "it builds with MPICH" {
    "$ATTUNE_ROOT/cmake/build-preset" mpich -DATTUNE_TESTS=OFF
    run "$attuned" --version
    expect_status 0
    expect_output '^attuned [0-9.]+ \(MPICH [0-9.]+\)$'
    ldd "$attuned" | grep -q libmpich
    ! ldd "$attuned" | grep -q 'libmpi\.so' || fail "Open MPI's library is in it too"
}

@test "alone, without mpiexec: a group is tuned" {
    needs_build
    export ATTUNE_RUN_ID=alone ATTUNE_NODE=n0
    "$attuned" --run-dir "$CASE_DIR/run" --strategy random:trials=10 --max-cost 0 &
    local agent=$!
    wait_for 15 segments 1
    run ranks 2 1 3000 262144
    expect_status 0
    kill -USR1 $agent
    wait $agent
    output=$(cat run/tasks.json)
    expect_output '"state": "finished"'
    reject_output '"switches": 0[,}]'
}

@test "two agents by mpiexec: a group inside one node is tuned, one over both is seen" {
    needs_build
    export ATTUNE_RUN_ID=two
    mpiexec.mpich -n 1 -env ATTUNE_NODE n0 "$attuned" --run-dir "$CASE_DIR/run" --max-cost 0 \
        --strategy random:trials=10 : -n 1 -env ATTUNE_NODE n1 "$attuned" --max-cost 0 \
        --strategy random:trials=10 >agents.log 2>&1 &
    local launcher=$!
    wait_for 15 segments 2
    run ranks 2 1 3000 262144
    expect_status 0
    run ranks 4 2 800 262144
    expect_status 0
    sleep 1.2
    pkill -USR1 -P "$(pgrep -P $launcher | head -n 1)"
    wait $launcher || fail "$(cat agents.log)"
    jq -e '.state == "finished"' run/tasks.json
    jq -e '[.tasks[] | select(.ranks == 2 and .switches > 0)] | length > 0' run/tasks.json
    jq -e '[.tasks[] | select(.ranks == 4 and .calls_seen > 0)] | length > 0' run/tasks.json
}

@test "attune run with this sidecar" {
    needs_build
    unset NCCL_TUNER_PLUGIN NCCL_PROFILER_PLUGIN
    run "$MPICH_BUILD/bin/attune" run --fabric real --run-dir run --max-cost 0 \
        --strategy random:trials=5 -- "$MPICH_BUILD/bin/attune" bench allreduce -b 64K -e 64K -t 2 -n 1500
    expect_status 0
    jq -e '[.tasks[] | select(.switches > 0)] | length > 0' run/tasks.json
}
