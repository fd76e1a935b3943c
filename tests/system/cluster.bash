# For the tests on a lab (tests/cluster/lab). A file that uses it defines
#
#     setup_file() { lab_up NODES; }
#     teardown_file() { lab_down; }
#     setup() { attune_setup; lab_setup; }
#     teardown() { lab_teardown; }
#
# and its cases fail when they leave anything on a node: a process, a file in /dev/shm, shared memory
# of the fabric.
load setup

lab() { LAB=$LAB_DIR "$ATTUNE_ROOT/tests/cluster/lab" "$@"; }

# lab_up NODES: or the reason why not, which skips every case of the file.
lab_up() {
    # Not in the file's own folder: paths of sockets are short.
    LAB_DIR=$(mktemp -d /tmp/attlab-XXXXXX)
    chmod 755 "$LAB_DIR"
    export LAB_DIR LAB_OWNER=$PPID
    if ! lab can >"$LAB_DIR/why"; then return 0; fi
    rm "$LAB_DIR/why"
    # The cases' own environment must not be the lab's.
    env -u ATTUNE_TEST_CASE LAB="$LAB_DIR" "$ATTUNE_ROOT/tests/cluster/lab" up "$1" 3>&- || {
        echo "the lab did not come up" >&2
        return 1
    }
}
lab_down() {
    [ -n "${LAB_DIR:-}" ] || return 0
    lab down
    local left tries
    for tries in 1 2 3 4 5 6 7 8 9 10; do
        left=$(grep -lzsxF -- "LAB=$LAB_DIR" /proc/[0-9]*/environ | tr '\0' ' ')
        [ -n "$left" ] || break
        sleep 0.2
    done
    rm -rf "$LAB_DIR"
    [ -z "$left" ] || { echo "the lab left processes: $left" >&2 && return 1; }
}

lab_setup() {
    [ ! -e "$LAB_DIR/why" ] || skip "$(cat "$LAB_DIR/why")"
    [ -x "$ATTUNE_BUILD/tests/test_app" ] || skip "no MPI: the tests' application is not built"
    app=$ATTUNE_BUILD/tests/test_app
    # Each node has a /dev/shm of its own: the segment's ordinary place is right there.
    unset ATTUNE_SHM_DIR ATTUNE_NODE
    export ATTUNE_FABRIC_SHM_DIR=$LAB_DIR/shared
    export ATTUNE_RUN_DIR=$CASE_DIR/run ATTUNE_STRATEGY=random:trials=10 ATTUNE_MAX_COST=0
    # A case's folder is as good as no folder for Slurm's own temporary files.
    unset TMPDIR
}
lab_teardown() { # [NODE...]: those that are looked at
    local failed=0
    [ -z "${CASE_DIR:-}" ] || [ -e "$LAB_DIR/why" ] || {
        lab left 8 "$@" >"$CASE_DIR/left" || { cat "$CASE_DIR/left" >&2 && failed=1; }
        lab exec find "$LAB_DIR/shared" -mindepth 1 >"$CASE_DIR/left" 2>/dev/null
        if [ -s "$CASE_DIR/left" ]; then
            echo "the fabric's memory is left: $(cat "$CASE_DIR/left")" >&2
            failed=1
        fi
        [ $# -gt 0 ] || lab exec scancel -u root >/dev/null 2>&1 || true
    }
    attune_teardown || failed=1
    return $failed
}

jobs=$ATTUNE_ROOT/jobs
allocate() { # allocate NODES RANKS-A-NODE COMMAND...: in an allocation, on ctl
    local nodes=$1 ranks=$2
    shift 2
    lab exec timeout 120 salloc -Q -N "$nodes" --ntasks-per-node="$ranks" "$@"
}
submit() { # submit SBATCH-ARGUMENT...: prints the job's id
    lab exec sbatch --parsable -o "$CASE_DIR/job.log" "$@"
}
job_field() { lab exec scontrol -o show job "$1" | grep -o "$2=[^ ]*" | cut -d= -f2; }
# job_ends ID SECONDS: wait until it is over in every respect.
job_ends() {
    local tries=$(($2 * 5))
    while [ $tries -gt 0 ]; do
        [ -n "$(lab exec squeue -h -j "$1" 2>/dev/null)" ] || return 0
        tries=$((tries - 1))
        sleep 0.2
    done
    fail "job $1 does not end: $(lab exec scontrol -o show job "$1"); $(cat "$CASE_DIR/job.log")"
}

# The sidecar was there, saw the job's groups and wrote its last report: expect_report NODES RANKS
expect_report() {
    local file
    [ -s "$ATTUNE_RUN_DIR/tasks.json" ] || fail "the sidecar wrote no report"
    jq -e '.state == "finished"' "$ATTUNE_RUN_DIR/tasks.json" >/dev/null ||
        fail "the sidecar has not ended well: $(head -c 300 "$ATTUNE_RUN_DIR/tasks.json")"
    jq -e --argjson n "$1" --argjson r "$2" \
        '[.tasks[] | select(.ranks == $r and .nodes == $n)] | length > 0' \
        "$ATTUNE_RUN_DIR/tasks.json" >/dev/null ||
        fail "no task of $2 ranks on $1 nodes: $(jq -c '[.tasks[] | {ranks, nodes, phase}]' "$ATTUNE_RUN_DIR/tasks.json")"
    jq -e --argjson r "$2" '.coverage.processes >= $r and .coverage.decisions > 0 and .coverage.in_doubt == 0' \
        "$ATTUNE_RUN_DIR/tasks.json" >/dev/null ||
        fail "not all processes were seen: $(jq -c .coverage "$ATTUNE_RUN_DIR/tasks.json")"
    for file in "$ATTUNE_RUN_DIR"/fabric-*.json; do
        [ -e "$file" ] || break
        jq -e '.mismatches == 0' "$file" >/dev/null || fail "ranks differed: $(cat "$file")"
    done
}
# reports N: so many processes of the application have come to their end.
expect_reports() {
    [ "$(ls "$ATTUNE_RUN_DIR"/fabric-*.json 2>/dev/null | wc -l)" -eq "$1" ] ||
        fail "expected the fabric's report of $1 processes: $(ls "$ATTUNE_RUN_DIR")"
}
