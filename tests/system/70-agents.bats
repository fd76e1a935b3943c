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
# agent_of NODE: the process id of that node's agent.
agent_of() {
    local pid
    for pid in $(pgrep -P "$agents" attuned); do
        ! tr '\0' '\n' <"/proc/$pid/environ" | grep -qx "ATTUNE_NODE=$1" || echo "$pid"
    done
}
stop_agents() {
    kill -TERM "$agents"
    wait "$agents" || true
}

# tuned SWITCHES: no task in run/tasks.json was refused, there were at least so many switches, and no call
# stayed in doubt. A mismatch between ranks fails the job itself: the host fabric compares.
tuned() {
    output=$(cat run/tasks.json)
    reject_output '"phase": "(new|native|observed|refused|baseline)"'
    [ "$(grep -o '"switches": [0-9]*' run/tasks.json | awk '{ n += $2 } END { print n }')" -ge "$1" ] ||
        fail "fewer than $1 switches"
    expect_output '"in_doubt": 0[,}]'
}

# layout AGENTS RANKS LAYOUT [CALLS]: such a job is tuned, with all of its ranks seen.
layout() {
    command -v mpirun >/dev/null || skip "mpirun is not installed"
    export ATTUNE_RUN_ID=layout
    start_agents "$1" --run-dir "$CASE_DIR/run" --strategy random:trials=5 --max-cost 0
    run hooked "$ATTUNE_BUILD/tests/test_layout" "$2" "$1" "${4:-2500}" 65536 "$3"
    expect_status 0
    sleep 1.2
    stop_agents
    tuned 1
    expect_output "\"ranks\": $2[,}]"
    expect_output "\"processes\": $2[,}]"
}

@test "a group over two agents is tuned, and all ranks switch at the same calls" {
    layout 2 4 block
}

@test "seven ranks on one node and eight on the other" { layout 2 15 7+8; }

@test "rank 0 alone on the first node, eight on the other" { layout 2 9 1+8; }

@test "eight ranks on the first node, none on the other" { layout 2 8 8+0; }

@test "ranks dealt out to four nodes one by one" { layout 4 7 robin; }

sidecar_ended() { ! kill -0 "$agents" 2>/dev/null; }

# Sixty trials are four lists at least, with the baseline before them: a search that finds no winner at
# once comes to the fourth switch too.
many_switches=random:trials=60

# bats test_tags=long
@test "127, 128 and 129 ranks on three nodes, one by one, uneven and in blocks" {
    export ATTUNE_FABRIC_MODE=model ATTUNE_FABRIC_ANY_RANKS=1 ATTUNE_FABRIC_SURFACE=a40-nvlink-16-allreduce
    local ranks
    for ranks in 127:robin 128:64+63+1 129:43+43+43; do
        layout 3 "${ranks%:*}" "${ranks#*:}" 1000
        rm -rf run
    done
}

@test "an agent killed at a step of either node: the job ends well, without a sidecar" {
    command -v mpirun >/dev/null || skip "mpirun is not installed"
    local fault
    for fault in prepared:3:kill:n1 answered:4:kill:n1 recorded:3:kill:n1 committed:3:kill:n0 \
        told:4:kill:n0; do
        rm -rf run steps "${ATTUNE_SHM_DIR:?}"/*
        export ATTUNE_RUN_ID=dead-${fault%%:*} ATTUNE_FAULT=$fault
        start_agents 2 --run-dir "$CASE_DIR/run" --strategy $many_switches --max-cost 0 \
            --wait-ms 200 --debug-steps "$CASE_DIR/steps"
        unset ATTUNE_FAULT
        run hooked timeout -k 5 60 "$ATTUNE_BUILD/tests/test_layout" 4 2 2500 65536
        expect_status 0
        wait_for 30 sidecar_ended || fail "the sidecar lives on after $fault: $(tail steps)"
        wait "$agents" && fail "the sidecar ended well after $fault"
        [ "$(grep -c "step=${fault%%:*} " steps)" -ge 3 ] || fail "never came to $fault"
    done
}

@test "an agent that stops with a switch pending costs a rank of the other node one wait" {
    command -v mpirun >/dev/null || skip "mpirun is not installed"
    export ATTUNE_RUN_ID=stopped ATTUNE_FAULT=committed:3:stop:n0
    start_agents 2 --run-dir "$CASE_DIR/run" --strategy $many_switches --max-cost 0 --wait-ms 200
    unset ATTUNE_FAULT
    # The home word says COMMITTED and nobody was told: the ranks of the other node learn it from rank 0's
    # process, and all ranks run the list.
    export ATTUNE_DEBUG_STEPS=$CASE_DIR/ranks
    run hooked timeout -k 5 60 "$ATTUNE_BUILD/tests/test_layout" 4 2 2500 65536
    expect_status 0
    output=$(cat ranks)
    expect_output 'step=resolving'
    expect_output 'step=resolved'
    pkill -CONT -P "$agents" attuned || true
    stop_agents
}

@test "communicators that come and go: the old groups are retired, the new ones tuned" {
    command -v mpirun >/dev/null || skip "mpirun is not installed"
    export ATTUNE_RUN_ID=again
    start_agents 2 --run-dir "$CASE_DIR/run" --strategy random:trials=5 --max-cost 0 \
        --debug-steps "$CASE_DIR/steps"
    run hooked "$ATTUNE_BUILD/tests/test_layout" 4 2 2500 65536 block 2
    expect_status 0
    # An elastic restart: new processes, same run id, same sidecar.
    run hooked "$ATTUNE_BUILD/tests/test_layout" 4 2 2500 65536
    expect_status 0
    sleep 1.2
    stop_agents
    tuned 1
    [ "$(grep -c '"group":' run/tasks.json)" -eq 3 ] || fail "not three groups"
    [ "$(grep -c step=dropped steps)" -eq 3 ] || fail "the registry keeps groups that are gone"
    expect_output '"processes": 8[,}]'
}

@test "what the second agent tries is in the run folder of the first one, before it is voted on" {
    command -v mpirun >/dev/null || skip "mpirun is not installed"
    export ATTUNE_RUN_ID=second
    start_agents 2 --run-dir "$CASE_DIR/run" --strategy random:trials=5 --max-cost 0
    run hooked "$ATTUNE_BUILD/tests/test_layout" 4 2 8000 65536 0+4
    expect_status 0
    stop_agents
    # Its tasks are numbered from 2048 on; every list has its end, but one that the job's end cut off.
    local lists overs
    lists=$(grep -c '"task":2048,.*"entries"' run/lists.jsonl)
    overs=$(grep -c '"task":2048,.*"over"' run/lists.jsonl)
    [ "$lists" -ge 2 ] || fail "$lists lists"
    [ $((lists - overs)) -le 1 ] || fail "$lists lists, $overs ends"
    [ "$(grep -c '"phase":"search"' run/trials.jsonl)" -ge 1 ] || fail "no trials"
    grep -q '"samples_us":\[[0-9]' run/trials.jsonl || fail "trials without samples"
    # What was in force when the second agent died is not tried again.
    export ATTUNE_RUN_ID=died ATTUNE_FAULT=committed:3:kill:n1
    rm -rf run
    start_agents 2 --run-dir "$CASE_DIR/run" --strategy random:trials=20 --max-cost 0
    unset ATTUNE_FAULT
    run hooked timeout -k 5 60 "$ATTUNE_BUILD/tests/test_layout" 4 2 2500 65536 0+4
    expect_status 0
    wait "$agents" && fail "the sidecar ended well"
    [ "$(grep -c '"entries"' run/lists.jsonl)" -eq $(($(grep -c '"over"' run/lists.jsonl) + 1)) ] ||
        fail "not one list in force: $(cut -c1-60 run/lists.jsonl)"
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

@test "an agent without a last report is named at the end" {
    command -v mpirun >/dev/null || skip "mpirun is not installed"
    export ATTUNE_RUN_ID=silent
    start_agents 2 --run-dir "$CASE_DIR/run" --observe
    local first second
    first=$(agent_of n0)
    second=$(agent_of n1)
    run hooked ranks 4 2 1000 4096 500
    expect_status 0
    kill -STOP "$second"
    kill -TERM "$first"
    wait_for 10 grep -q 'another agent sent no last report' agents.log || fail "$(cat agents.log)"
    kill -CONT "$second"
    stop_agents
}

@test "each settled task of each agent is in the run folder with its own reason" {
    command -v mpirun >/dev/null || skip "mpirun is not installed"
    export ATTUNE_RUN_ID=reasons ATTUNE_LOG=info RANKS_SIZES=3 RANKS_NODE
    start_agents 2 --run-dir "$CASE_DIR/run" --strategy random:trials=5 --max-cost 0 --watch 0
    for RANKS_NODE in 0 1; do
        run hooked ranks 2 1 30000 2800
        expect_status 0
    done
    sleep 1.2
    stop_agents
    local group bytes reason settled=0
    while IFS=$'\t' read -r group bytes reason; do
        grep "allreduce $bytes of group $group: " agents.log | grep -qF "($reason), " ||
            fail "'$reason' of $group, $bytes bytes: $(cat agents.log)"
        settled=$((settled + 1))
    done < <(jq -r '.tasks[] | select(.phase == "settled") | [.group, .bytes, .reason] | @tsv' run/tasks.json)
    [ "$settled" -ge 2 ] || fail "$settled tasks settled: $(cat run/tasks.json agents.log)"
}

@test "more tasks than one segment holds, over three agents: all are in the run folder" {
    command -v mpirun >/dev/null || skip "mpirun is not installed"
    export ATTUNE_RUN_ID=many RANKS_SIZES=700 RANKS_NODE
    start_agents 3 --run-dir "$CASE_DIR/run" --observe
    for RANKS_NODE in 0 1 2; do
        run hooked ranks 2 1 2100 2800 300
        expect_status 0
    done
    sleep 1.2
    stop_agents
    [ "$(grep -c '"collective"' run/tasks.json)" -eq 2100 ] || fail "$(grep -c '"collective"' run/tasks.json) tasks"
    [ "$(grep -c '^attune_task_calls_total' run/metrics.prom)" -eq 2100 ] ||
        fail "$(grep -c '^attune_task_calls_total' run/metrics.prom) tasks in the metrics"
    # The first of the last files: mpirun gives the end a second.
    [ ! run/tasks.json -nt run/metrics.prom ] || fail "$(stat -c '%n %y' run/*)"
    run attune top --once run
    expect_output '2100 tasks'
}

# bench_agent exits well only when every call and record has exactly one fate (its sums), without an idle minute.
records() {
    command -v mpirun >/dev/null || skip "mpirun is not installed"
    local folder=$ATTUNE_SHM_DIR
    run env ATTUNE_BENCH_IDLE_S="${idle:-0}" ATTUNE_BENCH_RATE="$1" timeout 60 bench_agent \
        "$ATTUNE_BUILD/lib/libattune-nccl.so" "$(command -v attuned)" "$CASE_DIR/agent.json"
    expect_status 0
    ATTUNE_SHM_DIR=$folder
}
count() { grep -o "\"$1\": [0-9.-]*" agent.json | tail -n 1 | sed 's/.*: //; s/\..*//'; }

# bats test_tags=long
@test "with two agents every record is in a whole call or counted, and an idle agent does not poll" {
    idle=3 records 100000
    [ "$(count drained)" -gt 50000 ] || fail "$(count drained) records"
    # A busy wait takes a whole core, or all that it gets of one. An idle agent looks a hundred times a second.
    [ "$(grep -o '"most_share": [0-9.e-]*' agent.json | awk '{ print ($2 < 0.05) }')" -eq 1 ] ||
        fail "$(grep most_share agent.json)"
}

# bats test_tags=long
@test "an agent that is stopped: no record is lost uncounted, and nobody's memory grows by it" {
    export ATTUNE_BENCH_STOP_S=1 ATTUNE_BENCH_STOP
    for ATTUNE_BENCH_STOP in 0 1; do
        records 100000
        [ "$(count drained)" -gt 50000 ] || fail "$(count drained) records"
        [ "$(count grown_kib)" -lt 8192 ] || fail "$(count grown_kib) KiB"
        # What the one above did not take.
        [ "$ATTUNE_BENCH_STOP" -eq 1 ] || [ "$(count unsent)" -gt 0 ] || fail "nothing was held back"
    done
}

# bats test_tags=long
@test "training processes killed again and again: their entries are used again, the last job is tuned" {
    command -v mpirun >/dev/null || skip "mpirun is not installed"
    export ATTUNE_RUN_ID=killed
    start_agents 2 --run-dir "$CASE_DIR/run" --strategy random:trials=5 --max-cost 0
    local job round
    # 5 times 16 a node: more than the 64 processes that a segment holds.
    for round in 1 2 3 4 5; do
        setsid env NCCL_TUNER_PLUGIN="$ATTUNE_BUILD/lib/libattune-nccl.so" NCCL_RUNTIME_CONNECT=0 \
            NCCL_PROFILER_PLUGIN="$ATTUNE_BUILD/lib/libattune-nccl.so" \
            "$ATTUNE_BUILD/tests/test_layout" 32 2 1000000 4096 >/dev/null 2>&1 &
        job=$!
        sleep 1.5
        kill -KILL -- -"$job"
        wait "$job" || true
        sleep 2.5 # two looks of the agents, one second apart
    done
    run hooked "$ATTUNE_BUILD/tests/test_layout" 4 2 2500 65536
    expect_status 0
    sleep 1.2
    stop_agents
    output=$(grep -A8 '"ranks": 4,' run/tasks.json)
    expect_output '"phase": "(settled|final|guard|search|ended)"'
    output=$(cat run/tasks.json)
    expect_output '"processes": 164[,}]'
    [ "$(grep -A15 '"ranks": 4,' run/tasks.json | grep -o '"switches": [0-9]*' | awk '{ print $2 }')" -ge 1 ] ||
        fail "the last job was not tuned"
}

# kinds RANKS NODES TENSOR PIPELINE ITERATIONS GROUPS: such a job, every group of which comes within 2 % of
# the optimum of the surface.
kinds() {
    command -v mpirun >/dev/null || skip "mpirun is not installed"
    export ATTUNE_RUN_ID=kinds
    start_agents "$2" --run-dir "$CASE_DIR/run" --max-cost 0 --strategy default --max-channels 16
    export ATTUNE_FABRIC_MODE=model ATTUNE_FABRIC_ANY_RANKS=1
    export ATTUNE_FABRIC_SURFACE=a40-nvlink-16-allreduce
    run hooked "$ATTUNE_BUILD/tests/test_parallel" "$1" "$2" "$3" "$4" "$5"
    expect_status 0
    sleep 1.2
    stop_agents
    run "$ATTUNE_BUILD/tests/test_optimum" "$ATTUNE_FABRIC_SURFACE" run/tasks.json 0.02
    expect_status 0
    [ "$(grep -c '^ok' <<<"$output")" -eq "$6" ] || fail "not $6 groups"
}

# bats test_tags=long
@test "three overlapping kinds of groups on four nodes come near the surface's optimum" {
    kinds 16 4 2 2 7000 20
}

# bats test_tags=whole
@test "64 ranks on four nodes, three overlapping kinds of groups, come near the surface's optimum" {
    kinds 64 4 8 2 9000 56
}
