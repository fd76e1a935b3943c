# bats file_tags=slurm
# Endings that take their time: a node dies; the time limit is reached. Both jobs run at once, on
# nodes of their own.
load cluster

setup_file() {
    LAB_CONF='SlurmdTimeout=10' lab_up 4
    [ ! -e "$LAB_DIR/why" ] || return 0
    # What the second case looks at begins here: a minute is the shortest limit.
    attune_setup
    lab_setup
    local id
    id=$(lab exec sbatch --parsable -t 1 -w n1 -N1 --ntasks-per-node=3 -o "$LAB_DIR/limit.log" \
        --export=ALL,ATTUNE_RUN_DIR="$LAB_DIR/limit-run" "$ATTUNE_ROOT/jobs/companion.sbatch" \
        --mpi=pmix -n 2 "$ATTUNE_BUILD/tests/test_app" --seconds 600 --pause 20)
    echo "$id" >"$LAB_DIR/limit"
    cd /
    rm -rf "$CASE_DIR" "$CASE_SHM"
}
teardown_file() { lab_down; }
setup() { attune_setup && lab_setup; }

@test "a node dies" {
    id=$(submit --no-requeue -w n2,n3,n4 -N3 --ntasks-per-node=3 "$jobs/companion.sbatch" \
        --mpi=pmix -n 6 --ntasks-per-node=2 "$app" --seconds 300 --pause 20)
    up() { [ "$(lab node 4 pgrep -cx test_app)" -eq 2 ] && [ -n "$(lab node 4 pgrep -x attuned)" ]; }
    wait_for 20 up
    sleep 1.5
    lab kill 4
    job_ends "$id" 80
    # Who notices first ends it: the controller (SlurmdTimeout), or the ranks that lost a peer.
    case $(job_field "$id" JobState) in
    NODE_FAIL | FAILED) ;;
    *) fail "$(job_field "$id" JobState): $(cat "$CASE_DIR/job.log")" ;;
    esac
    lab left 10 2 3
    [ "$(jq -r .state "$ATTUNE_RUN_DIR/tasks.json")" = finished ]
}

@test "the time limit is reached" {
    id=$(cat "$LAB_DIR/limit")
    job_ends "$id" 110
    [ "$(job_field "$id" JobState)" = TIMEOUT ] || fail "$(job_field "$id" JobState)"
    lab left 8 1
    ATTUNE_RUN_DIR=$LAB_DIR/limit-run expect_report 1 2
}

# The other job is still there when the first case ends.
teardown() {
    case $BATS_TEST_DESCRIPTION in
    'a node dies') lab_teardown 2 3 ;;
    *) lab_teardown ;;
    esac
}
