# --reproducible and --objective: what is not changed, and what is made short.
# bats file_tags=mpi

load setup

# tuned COLLECTIVE [option...]: allgather on a modelled machine, what reduces on real ranks here.
tuned() {
    local collective=$1 fabric='--fabric real' bench='-b 256K -e 256K -t 2 -n 1000'
    shift
    [ -x "$ATTUNE_BUILD/bin/attuned" ] || skip 'the sidecar is not built (no MPI)'
    [ -e "$ATTUNE_BUILD/fabric/libnccl.so.2" ] || skip 'the host fabric is not built'
    rm -rf run
    if [ "$collective" = allgather ]; then
        fabric='--fabric model --surface a40-nvlink-8-allgather' bench='-b 4M -e 4M -t 8 -n 1500'
    fi
    # shellcheck disable=SC2086 # words
    run attune run --quiet --run-dir run --max-cost 0 --strategy random:trials=4 --log info $fabric "$@" -- \
        attune bench "$collective" $bench
    expect_status 0
    expect_output '# Out of bounds values : 0 OK'
}

@test "--reproducible: what reduces is never switched and says why, what moves data is tuned" {
    local collective
    for collective in allreduce reducescatter reduce; do
        tuned "$collective" --reproducible
        jq -e '.tasks | length > 0 and all(.reason | startswith("--reproducible: these knobs can change the order of its additions: algorithm protocol transport channels"))' \
            run/tasks.json >/dev/null || fail "$(cat run/tasks.json)"
        jq -e '.tasks | all(.trials == 0 and .switches == 0)' run/tasks.json >/dev/null || fail "$(cat run/tasks.json)"
    done
    grep -q 'not tuned: --reproducible' run/attuned.log || fail "$(cat run/attuned.log)"
    tuned allgather --reproducible
    jq -e '.tasks[0].trials >= 2' run/tasks.json >/dev/null || fail "$(cat run/tasks.json)"
}

@test "--objective step: samples are start to start" {
    tuned allgather --objective step
    jq -e '.tasks[0] | .reduction == "start to start" and .trials >= 2' run/tasks.json >/dev/null || fail "$(cat run/tasks.json)"
    tuned allgather
    jq -e '.tasks[0].reduction != "start to start"' run/tasks.json >/dev/null || fail "$(cat run/tasks.json)"
}

# opposed US BUCKETS[:LAST] [option...]: a job that computes for 1 ms a call, or 1.5 ms when its AllGather took
# less than US microseconds, after every BUCKETS calls, the last of which has LAST bytes; NCCL's choice takes 226.
opposed() {
    local us=$1 buckets=$2
    shift 2
    [ -x "$ATTUNE_BUILD/bin/attuned" ] || skip 'the sidecar is not built (no MPI)'
    [ -x "$ATTUNE_BUILD/tests/test_opposed" ] || skip 'the host fabric is not built'
    rm -rf run
    # shellcheck disable=SC2086 # words
    run attune run --run-dir run --max-cost 0 --strategy random:trials=10 --fabric model \
        --surface a40-nvlink-8-allgather "$@" -- "$ATTUNE_BUILD/tests/test_opposed" 8 524288 8000 "$us" ${buckets/:/ }
    expect_status 0
}

@test "what makes the collective faster and its step slower is not kept, and the reason says so" {
    local reason='is [0-9.]+ % faster alone, its step 2[0-9.]+ % slower \(bound [0-9.]+ %\); try --objective step'
    opposed 215 1
    expect_output "kept NCCL's choice"
    expect_output "^ +[a-z]+/.* $reason"
    grep -Eq "warning: .*$reason" run/attuned.log || fail "$(cat run/attuned.log)"
    jq -e '.tasks[0] | .trials == 10 and .disagreement == null' run/tasks.json >/dev/null || fail "$(cat run/tasks.json)"
    jq -r '.runs[0].tasks[0] | select(.kept_default) | .reason' run/summary.json | grep -Eq "$reason" || fail "$(cat run/summary.json)"
}

@test "buckets: four calls and then what is computed for all of them; the step is that of the four" {
    opposed 215 4
    expect_output "kept NCCL's choice"
    expect_output '^ +[a-z]+/.* is [0-9.]+ % faster alone, its step [12][0-9.]+ % slower'
    opposed 240 4 --objective step
    jq -e '.tasks[0] | .disagreement.objective == "step" and .disagreement.step_gain > 0.2' run/tasks.json >/dev/null ||
        fail "$(cat run/tasks.json)"
}

@test "--objective step: a bucket that comes once a step takes over what one of its kind found that comes thrice" {
    opposed 240 4:540672 --objective step
    jq -e '[.tasks[] | {bytes, trials, step: .disagreement.step_gain}] | length == 2 and
        (.[] | select(.bytes == 4194304) | .trials == 10 and .step > 0.2) and
        (.[] | select(.bytes == 4325376) | .trials == 0 and .step > 0.05)' run/tasks.json >/dev/null || fail "$(cat run/tasks.json)"
    expect_output 'found by a task of the same kind'
}

@test "--objective step: tasks of one group are searched one after the other" {
    opposed 240 4:1048576 --objective step
    jq -se '[.[] | select(.phase) | select(.phase != "baseline")] | group_by(.bytes) | length == 2 and
        ([.[] | {from: (map(.time_s) | min), to: (map(.time_s) | max)}] | sort_by(.from) | .[0].to <= .[1].from)' \
        run/trials.jsonl >/dev/null || fail "$(cat run/trials.jsonl)"
}

@test "a winner that makes the step shorter and the collective slower: log, table, summary and report warn" {
    local warning='the collective is [0-9.]+ % slower, its step [0-9.]+ % faster'
    opposed 240 1 --objective step
    expect_output "^ +warning: $warning"
    grep -Eq 'makes the collective [0-9.]+ % slower and its step [0-9.]+ % faster' run/attuned.log || fail "$(cat run/attuned.log)"
    jq -e '.tasks[0].disagreement | .objective == "step" and .collective_gain < -0.02 and .step_gain > 0.02' \
        run/tasks.json >/dev/null || fail "$(cat run/tasks.json)"
    jq -r '.runs[0].tasks[0].warning' run/summary.json | grep -Eq "$warning" || fail "$(cat run/summary.json)"
    attune report -o page.html run
    grep -Eq "<small class=\"flag\">warning: $warning</small>" page.html || fail "the page does not warn"
    tuned allgather # the fabric computes nothing between calls: the two agree
    jq -e '.tasks[0].disagreement == null' run/tasks.json >/dev/null || fail "$(cat run/tasks.json)"
    jq -e '.runs[0].tasks[0].warning == ""' run/summary.json >/dev/null || fail "$(cat run/summary.json)"
}

# bats test_tags=long
@test "steps that are longer than a watch window are watched after the search" {
    [ -x "$ATTUNE_BUILD/bin/attuned" ] || skip 'the sidecar is not built (no MPI)'
    [ -x "$ATTUNE_BUILD/tests/test_app" ] || skip 'the fabric is not built'
    attune run --quiet --run-dir run --max-cost 0 --objective step --watch 0.5 --strategy random:trials=2 \
        --fabric real -- mpirun --bind-to none -n 2 "$ATTUNE_BUILD/tests/test_app" --seconds 60 --pause 25 >log 2>&1 &
    local job=$!
    settled() { jq -e '.tasks | length > 0 and all(.phase == "settled")' run/tasks.json >/dev/null 2>&1; }
    wait_for 50 settled
    sleep 4 # without a sample of a whole step they would be as old by now
    jq -e '.tasks | all(.now.age_s < 3)' run/tasks.json >/dev/null || fail "$(cat run/tasks.json)"
    kill -TERM "$job"
    wait "$job" || true
}

@test "an objective that is none is refused" {
    run --separate-stderr attune run --objective speed -- true
    expect_status 125
    expect_one_line 'objective.*collective.*step'
}

# sums TYPE [option...]: sums whose bits tell the order of additions
sums() {
    local type=$1
    shift
    rm -rf run
    # shellcheck disable=SC2086 # no word for floats
    run attune run --quiet --run-dir run --max-cost 0 --strategy random:trials=6 --fabric real "$@" -- \
        "$ATTUNE_BUILD/tests/test_order" 4 16384 3000 $type
    expect_status 0
}

@test "--reproducible keeps every bit of the sums; a search without it changes some" {
    [ -x "$ATTUNE_BUILD/bin/attuned" ] || skip 'the sidecar is not built (no MPI)'
    [ -x "$ATTUNE_BUILD/tests/test_order" ] || skip 'the host fabric is not built'
    local alone type
    for type in '' bfloat16; do
        # shellcheck disable=SC2086
        alone=$(LD_LIBRARY_PATH=$ATTUNE_BUILD/fabric "$ATTUNE_BUILD/tests/test_order" 4 16384 3000 $type)
        [[ $alone == 'calls 3000 different 1 first 0x'* ]] || fail "$alone"
        sums "$type" --reproducible
        grep -qxF -- "$alone" <<<"$output" || fail "$type alone: $alone"$'\n'"--reproducible: $output"
        jq -e '.coverage.decisions == 12000 and (.tasks | length == 1)' run/tasks.json >/dev/null || fail "$(cat run/tasks.json)"
        sums "$type"
        jq -e '.tasks[0].trials >= 1' run/tasks.json >/dev/null || fail "$(cat run/tasks.json)"
        expect_output 'calls 3000 different ([2-9]|[1-6][0-9]) first'
    done
}
