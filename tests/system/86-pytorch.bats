# bench/gpu/pytorch.sh on the host fabric with its stand-in for torchrun: order of launches, going on
# after a limit, tables. The training scripts themselves need GPUs.
# bats file_tags=cpu
load setup
load run-setup

setup() {
    attune_setup
    needs_parts
    needs_plain_hook
    export OUT=$PWD/out LAUNCHES=1 STEPS=25 LAUNCH_SECONDS=30
    script=$ATTUNE_ROOT/bench/gpu/pytorch.sh
}

# bats test_tags=long
@test "a step that met its limit goes on where it stopped; losses and coverage are judged" {
    LIMIT_SECONDS=29 run timeout 120 "$script" ddp25 --dry
    expect_status 3
    expect_output "^ddp25: up to launch 1; once more: .*pytorch.sh ddp25$"
    run timeout 120 "$script" ddp25 --dry
    expect_status 0
    expect_output '^ddp25: done$'
    [ "$(jq -r .kind out/runs.jsonl | tr '\n' ' ')" = 'none idle tuned ' ] || fail "$(cat out/runs.jsonl)"
    run timeout 120 "$script" ddp25 --dry
    expect_output '^ddp25: done$'
    [ "$(wc -l <out/runs.jsonl)" -eq 3 ] || fail "launched again what was done"
    run timeout 120 "$script" equal --dry
    expect_status 0
    run "$script" report --dry
    expect_output '^PASSED  ddp25: tuned coverage 100.0 % of collectives$'
    expect_output '^PASSED  ddp25: tuned loss within 1e-3 for 50 steps'
    expect_output '^PASSED  equal: losses of 50 steps equal bit by bit$'
    # A loss that differs is seen.
    jq -c 'if .kind == "tuned" then .loss[3] += 1 else . end' out/runs.jsonl >other && mv other out/runs.jsonl
    run "$script" report --dry
    expect_status 1
    expect_output '^FAILED  ddp25: tuned loss within 1e-3'
}

@test "together: all cases in each launch, longer ones where it is tuned" {
    CASES='ddp4 fsdp' TUNED_STEPS=40 run timeout 120 "$script" together --dry
    expect_status 0
    expect_output '^together: done$'
    jq -se 'map([.case, .kind, (.seconds | length)]) == [["ddp4", "none", 25], ["fsdp", "none", 25], ["ddp4", "idle", 25],
        ["fsdp", "idle", 25], ["ddp4", "tuned", 40], ["fsdp", "tuned", 40]]' out/runs.jsonl || fail "$(cut -c1-80 out/runs.jsonl)"
    CASES='ddp4 fsdp' run timeout 120 "$script" together --dry
    [ "$(wc -l <out/runs.jsonl)" -eq 6 ] || fail "launched again what was done"
    run "$script" report --dry
    expect_output '^PASSED  ddp4: tuned loss within 1e-3 for 50 steps \(0.0e\+00\)$'
    expect_output '^PASSED  fsdp: tuned loss within 1e-3 for 50 steps \(0.0e\+00\)$'
}

@test "what it refuses" {
    run -2 "$script" everything
    expect_output 'pytorch.sh STEP'
    CASES='ddp25 ddp5' run -2 "$script" together
    expect_output "^CASES: no case is called 'ddp5'$"
    run -1 "$script" report
    expect_output '^nothing was measured yet$'
    ATTUNE_NCCL_LIB=/none run -2 "$script" ddp25
    expect_output 'ATTUNE_NCCL_LIB must name an NCCL'
}
