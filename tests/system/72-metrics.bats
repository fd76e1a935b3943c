# bats file_tags=mpi
# attune's own counters: Prometheus text in the run folder and on the loopback port.
load setup
load run-setup

# Unused now; somebody may take it before us, then the case says so.
free_port() {
    local port
    while port=$((20000 + RANDOM % 20000)); do
        (exec 7<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    echo "$port"
}

# get PORT PATH: the answer, head and all.
get() (
    exec 7<>"/dev/tcp/127.0.0.1/$1"
    printf 'GET %s HTTP/1.1\r\nHost: x\r\n\r\n' "$2" >&7
    timeout 10 cat <&7
)

# value FILE NAME: of the sample whose name and labels begin so.
value() { awk -v name="$2" 'index($0, name) == 1 { print $NF; exit }' "$1"; }

@test "promtool finds nothing wrong with attune's names, and the numbers are the run's" {
    needs_parts
    command -v promtool >promtool-path || skip 'promtool is not installed (Debian package prometheus)'
    model_run r --quiet
    expect_status 0
    run promtool check metrics <r/metrics.prom
    expect_status 0
    reject_output .
    [ "$(value r/metrics.prom attune_running)" = 0 ]
    [ "$(value r/metrics.prom attune_trials_total)" = "$(jq '.tasks[0].trials' r/tasks.json)" ]
    [ "$(value r/metrics.prom attune_decisions_total)" = "$(jq .coverage.decisions r/tasks.json)" ]
    [ "$(value r/metrics.prom attune_task_settled)" = "$(jq '.tasks[0].phase == "settled" | if . then 1 else 0 end' r/tasks.json)" ]
    # Bus bandwidth in bytes a second; summary.json has six digits.
    jq -e --arg best "$(grep 'bandwidth.*"best"' r/metrics.prom | sed 's/.* //')" \
        '.runs[0].tasks[0].tuned_busbw_gbs as $gbs | (($best | tonumber) / 1e9 / $gbs - 1) | fabs < 1e-5' \
        r/summary.json
    run cat r/nccl_inspector_metrics_*.prom
    expect_output '^nccl_bus_bandwidth_gbs\{version="v5.1",.*collective="AllGather",message_size="80M",algo_proto="Ring_'
    expect_output '^nccl_collective_exec_time_microseconds\{.*nranks="8"'
}

@test "a rank that keeps arriving last is told while the job runs, and nobody when all are in time" {
    needs_parts
    calls=200 model_run calm --quiet --observe
    expect_status 0
    # What is only observed has its bandwidth too.
    jq -e '.tasks[0] | .now.median_us > 0 and (has("late") | not)' calm/tasks.json
    run grep '^attune_task_bus_bandwidth' calm/metrics.prom
    expect_output '"now"\} [1-9]'
    reject_output '"best"'
    run attune run --fabric model --surface a40-nvlink-8-allgather --run-dir r --quiet --observe -- \
        attune bench allgather -b 80M -e 80M -t 8 -w 5 -c 0 -n 200 --delay 2:5:100:100000
    expect_status 0
    jq -e '.tasks[0].late | .rank == 2 and .late_us > 4000 and .late_us < 6000 and .share >= 0.8' r/tasks.json
    run grep '^attune_task_late_rank_seconds' r/metrics.prom
    expect_output 'rank="2"\} 0\.00[45]'
    run attune top --once r
    expect_output ' 2 \(\+[45]\.?[0-9]* ms\)$'
}

@test "the port answers while the job runs; clients that hang do no harm" {
    needs_parts
    port=$(free_port)
    mkfifo hold
    attune run --quiet --fabric model --surface a40-nvlink-8-allgather --run-dir r --max-cost 0 --metrics-port "$port" \
        --metrics-file "$PWD/own.prom" -- bash -c 'attune bench allgather -b 80M -e 80M -t 8 -w 5 -n 300 && cat hold' >log 2>&1 3>&- &
    job=$!
    wait_for 20 test -s own.prom
    hung=()
    for i in 1 2 3 4 5 6 7 8 9 10 11 12; do # more than are let in, and none of them says a word
        (exec 3>&- 7<>"/dev/tcp/127.0.0.1/$port" && exec sleep 3) &
        hung+=($!)
    done
    run get "$port" /metrics
    expect_output '^HTTP/1.1 200 OK'
    expect_output '^attune_running 1$'
    wait_for 10 grep -q '^attune_task_trials_total' own.prom
    run get "$port" /inspector
    expect_output '^# TYPE nccl_bus_bandwidth_gbs gauge'
    run get "$port" /etc/passwd
    expect_output '^HTTP/1.1 404 '
    echo >hold
    wait "$job"
    [ "$(value own.prom attune_running)" = 0 ]
    ls nccl_inspector_metrics_*.prom
    [ ! -e r/metrics.prom ]
    run get "$port" /metrics
    [ "$status" -ne 0 ] || fail 'somebody still listens'
    wait "${hung[@]}"
}

@test "a device as --metrics-file stays one, and nothing is put beside it" {
    needs_parts
    mkdir folder
    mknod folder/null c 1 3 || skip 'this user makes no devices'
    run attune run --quiet --fabric model --surface a40-nvlink-8-allgather --run-dir r --metrics-file "$PWD/folder/null" -- \
        attune bench allgather -b 4M -e 4M -t 8
    expect_status 0
    [ "$(stat -c %F folder/null)" = 'character special file' ] || fail 'replaced by a file'
    [ "$(ls -A folder)" = null ] || fail "beside it: $(ls -A folder)"
}

@test "a link as --metrics-file is refused: others may lead it elsewhere" {
    needs_parts
    ln -s elsewhere link
    run --separate-stderr attune run --run-dir r --metrics-file "$PWD/link" -- true
    expect_status 125
    [[ $stderr == *"link is a link, which a file would replace: name the file that it leads to"* ]] || fail "$stderr"
    [ -L link ] && [ ! -e elsewhere ]
}

@test "a port that is taken and a file that cannot be written are refused before the job begins" {
    needs_parts
    port=$(free_port)
    mkfifo hold
    attune run --quiet --fabric model --surface a40-nvlink-8-allgather --run-dir first --metrics-port "$port" -- cat hold 3>&- &
    job=$!
    wait_for 20 get "$port" /metrics >answer
    run --separate-stderr attune run --run-dir r --metrics-port "$port" -- touch ran
    expect_status 125
    expect_one_line "127.0.0.1:$port.*--metrics-port"
    run --separate-stderr attune run --run-dir q --metrics-file "$PWD/no/such/folder/a.prom" -- touch ran
    expect_status 125
    expect_one_line 'no/such/folder/.*No such file'
    [ ! -e ran ]
    run --separate-stderr attune run --metrics-port 65536 -- touch ran
    expect_status 125
    expect_one_line 'metrics-port.*65535'
    echo >hold
    wait "$job"
}
