# bats file_tags=mpi
# The common clock of several agents against the truth, which was injected.
load setup

setup() {
    attune_setup
    command -v mpirun >/dev/null || skip "mpirun is not installed"
    [ -x "$ATTUNE_BUILD/bin/attuned" ] || skip "the sidecar is not built"
    export ATTUNE_RUN_ID=clock NCCL_TUNER_PLUGIN=$ATTUNE_BUILD/lib/libattune-nccl.so
    export NCCL_PROFILER_PLUGIN=$NCCL_TUNER_PLUGIN NCCL_RUNTIME_CONNECT=0
}

segments() { [ "$(ls "$ATTUNE_SHM_DIR" | wc -l)" -ge 4 ]; }

# recorded CALLS PAUSE_US [busy]: 16 ranks on 4 nodes whose clocks are seconds and tens of ppm apart.
recorded() {
    local inject=(0:0 3.5:20 -2.25:-35 7.75:50) words=() i
    for i in 0 1 2 3; do
        [ "$i" -eq 0 ] || words+=(:)
        words+=(-np 1 -x "ATTUNE_NODE=n$i" -x "ATTUNE_CLOCK_INJECT=${inject[i]}" attuned --observe
            --trace on --run-dir "$CASE_DIR/run")
    done
    mpirun "${words[@]}" >agents.log 2>&1 &
    local agents=$!
    wait_for 15 segments
    LD_LIBRARY_PATH=$ATTUNE_BUILD/fabric timeout 100 "$ATTUNE_BUILD/tests/test_ranks" 16 4 "$1" \
        4096 "$2" ${3:-}
    sleep 0.3
    kill -TERM $agents
    wait $agents || true
}

# bats test_tags=long
@test "16 ranks on 4 nodes: clocks within 10 us of the truth at the 99th percentile" {
    # The limit is for an idle machine; on another one the error must only stay within what is stated.
    local limit=10
    awk -v cores="$(nproc)" '{ exit !($1 > cores / 2) }' /proc/loadavg && limit=
    recorded 500 20000
    run "$ATTUNE_BUILD/tests/test_clock_truth" run $limit
    echo "# limit ${limit:-none, the machine is busy} us: $(grep '^all' <<<"$output")" >&3
    expect_status 0
    run attune trace run -o out.json.gz
    expect_status 0
    run "$ATTUNE_BUILD/tests/test_trace_check" out.json.gz
    expect_status 0
    expect_output 'good: [1-9][0-9]* calls, [1-9][0-9]* flows'
    run attune trace run
    [ "$(grep -c 'offset .* drift .* uncertainty' <<<"$output")" -eq 3 ] || fail "clocks"
}

# bats test_tags=long
@test "the same with 16 busy processes: printed, and never beyond the stated uncertainty" {
    recorded 250 20000 busy
    run "$ATTUNE_BUILD/tests/test_clock_truth" run
    echo "# busy: $(grep '^all' <<<"$output")" >&3
    expect_status 0
}
