# bats file_tags=mpi
# Several agents: groups inside one node are tuned, groups over two are observed and refused.
load setup

ranks() { "$ATTUNE_BUILD/tests/test_ranks" "$@"; }

# start_agents N OPTION...: a sidecar of N agents, nodes n0..n(N-1) of one machine.
start_agents() {
    local count=$1 i words=()
    shift
    for ((i = 0; i < count; i++)); do
        [ "$i" -eq 0 ] || words+=(:)
        words+=(-np 1 -x "ATTUNE_NODE=n$i" attuned "$@")
    done
    mpirun "${words[@]}" >agents.log 2>&1 &
    agents=$!
    wait_for 15 segments "$count"
}
segments() { [ "$(ls "$ATTUNE_SHM_DIR" | wc -l)" -ge "$1" ]; }

hooked() {
    export NCCL_TUNER_PLUGIN=$ATTUNE_BUILD/lib/libattune-nccl.so
    export NCCL_PROFILER_PLUGIN=$NCCL_TUNER_PLUGIN NCCL_RUNTIME_CONNECT=0
    "$@"
}
stop_agents() {
    kill -TERM "$agents"
    wait "$agents" || true
}

@test "a group over two agents is observed, and refused tuning with one line" {
    command -v mpirun >/dev/null || skip "mpirun is not installed"
    export ATTUNE_RUN_ID=two
    start_agents 2 --run-dir "$CASE_DIR/run" --strategy random:trials=10 --max-cost 0
    run hooked ranks 4 2 800 262144
    expect_status 0
    sleep 1.2
    stop_agents
    output=$(cat agents.log)
    [ "$(grep -c 'spans 2 nodes' agents.log)" -ge 1 ] || fail "no line about the two nodes"
    output=$(cat run/tasks.json)
    expect_output '"phase": "observed"'
    expect_output '"ranks": 4'
    expect_output '"switches": 0'
    reject_output '"calls_seen": 0[,}]'
}

@test "with two agents a group inside one node is tuned" {
    command -v mpirun >/dev/null || skip "mpirun is not installed"
    export ATTUNE_RUN_ID=one
    start_agents 2 --run-dir "$CASE_DIR/run" --strategy random:trials=10 --max-cost 0
    run hooked ranks 2 1 3000 262144
    expect_status 0
    stop_agents
    output=$(cat run/tasks.json)
    expect_output '"phase": "(settled|final|guard|search)"'
    reject_output '"switches": 0[,}]'
}

@test "a second sidecar on the same segment is refused with one line" {
    export ATTUNE_RUN_ID=twice ATTUNE_NODE=n0
    attuned --run-dir "$CASE_DIR/run" 2>first.log &
    local first=$!
    wait_for 15 segments 1
    run --separate-stderr timeout 20 attuned --run-dir "$CASE_DIR/other"
    [ "$status" -ne 0 ] || fail "the second one runs"
    expect_one_line 'another sidecar serves'
    kill -TERM $first
    wait $first
}
