# bats file_tags=slurm
# Every way in which a job can end: the application's exit status wins, the agents end well, and
# nothing is left on any node. Time limit and dead nodes: 83-limits.
load cluster

setup_file() { lab_up 3; }
teardown_file() { lab_down; }
setup() { attune_setup && lab_setup; }
teardown() { lab_teardown; }

companion() { allocate 3 3 "$jobs/companion.sbatch" --mpi=pmix -n 6 --ntasks-per-node=2 "$app" --beside "$@"; }

# agent_of NODE: the process id of its agent, as seen there.
agent_of() { lab node "$1" pgrep -x attuned | head -n 1; }
agents_are_up() { [ -n "$(lab node 1 pgrep -x attuned)" ] && [ -n "$(lab node 3 pgrep -x attuned)" ]; }
ranks_are_up() { [ "$(lab node 2 pgrep -cx test_app)" -eq 2 ]; }
# The application has come so far that the agents have seen it.
under_way() { wait_for 20 agents_are_up && wait_for 20 ranks_are_up && sleep 1.5; }

@test "success: status 0" {
    run companion --seconds 1
    expect_status 0
    expect_report 3 6
}

@test "the application ends with 7: so does the job" {
    id=$(submit -N3 --ntasks-per-node=3 "$jobs/companion.sbatch" --mpi=pmix -n 6 --ntasks-per-node=2 "$app" --beside --end abort:7@2)
    job_ends "$id" 30
    [ "$(job_field "$id" JobState)" = FAILED ]
    [ "$(job_field "$id" ExitCode)" = 7:0 ]
    expect_report 3 6
}

@test "one rank calls MPI_Abort(9): status 9" {
    run companion --end abort:9@3
    expect_status 9
    expect_report 3 6
}

@test "one rank dies of a signal: the step ends, and with it the job" {
    local how
    for how in segv@4 kill@1; do
        rm -rf "$ATTUNE_RUN_DIR"
        run companion --end $how
        [ "$status" -gt 128 ] || fail "$how: status $status"
        reject_output 'sidecar ended with status'
        expect_report 3 6
    done
}

@test "all ranks of one node die" {
    companion --seconds 60 >log 2>&1 &
    local job=$! status=0
    under_way
    lab node 2 pkill -KILL -x test_app
    wait $job || status=$?
    [ $status -gt 128 ] || fail "status $status: $(cat log)"
    expect_report 3 6
}

@test "an agent is killed: the application does not notice" {
    companion --seconds 5 >log 2>&1 &
    local job=$! status=0
    under_way
    lab node 2 kill -KILL "$(agent_of 2)"
    wait $job || status=$?
    output=$(cat log)
    [ $status -eq 0 ] || fail "status $status"
    expect_output 'sidecar ended with status [1-9]'
    [ "$(grep -c ' of 6 on n' log)" -eq 6 ]
    expect_reports 6
}

@test "an agent was killed, and the application fails: its status wins" {
    companion --seconds 6 --end abort:7@2 >log 2>&1 &
    local job=$! status=0
    under_way
    lab node 3 kill -KILL "$(agent_of 3)"
    wait $job || status=$?
    [ $status -eq 7 ] || fail "status $status: $(cat log)"
}

@test "one agent alone gets SIGTERM: the sidecar is gone, the application goes on" {
    companion --seconds 8 >log 2>&1 &
    local job=$! status=0
    under_way
    lab node 1 kill -TERM "$(agent_of 1)"
    gone() { ! lab node 2 pgrep -x attuned && ! lab node 3 pgrep -x attuned; }
    wait_for 7 gone
    wait $job || status=$?
    [ $status -eq 0 ] || fail "status $status: $(cat log)"
    expect_reports 6
}

@test "scancel" {
    id=$(submit -N3 --ntasks-per-node=3 "$jobs/companion.sbatch" --mpi=pmix -n 6 --ntasks-per-node=2 "$app" --seconds 60)
    under_way
    lab exec scancel "$id"
    job_ends "$id" 20
    [ "$(job_field "$id" JobState)" = CANCELLED ]
    expect_report 3 6
}

@test "scancel, and the application does not go before it is killed" {
    id=$(submit -N3 --ntasks-per-node=3 "$jobs/companion.sbatch" --mpi=pmix -n 6 --ntasks-per-node=2 "$app" --term \
        --seconds 60)
    under_way
    lab exec scancel "$id"
    job_ends "$id" 30
    [ "$(job_field "$id" JobState)" = CANCELLED ]
    expect_report 3 6
}

@test "an interrupt at the terminal ends application and sidecar" {
    companion --seconds 60 >log 2>&1 &
    under_way
    # As the terminal does it: to the script and what it runs.
    lab exec pkill -INT -f companion.sbatch
    wait_for 30 eval '! lab exec pgrep -f companion.sbatch >/dev/null'
    expect_report 3 6
}
