# attune pin, attune unpin: a task of a running job is held where it is, and goes on.
# bats file_tags=mpi

load setup

# A job that calls one size for as long as the case needs, with its search far from its end.
start_job() {
    [ -x "$ATTUNE_BUILD/bin/attuned" ] || skip 'the sidecar is not built (no MPI)'
    [ -e "$ATTUNE_BUILD/fabric/libnccl.so.2" ] || skip 'the host fabric is not built'
    attune run --quiet --run-dir run --max-cost 0 --strategy random:trials=100000 --fabric model \
        --surface a40-nvlink-8-allgather -- attune bench allgather -b 4M -e 4M -t 8 -n 1000000 >out 2>&1 &
    job=$!
    wait_for 20 searching
}
searching() { jq -e '.tasks[0].trials > 3' run/tasks.json >/dev/null 2>&1; }
trials() { jq '.tasks[0].trials' run/tasks.json; }
more_than() { [ "$(trials)" -gt "$1" ]; }
end_job() {
    kill "$job"
    wait "$job" || true
}

@test "pinned: the search stops and what is in force stays; unpinned: it goes on" {
    start_job
    run attune pin run
    expect_status 0
    expect_output '^0x[0-9a-f]+:allgather:4M  search$'
    run attune pin run allgather:4M
    expect_status 0
    [ "$(stat -c %a run/pinned)" = 600 ]
    run attune pin run
    expect_output '^0x[0-9a-f]+:allgather:4M  search, pinned$'
    sleep 1.2 # a list that was in force has ended, tasks.json tells
    local before
    before=$(trials)
    sleep 2.5
    [ "$(trials)" -eq "$before" ] || fail "$before trials, then $(trials)"
    run attune unpin run all
    expect_status 0
    wait_for 10 more_than "$before"
    end_job
}

@test "a file that others can write is not followed; wrong words are one line" {
    start_job
    run --separate-stderr attune pin run allreduce:4M
    expect_status 1
    expect_one_line 'no task of the run is allreduce:4M'
    run --separate-stderr attune pin run allgather
    expect_status 2
    expect_one_line 'expected .*COLLECTIVE:BYTES'
    run --separate-stderr attune unpin run
    expect_status 2
    run --separate-stderr attune pin nowhere allgather:4M
    expect_status 1
    expect_one_line 'nowhere'
    jq -r '.tasks[0] | "\(.group) \(.collective) \(.bytes)"' run/tasks.json >open
    chmod 666 open
    mv open run/pinned
    wait_for 10 grep -q 'pinned is not followed: it is not a file of this user' run/attuned.log
    jq -e '.tasks[0].pinned == false' run/tasks.json
    end_job
    run --separate-stderr attune pin run allgather:4M
    expect_status 1
    expect_one_line 'has finished'
}

gone() { grep -q 'the sidecar is gone' out; }

@test "a sidecar that is gone is named, nobody is waited for" {
    start_job
    kill -KILL "$(pgrep -P "$job" -x attuned)"
    wait_for 20 gone
    run --separate-stderr attune pin run allgather:4M
    expect_status 1
    expect_one_line 'the sidecar of run is gone \(.*\): nobody can pin'
    [ ! -e run/pinned ] || fail 'pinned was written for nobody'
    run attune pin run
    expect_status 0
    end_job
    # A sidecar that attune run did not start: only its reports tell.
    mkdir alone
    jq '.state = "running"' run/tasks.json >alone/tasks.json
    touch -d '1 minute ago' alone/tasks.json
    run --separate-stderr attune pin alone all
    expect_status 1
    expect_one_line 'the sidecar of alone has not reported for [0-9]+ s, it is gone or stopped'
}

@test "a run without tasks, and a tasks.json that is none" {
    local tasks
    mkdir run
    echo '{"version":1,"state":"running","tasks":[]}' >run/tasks.json
    run --separate-stderr attune pin run
    expect_status 0
    expect_one_line 'run has no task yet'
    run --separate-stderr attune pin run all
    expect_status 1
    expect_one_line 'run has no task yet'
    for tasks in null 7 '[7]' '[{"group":"0x1","collective":"allgather","bytes":1}]' \
        '[{"group":"0x1\u001b[2J","collective":"allgather","bytes":1,"phase":"search"}]' \
        '[{"group":"0x1","collective":"sum","bytes":1,"phase":"search"}]'; do
        printf '{"version":1,"state":"running","tasks":%s}\n' "$tasks" >run/tasks.json
        run --separate-stderr attune pin run
        expect_status 1
        expect_one_line 'run/tasks.json: not the tasks of a run'
        run --separate-stderr attune pin run allgather:1
        expect_status 1
        expect_one_line 'run/tasks.json: not the tasks of a run'
    done
}
