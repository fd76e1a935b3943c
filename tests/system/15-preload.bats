# The hook as LD_PRELOAD: when it is one, what it counts, that other programs do not notice.
# bats file_tags=cpu
load setup
load run-setup

setup() {
    attune_setup
    needs_parts
    # A sanitizer wants to be the first library of a process; here the hook is.
    export ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0
}

# One real run of two collectives on four ranks; $output is the table.
small_run() {
    run timeout 60 attune run --fabric real --run-dir out "$@" -- \
        attune bench allreduce,allgather -b 64K -e 64K -t 4 -w 2 -n 20 -d half
    expect_status 0
}

@test "on: every collective is seen, and reaches the tuner" {
    small_run --preload on
    expect_output '^# preload: 100.00 % of the application.s [0-9]+ collectives reached the tuner; 0 other calls'
    expect_output '0 mismatches between ranks in .* 0 wrong results$'
    run jq -e '.coverage | .called == .decisions and .answered == .called and .bypassed == 0 and .streams == 1' out/tasks.json
    expect_status 0
}

@test "a policy that no tuner lets NCCL follow is told once" {
    NCCL_CTA_POLICY=EFFICIENCY small_run
    expect_output 'asks for EFFICIENCY; with any tuner plugin loaded NCCL does not choose NVLS'
    [ "$(grep -c EFFICIENCY <<<"$output")" -eq 1 ]
    rm -rf out
    NCCL_CTA_POLICY=DEFAULT small_run
    reject_output EFFICIENCY
}

@test "off and --no-graphs: a plugin alone" {
    for options in '--preload off' --no-graphs; do
        rm -rf out
        small_run $options
        reject_output '^# preload:'
        run jq -e '.coverage | .called == 0 and .decisions > 0' out/tasks.json
        expect_status 0
    done
    run -125 attune run --preload sometimes -- true
    expect_output "--preload: .sometimes. is not accepted; expected one of auto"
}

@test "it stands before what the user preloads, and not twice" {
    needs_plain_hook
    attune_with_fake
    library=$(ldconfig -p | awk '/libz.so.1 / { print $NF; exit }')
    LD_PRELOAD=$library run --separate-stderr attune run --preload on -- env
    expect_output "^LD_PRELOAD=$PWD/tree/lib/libattune-nccl.so:$library$"
    LD_PRELOAD=$PWD/tree/lib/libattune-nccl.so run --separate-stderr attune run --preload on -- env
    expect_output "^LD_PRELOAD=$PWD/tree/lib/libattune-nccl.so$"
    run --separate-stderr attune run -- env
    expect_output "^LD_PRELOAD=$PWD/tree/lib/libattune-nccl.so$"
    for options in '--preload off' --no-graphs; do
        run --separate-stderr attune run $options -- env
        reject_output '^LD_PRELOAD='
    done
}

@test "what the user preloads in front of NCCL gets its calls" {
    needs_plain_hook
    for options in '--preload off' ''; do
        rm -rf out
        LD_PRELOAD=$ATTUNE_BUILD/tests/wrap_nccl.so run timeout 60 attune run $options --fabric real --run-dir out -- \
            attune bench allreduce -b 4K -e 4K -t 2 -w 0 -n 20 -c 0 --place out
        expect_status 0
        expect_output '^wrapped 40$'
    done
    expect_output '^# preload: 100.00 % of the application.s 40 collectives'
}

@test "programs without NCCL do not notice it" {
    needs_plain_hook
    run --separate-stderr timeout 60 attune run --preload on --quiet -- \
        sh -c 'echo one | sed s/one/two/; exit 3'
    expect_status 3
    expect_output '^two$'
    [ "$(wc -l <<<"$output")" -eq 1 ] || fail "more than one line"
    reject_output attune
}

@test "NCCL taken with dlsym passes it by: the plugin works alone, and says so" {
    export ATTUNE_NCCL_LIB=$ATTUNE_BUILD/fabric/libnccl.so.2
    NCCL_DEBUG=INFO run timeout 60 attune run --preload on --run-dir out -- \
        "$ATTUNE_BUILD/tests/take_nccl" "$ATTUNE_NCCL_LIB"
    expect_status 0
    expect_output "NCCL's calls do not pass through the preload"
    run jq -e '.coverage | .called == 0 and .decisions == 20' out/tasks.json
    expect_status 0
}
