# bats file_tags=mpi
# attune's counters as software-defined events, read back through PAPI.
load setup
load run-setup

setup() {
    attune_setup
    library=$ATTUNE_BUILD/lib/libattune-sde.so
    [ -e "$library" ] || skip 'libattune-sde.so is not built: no libsde (Debian package libpapi-dev)'
    # A sanitizer's runtime has to come first.
    ! ldd "$library" | grep -Eq 'lib[at]san' || skip 'a library with a sanitizer cannot be preloaded'
}

# metrics TRIALS: what a sidecar would leave in r/metrics.prom.
metrics() {
    mkdir -p r
    cat >r/new <<END
# TYPE attune_trials_total counter
attune_info{version="1"} 1
attune_running 1
attune_trials_total $1
attune_run_seconds_total 12.5
attune_task_duration_seconds{group="0xab",collective="allreduce",bytes="8",setting="now"} 0.0000255
END
    mv r/new r/metrics.prom
}

@test "papi_native_avail lists them" {
    command -v papi_native_avail >path || skip 'papi_native_avail is not installed (Debian package papi-tools)'
    metrics 3
    ATTUNE_RUN_DIR=r run papi_native_avail -sde "$library"
    expect_output 'sde:::attune::trials_total '
    expect_output 'sde:::attune::run_nanoseconds_total '
    expect_output 'sde:::attune::task_duration_nanoseconds/0xab/allreduce/8/now '
    reject_output 'attune::info'
}

@test "a PAPI program reads gauges as they are and what counters gained, while the file changes" {
    [ -x "$ATTUNE_BUILD/tests/test_sde_reader" ] || skip 'test_sde_reader is not built: no PAPI'
    metrics 3
    mkfifo lines
    ATTUNE_RUN_DIR=r LD_PRELOAD=$library "$ATTUNE_BUILD/tests/test_sde_reader" --line sde:::attune::trials_total \
        sde:::attune::running sde:::attune::task_duration_nanoseconds/0xab/allreduce/8/now <lines >values 2>errors 3>&- &
    reader=$!
    exec 7>lines
    wait_for 10 grep -q started values
    metrics 20
    sleep 0.3 # it looks at the file ten times a second
    echo >&7
    wait "$reader" || fail "$(cat errors)"
    run cat values
    expect_output '^sde:::attune::trials_total 17$'
    expect_output '^sde:::attune::running 1$'
    expect_output '/now 25500$'
}

@test "in a real job: the numbers are those of metrics.prom; without a run there are none, and no harm" {
    needs_parts
    [ -x "$ATTUNE_BUILD/tests/test_sde_reader" ] || skip 'test_sde_reader is not built: no PAPI'
    attune run --quiet --fabric model --surface a40-nvlink-8-allgather --run-dir r --max-cost 0 --metrics-file "$PWD/own.prom" -- bash -c '
        attune bench allgather -b 80M -e 80M -t 8 -w 5 -n 300 && sleep 2.2 &&
        cp "$ATTUNE_METRICS_FILE" inside.prom &&
        LD_PRELOAD=$1 "$2" sde:::attune::processes sde:::attune::decisions_total >values' - "$library" \
        "$ATTUNE_BUILD/tests/test_sde_reader"
    run cat values
    expect_output "^sde:::attune::processes $(sed -n 's/^attune_processes //p' inside.prom)\$"
    expect_output '^sde:::attune::decisions_total 0$' # since PAPI_start
    LD_PRELOAD=$library run true
    expect_status 0
    reject_output .
}
