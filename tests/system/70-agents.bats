# bats file_tags=mpi
# Several agents: groups over several nodes are tuned, groups inside one node as if they were alone.
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

# settled SWITCHES: every task in run/tasks.json was tuned to an end, with at least so many switches, and
# no rank waited in doubt. A mismatch between ranks fails the job itself: the host fabric compares.
settled() {
    output=$(cat run/tasks.json)
    reject_output '"phase": "(new|native|observed|refused|baseline)"'
    expect_output '"phase": "settled"'
    [ "$(grep -o '"switches": [0-9]*' run/tasks.json | awk '{ n += $2 } END { print n }')" -ge "$1" ] ||
        fail "fewer than $1 switches"
    expect_output '"in_doubt": 0[,}]'
}

@test "a group over two agents is tuned, and all ranks switch at the same calls" {
    command -v mpirun >/dev/null || skip "mpirun is not installed"
    export ATTUNE_RUN_ID=two
    start_agents 2 --run-dir "$CASE_DIR/run" --strategy random:trials=10 --max-cost 0
    run hooked ranks 4 2 3000 262144
    expect_status 0
    sleep 1.2
    stop_agents
    settled 1
    output=$(cat run/tasks.json)
    expect_output '"ranks": 4[,}]'
    expect_output '"processes": 4[,}]'
}

@test "seven ranks over four agents, and only rank 0 on the first node" {
    command -v mpirun >/dev/null || skip "mpirun is not installed"
    export ATTUNE_RUN_ID=four
    start_agents 4 --run-dir "$CASE_DIR/run" --strategy random:trials=5 --max-cost 0
    run hooked ranks 7 4 3000 65536
    expect_status 0
    sleep 1.2
    stop_agents
    settled 1
    output=$(cat run/tasks.json)
    expect_output '"processes": 7[,}]'
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
