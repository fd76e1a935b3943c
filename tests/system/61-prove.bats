# The proof of the fence (docs/proof.md): the model, the simulation of the real code, and the bugs
# that both must catch.
load setup

needs_sim() {
    sim=$ATTUNE_BUILD/tests/prove/sim
    [ -x "$sim" ] || skip 'the simulation is not in this build (sanitizers do not know its stacks)'
}
prove() { run timeout -k 5 1100 "$ATTUNE_ROOT/tests/prove/prove" --build "$ATTUNE_BUILD" "$@"; }

@test "a thousand schedules of the protocol's code: no violation" {
    needs_sim
    run "$sim" --schedules 1000 --first 7000001
    expect_status 0
    expect_output '^schedules 1000 violations 0$'
}

@test "a seed replays the same schedule with a trace" {
    needs_sim
    "$sim" --seed 42 >first
    "$sim" --seed 42 >second
    cmp first second || fail 'two replays differ'
    grep -q 'home word of group 0: 1 open' first || fail "no trace: $(head -n 3 first)"
    "$sim" --seed 43 >third
    ! cmp -s first third || fail 'another seed gives the same schedule'
    run "$sim" --seed x
    expect_status 2
    expect_output "needs a number, not 'x'"
}

@test "a part whose program is not built is said, and is no violation" {
    mkdir -p empty
    run --separate-stderr "$ATTUNE_ROOT/tests/prove/prove" --build empty simulation
    expect_status 2
    expect_one_line 'empty/tests/prove/sim is not built: cmake --build .*/empty --target sim'
    run --separate-stderr "$ATTUNE_ROOT/tests/prove/prove" --build empty broken
    expect_status 2
    expect_one_line 'empty/tests/prove/sim-.* is not built: cmake --build .*/empty --target broken_sims'
}

# bats test_tags=long
@test "model, simulation and seeded bugs: the whole proof" {
    needs_sim
    command -v spin >/dev/null || skip 'spin is not installed'
    cmake --build "$ATTUNE_BUILD" --target broken_sims >build.log 2>&1 || fail "$(tail build.log)"
    prove
    printf '%s\n' "$output" | sed 's/^/# /' >&3
    expect_status 0
    expect_output '^model 2 agents x 2 ranks: .* errors 0$'
    expect_output '^model 3 agents x 1 rank: .* errors 0$'
    expect_output '^model 2 agents x 1 rank, no state left out: .* errors 0$'
    expect_output '^model bounded waiting, .* errors 0$'
    expect_output '^schedules [0-9]+ violations 0$'
    [ "$(grep -c '^model with BUG_.*caught' <<<"$output")" -eq 11 ] || fail 'a bug of the model'
    [ "$(grep -c '^code with .*caught, seed' <<<"$output")" -eq 9 ] || fail 'a bug of the code'
}
