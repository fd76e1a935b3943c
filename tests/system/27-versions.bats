# The host fabric poses as NCCLs of different age: which symbols are taken, what can be tuned, and
# why not. Every run is checked by the fabric's oracle.
# bats file_tags=mpi

load setup

needs_parts() {
    [ -x "$ATTUNE_BUILD/bin/attuned" ] || skip 'the sidecar is not built (no MPI)'
    [ -e "$ATTUNE_BUILD/fabric/libnccl.so.2" ] || skip 'the host fabric is not built'
}

# tuned VERSION [option...]: a small job on a modelled machine; log, and run/ with the result.
tuned() {
    local version=$1
    shift
    needs_parts
    rm -rf run
    ATTUNE_FABRIC_VERSION=$version NCCL_DEBUG=INFO run attune run --quiet --run-dir run --max-cost 0 \
        --strategy random:trials=10 --fabric model --surface a40-nvlink-8-allgather "$@" -- \
        attune bench allgather -b 4M -e 4M -t 8 -n 300
    expect_status 0
    expect_output '# Out of bounds values : 0 OK'
    jq -e '.mismatches == 0' run/fabric-*.json >/dev/null || fail 'ranks differed'
}
expect_tuned() { # NCCL code, tuner ABI, profiler ABI
    expect_output "NCCL_TUNER_PLUGIN: using ncclTunerPlugin_v$2 of"
    expect_output "NCCL_PROFILER_PLUGIN: using ncclProfiler_v$3 of"
    jq -e --argjson code "$1" '.nccl_version == $code and (.tasks | length == 1) and
        (.tasks[0].trials >= 5)' run/tasks.json >/dev/null || fail "$(cat run/tasks.json)"
}
expect_untouched() {
    jq -e '.tasks == []' run/tasks.json >/dev/null || fail "$(cat run/tasks.json)"
}

@test "2.21: no cost table, one line, nothing touched" {
    tuned 2.21.5 --log debug
    expect_output 'using ncclTunerPlugin_v2'
    expect_output 'not tuned: this NCCL has no cost table'
    expect_untouched
}

@test "2.22: its profiler tells no rank, nothing touched" {
    tuned 2.22.3
    expect_output 'using ncclTunerPlugin_v3'
    reject_output 'using ncclProfiler'
    expect_output 'not tuned: its rank is unknown'
    expect_untouched
}

@test "2.24: the same, with tuner 4" {
    tuned 2.24.3
    expect_output 'using ncclTunerPlugin_v4'
    expect_output 'not tuned: its rank is unknown'
    expect_untouched
}

@test "2.27: not tuned as long as it may capture, tuned on the user's word" {
    tuned 2.27.5 --graphs --preload off
    expect_output 'not tuned: .*--no-graphs'
    expect_untouched
    tuned 2.27.5 --no-graphs
    expect_tuned 22705 4 4
}

@test "2.27.3 takes no path: not tuned, the doctor says why; tuned by the file's name" {
    tuned 2.27.3 --no-graphs
    expect_output 'NCCL_TUNER_PLUGIN: cannot load .*/libattune-nccl.so'
    [ "$(jq '.tasks | length' run/tasks.json)" -eq 0 ] || fail "$(cat run/tasks.json)"
    ATTUNE_FABRIC_VERSION=2.27.3 LD_LIBRARY_PATH=$ATTUNE_BUILD/fabric run --separate-stderr attune doctor
    expect_output '^warn  plugin: NCCL 2.27.3 takes plugins by their file.s name alone'
    export LD_LIBRARY_PATH=$ATTUNE_BUILD/lib NCCL_TUNER_PLUGIN=libattune-nccl.so NCCL_PROFILER_PLUGIN=libattune-nccl.so
    tuned 2.27.3 --no-graphs
    expect_tuned 22703 4 4
}

@test "2.28 and 2.29.7: algorithm, protocol and channels" {
    tuned 2.28.3
    expect_tuned 22803 5 5
    tuned 2.29.7
    expect_tuned 22907 5 6
    # No chunk was ever on trial.
    jq -e '.tasks[0].tuned.setting.chunk == 0' run/tasks.json >/dev/null || fail "$(cat run/tasks.json)"
}

@test "2.30.3 and later, 2.32 too: the newest that both know" {
    tuned 2.30.3
    expect_tuned 23003 6 6
    tuned 2.32.1
    expect_tuned 23201 6 6
}

@test "a version that is none is one line" {
    needs_parts
    ATTUNE_FABRIC_VERSION=3.0 LD_LIBRARY_PATH=$ATTUNE_BUILD/fabric run --separate-stderr \
        attune bench allreduce -b 1M -e 1M -t 2
    expect_status 2
    expect_one_line 'ATTUNE_FABRIC_VERSION=3.0: expected'
}
