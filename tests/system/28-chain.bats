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
        attune bench allgather -b 4M -e 4M -t 8 -n "${calls:-800}"
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

# profiled VERSION PROFILER [option...]
profiled() {
    local version=$1 plugin=$ATTUNE_BUILD/tests/stubs/stub_profiler_$2.so
    shift 2
    rm -rf run stub.log
    ATTUNE_FABRIC_VERSION=$version NCCL_PROFILER_PLUGIN=$plugin NCCL_DEBUG=INFO run attune run --quiet \
        --run-dir run --max-cost 0 --strategy random:trials=5 --fabric model --surface a40-nvlink-8-allgather "$@" -- \
        attune bench allgather -b 4M -e 4M -t 8 -n 1500
    expect_status 0
    jq -e '.mismatches == 0' run/fabric-*.json >/dev/null || fail 'ranks differed'
}
# Both halves saw what they asked for: every rank every collective, with its own handles as parents.
expect_both() {
    expect_output 'profiler stub \(.*\) gets its events as well'
    [ "$(grep -c '^rank ' stub.log)" -eq 8 ] || fail "$(cat stub.log)"
    [ "$(sed 's/^rank . //' stub.log | grep -Evc '^colls [0-9]{3,} kernels [0-9]{3,} bad 0 handles 0 stopped$')" -eq 0 ] ||
        fail "$(cat stub.log)"
    [ "$(cut -d' ' -f4 stub.log | sort -u | wc -l)" -eq 1 ] || fail "$(cat stub.log)"
    jq -e '.tasks[0].trials >= 3' run/tasks.json >/dev/null || fail "$(cat run/tasks.json)"
}

@test "another profiler gets its events with its own handles, and attune tunes: ABI 6" {
    needs_parts
    profiled 2.30.7 v6
    expect_both
}

@test "ABI 5 behind 6 and alone, ABI 4" {
    needs_parts
    profiled 2.30.7 v5
    expect_both
    profiled 2.28.3 v5
    expect_both
    profiled 2.27.5 v4 --no-graphs
    expect_both
}

@test "ABI 4 behind 5 and 6: it gets the events that it knows, in its shape" {
    needs_parts
    profiled 2.30.7 v4
    expect_output 'ncclProfiler_v4\) gets its events'
    expect_both
    profiled 2.28.3 v4
    expect_both
}

@test "a profiler that cannot start, or is none for this NCCL, is named and left out" {
    needs_parts
    STUB_FAIL=init profiled 2.30.7 v6
    expect_output 'profiler stub failed to start'
    [ ! -e stub.log ] || fail "$(cat stub.log)"
    jq -e '.tasks[0].trials >= 3' run/tasks.json >/dev/null || fail "$(cat run/tasks.json)"
    profiled 2.28.3 v6
    expect_output 'gets no events: .* no ncclProfiler_v4 or newer for this NCCL'
}

@test "a tuner and a profiler that come with the net plugin, as vendors ship them" {
    needs_parts
    NCCL_NET_PLUGIN=$ATTUNE_BUILD/tests/stubs/stub_net_v6.so tuned ''
    expect_output 'tuner stub \(the net plugin, ncclTunerPlugin_v6\) is asked first'
    expect_output 'profiler stub \(the net plugin, ncclProfiler_v6\) gets its events as well'
    [ "$(grep -c '^ranks 8 ' stub.log)" -eq 8 ] || fail "$(cat stub.log)"
    [ "$(grep -c '^rank .* bad 0 handles 0 stopped$' stub.log)" -eq 8 ] || fail "$(cat stub.log)"
    jq -e '.tasks[0] | .default.setting.protocol == "ll" and .default.setting.channels == 2' run/tasks.json >/dev/null ||
        fail "$(cat run/tasks.json)"
    NCCL_NET_PLUGIN=$ATTUNE_BUILD/tests/stubs/stub_net_v3.so tuned nowhere
    expect_output 'tuner nowhere cannot be loaded: as NCCL does, the net plugin is asked for one'
    expect_output 'tuner stub \(the net plugin, ncclTunerPlugin_v3\) is asked first'
    jq -e '.tasks[0] | .default.setting.protocol == "ll" and .default.setting.channels == 2' run/tasks.json >/dev/null ||
        fail "$(cat run/tasks.json)"
}

# asked VERSION VARIABLE=VALUE...: what the others were asked, in $alone by NCCL, in $behind by attune
# that stands before them.
asked() {
    local version=$1 way
    shift
    for way in alone behind; do
        rm -f stub.log
        (
            export ATTUNE_FABRIC_VERSION=$version LD_LIBRARY_PATH=$ATTUNE_BUILD/fabric:$PWD/lib
            # shellcheck disable=SC2163 # VARIABLE=VALUE
            export "$@"
            if [ $way = behind ]; then
                [ -z "${NCCL_TUNER_PLUGIN:-}" ] || export ATTUNE_CHAIN_TUNER=$NCCL_TUNER_PLUGIN
                export NCCL_TUNER_PLUGIN=$ATTUNE_BUILD/lib/libattune-nccl.so
                export NCCL_PROFILER_PLUGIN=$ATTUNE_BUILD/lib/libattune-nccl.so
            fi
            attune bench allreduce -b 4K -e 4K -t 2 -n 2 --warmup 0 >"$way.txt" 2>&1
        ) || fail "$version $*: $(cat $way.txt)"
        # Of a profiler only that it was there: kernels may end after the communicator.
        sed 's/^\(rank .\) .*/\1/' stub.log 2>/dev/null | sort >"$way.log" || true
    done
    alone=$(cat alone.log) behind=$(cat behind.log)
    [ "$alone" = "$behind" ] || fail "$version $*"$'\n'"NCCL alone: $alone"$'\n'"behind attune: $behind"
}

@test "who is asked behind attune is who NCCL would have asked, per version and variable" {
    needs_parts
    local stubs=$ATTUNE_BUILD/tests/stubs version found=0 none=0
    mkdir lib
    cp "$stubs/stub_net_v3.so" lib/libnccl-net-word.so
    for version in ${versions:-2.25.1 2.30.7}; do
        for case in "NCCL_NET_PLUGIN=$stubs/stub_net_v6.so" NCCL_NET_PLUGIN=word "NCCL_NET_PLUGIN=$stubs/stub_net_tuner_only.so" \
            "NCCL_NET_PLUGIN=$stubs/stub_net_tuner_only.so,$stubs/stub_net_v3.so" NCCL_NET_PLUGIN=none \
            "NCCL_NET_PLUGIN=word NCCL_TUNER_PLUGIN=nowhere" "NCCL_NET_PLUGIN=word NCCL_TUNER_PLUGIN=none"; do
            # shellcheck disable=SC2086 # several variables
            asked "$version" $case
            [ -n "$alone" ] && found=$((found + 1)) || none=$((none + 1))
        done
        cp "$stubs/stub_net_v3.so" lib/libnccl-net.so
        asked "$version" NCCL_DEBUG=WARN
        [ -n "$alone" ] || fail "libnccl-net.so was not asked by $version"
        asked "$version" NCCL_NET_PLUGIN=
        cp "$stubs/stub_profiler_v6.so" lib/libnccl-tuner.so # a file without a tuner ends the search
        asked "$version" NCCL_DEBUG=WARN
        reject_asked
        rm lib/libnccl-net.so lib/libnccl-tuner.so
    done
    [ "$found" -ge 4 ] && [ "$none" -ge 4 ] || fail "asked in $found cases, not in $none: too alike to tell"
}
reject_asked() { ! grep -q '^ranks ' <<<"$alone" || fail "asked: $alone"; }

# bats test_tags=long
@test "the same for the versions between" {
    versions='2.22.3 2.24.3 2.26.2 2.27.3 2.27.7 2.28.9 2.29.2'
    needs_parts
    local stubs=$ATTUNE_BUILD/tests/stubs version
    mkdir lib
    cp "$stubs/stub_net_v3.so" lib/libnccl-net-word.so
    for version in $versions; do
        asked "$version" "NCCL_NET_PLUGIN=$stubs/stub_net_v6.so"
        asked "$version" NCCL_NET_PLUGIN=word
        [ -n "$alone" ] || fail "the net plugin's tuner was not asked by $version"
        asked "$version" "NCCL_NET_PLUGIN=$stubs/stub_net_tuner_only.so,$stubs/stub_net_v3.so"
        asked "$version" NCCL_NET_PLUGIN=STATIC_PLUGIN
        asked "$version" NCCL_NET_PLUGIN=word NCCL_TUNER_PLUGIN=nowhere
        cp "$stubs/stub_net_tuner_only.so" lib/libnccl-net.so
        asked "$version" NCCL_NET_PLUGIN=
        rm lib/libnccl-net.so
    done
}
