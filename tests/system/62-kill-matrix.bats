# bats file_tags=mpi
# Real processes killed and stopped at the steps of the fence protocol (tests/fault/matrix).
load setup

@test "an agent and a training process die at a step, and the job ends as it must" {
    command -v mpirun >/dev/null || skip 'mpirun is not installed'
    run timeout -k 5 150 "$ATTUNE_ROOT/tests/fault/matrix" --build "$ATTUNE_BUILD" \
        --cell prepared:agent:kill --cell committed:hook:kill
    expect_status 0
    expect_output '^kills 2 mismatches 0 hangs 0 wrong_exit 0 longest_wait_ms [0-9]+$'
}

# bats test_tags=long
@test "every step, every role, SIGKILL and SIGSTOP" {
    command -v mpirun >/dev/null || skip 'mpirun is not installed'
    run timeout -k 5 1150 "$ATTUNE_ROOT/tests/fault/matrix" --build "$ATTUNE_BUILD"
    printf '%s\n' "$output" | sed 's/^/# /' >&3
    expect_status 0
    expect_output '^kills [0-9]+ mismatches 0 hangs 0 wrong_exit 0 longest_wait_ms [0-9]+$'
}
