# bats file_tags=slurm
# The companion pattern on a real Slurm: the sidecar as an overlapping step beside the application.
load cluster

setup_file() { lab_up 4; }
teardown_file() { lab_down; }
setup() { attune_setup && lab_setup; }
teardown() { lab_teardown; }

# companion NODES RUNS: so many jobs in a row, all of them right.
companion() {
    local nodes=$1 runs=$2 turn
    for ((turn = 1; turn <= runs; turn++)); do
        rm -rf "$ATTUNE_RUN_DIR"
        run allocate "$nodes" 3 "$jobs/companion.sbatch" --mpi=pmix -n $((2 * nodes)) --ntasks-per-node=2 "$app" \
            --beside --seconds 1
        [ "$status" -eq 0 ] || fail "run $turn of $runs on $nodes nodes"
        [ "$(grep -c " of $((2 * nodes)) on n[1-$nodes]: " <<<"$output")" -eq $((2 * nodes)) ] ||
            fail "run $turn: not every rank came to its end"
        reject_output 'sidecar ended with status'
        expect_reports $((2 * nodes))
        expect_report "$nodes" $((2 * nodes))
        expect_report 1 2
        lab left 8 || fail "run $turn of $runs on $nodes nodes left something"
    done
}

@test "three nodes, runs in a row" { companion 3 "${ATTUNE_TEST_RUNS:-5}"; }

@test "four nodes, runs in a row" { companion 4 "${ATTUNE_TEST_RUNS:-5}"; }

@test "the sidecar asks for no GPU and no processor of the application" {
    run allocate 2 8 --gpus-per-node=2 bash -c '. "$(attune slurm --jobs)/companion.sh" || exit
        attune_begin
        until scontrol show step "$SLURM_JOB_ID" | grep -q Name=attuned; do sleep 0.05; done
        scontrol show step "$SLURM_JOB_ID" | grep -A 12 "^StepId=$SLURM_JOB_ID\.[0-9]"
        # All processors and GPUs at once: it would have to wait for a step that holds one.
        attune_run timeout 20 "${attune_step[@]}" -n 16 --gpus-per-node=2 sh -c \
            "[ \$SLURM_PROCID != 0 ] || echo gpus \$SLURM_GPUS_ON_NODE"'
    expect_status 0
    expect_output '^gpus 2$'
    reject_output 'TresPerNode=.*gpu'
}

@test "a user's sidecar options and run folder reach every agent" {
    cat >job <<'END'
#!/bin/bash
. "$(attune slurm --jobs)/companion.sh" || exit
attune_begin --observe
attune_run "${attune_step[@]}" --mpi=pmix "$@"
END
    run allocate 2 2 bash job "$app" --beside --seconds 0.5
    expect_status 0
    jq -e '[.tasks[].switches] | length > 0 and all(. == 0)' "$ATTUNE_RUN_DIR/tasks.json"
}

@test "a group over all nodes is tuned: agents and home words over the network" {
    run allocate 3 3 "$jobs/companion.sbatch" --mpi=pmix -n 6 --ntasks-per-node=2 "$app" --beside --all \
        --seconds 15 --bytes 262144
    expect_status 0
    expect_reports 6
    expect_report 3 6
    jq -e '[.tasks[] | select(.ranks == 6 and .nodes == 3 and .switches > 0)] | length > 0' \
        "$ATTUNE_RUN_DIR/tasks.json" >/dev/null || fail "$(jq -c '[.tasks[] | {ranks, nodes, phase, switches, calls_seen, reason}]' "$ATTUNE_RUN_DIR/tasks.json")"
}
