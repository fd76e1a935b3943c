# Plugins of others behind attune's: asked first, their answer is the baseline and the fallback.
# bats file_tags=mpi

load setup

needs_parts() {
    [ -x "$ATTUNE_BUILD/bin/attuned" ] || skip 'the sidecar is not built (no MPI)'
    [ -e "$ATTUNE_BUILD/fabric/libnccl.so.2" ] || skip 'the host fabric is not built'
    [ -e "$ATTUNE_BUILD/tests/stubs/stub_tuner_v6.so" ] || skip 'the tests are not built'
    export STUB_LOG=$PWD/stub.log
}

# tuned PLUGIN [option...]; $calls calls each way
tuned() {
    local plugin=$1
    shift
    rm -rf run stub.log
    NCCL_TUNER_PLUGIN=$plugin NCCL_DEBUG=INFO run attune run --quiet --run-dir run --max-cost 0 \
        --strategy random:trials=10 --fabric model --surface a40-nvlink-8-allgather "$@" -- \
        attune bench allgather -b 4M -e 4M -t 8 -n "${calls:-200}"
    expect_status 0
    expect_output '# Out of bounds values : 0 OK'
    jq -e '.mismatches == 0' run/fabric-*.json >/dev/null || fail 'ranks differed'
}

@test "a tuner of ABI 6 is asked for every call; its choice is the baseline, beaten by the search" {
    needs_parts
    calls=1000 tuned "$ATTUNE_BUILD/tests/stubs/stub_tuner_v6.so"
    expect_output 'tuner stub \(.*, ncclTunerPlugin_v6\) is asked first'
    [ "$(grep -c '^ranks 8 ' stub.log)" -eq 8 ] || fail "$(cat stub.log)"
    # Every rank was asked for the same number of calls, and for their chunks.
    [ "$(sort -u stub.log | wc -l)" -eq 1 ] || fail "$(cat stub.log)"
    grep -Eq 'questions [0-9]{3,} chunks [0-9]{3,}' stub.log || fail "$(cat stub.log)"
    jq -e '.tasks[0] | .default.setting.algorithm == "ring" and .default.setting.protocol == "ll" and
        .default.setting.channels == 2 and .trials >= 5 and
        (.tuned.setting != .default.setting) and .tuned.median_us < .default.median_us' run/tasks.json >/dev/null ||
        fail "$(cat run/tasks.json)"
}

@test "a tuner of ABI 3 too" {
    needs_parts
    tuned "$ATTUNE_BUILD/tests/stubs/stub_tuner_v3.so"
    expect_output 'tuner stub \(.*, ncclTunerPlugin_v3\) is asked first'
    jq -e '.tasks[0] | .default.setting.protocol == "ll" and .default.setting.channels == 2' run/tasks.json >/dev/null ||
        fail "$(cat run/tasks.json)"
    [ "$(grep -c '^ranks 8 ' stub.log)" -eq 8 ] || fail "$(cat stub.log)"
}

@test "where attune does nothing the other tuner still does" {
    needs_parts
    LD_LIBRARY_PATH=$ATTUNE_BUILD/fabric NCCL_TUNER_PLUGIN=$ATTUNE_BUILD/lib/libattune-nccl.so \
        NCCL_PROFILER_PLUGIN=$ATTUNE_BUILD/lib/libattune-nccl.so ATTUNE_CHAIN_TUNER=$ATTUNE_BUILD/tests/stubs/stub_tuner_v6.so \
        NCCL_DEBUG=INFO run attune bench allreduce -b 1M -e 1M -t 2 -n 20
    expect_status 0
    expect_output 'inactive: neither'
    [ "$(grep -c '^ranks 2 questions' stub.log)" -eq 2 ] || fail "$(cat stub.log)"
}

@test "one that cannot start, or is not there, is named and left out" {
    needs_parts
    STUB_FAIL=init tuned "$ATTUNE_BUILD/tests/stubs/stub_tuner_v6.so"
    expect_output 'tuner stub failed to start: not asked'
    jq -e '.tasks[0].default.setting.channels == 8' run/tasks.json >/dev/null || fail "$(cat run/tasks.json)"
    tuned nowhere
    expect_output 'tuner nowhere is not asked: it cannot be loaded'
    tuned none
    reject_output 'is not asked'
}

@test "a library that NCCL would have found by its name" {
    needs_parts
    mkdir lib
    cp "$ATTUNE_BUILD/tests/stubs/stub_tuner_v6.so" lib/libnccl-tuner.so
    LD_LIBRARY_PATH=$PWD/lib tuned ''
    expect_output 'tuner stub \(libnccl-tuner.so, ncclTunerPlugin_v6\) is asked first'
    # Attune's own under that name is none.
    cp "$ATTUNE_BUILD/lib/libattune-nccl.so" lib/libnccl-tuner.so
    LD_LIBRARY_PATH=$PWD/lib ATTUNE_CHAIN_TUNER=$ATTUNE_BUILD/lib/libattune-nccl.so tuned ''
    expect_output 'is not asked: it cannot be loaded, or has no tuner'
}
