# Shared setup of the system tests. A test file begins with
#
#     # bats file_tags=cpu          (the label: cpu, mpi, slurm or gpu; cpu when left out)
#     load setup
#
# Every case gets a folder of its own as working directory, temporary directory and home, and a
# shared-memory directory of its own. A case that leaves a process or a segment behind fails, even
# when all of its checks passed. A file that needs more than this defines its own setup and teardown
# and calls attune_setup and attune_teardown in them.

bats_require_minimum_version 1.5.0

ATTUNE_ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
ATTUNE_BUILD=${ATTUNE_BUILD:-$ATTUNE_ROOT/build/release}
export ATTUNE_ROOT ATTUNE_BUILD

hook_is_sanitized() {
    nm -D "$ATTUNE_BUILD/lib/libattune-nccl.so" 2>/dev/null | grep -Eq '__(asan|tsan)_init'
}

attune_setup() {
    if [ ! -x "$ATTUNE_BUILD/bin/attune" ]; then
        echo "$ATTUNE_BUILD/bin/attune is not built (ATTUNE_BUILD names the build folder)" >&2
        return 1
    fi
    local variable
    for variable in $(compgen -e); do
        case $variable in
        ATTUNE_ROOT | ATTUNE_BUILD | ATTUNE_TEST_* | ATTUNE_TALLY) ;;
        ATTUNE_* | NCCL_*) unset "$variable" ;;
        esac
    done
    # Short: Unix socket paths end at 108 bytes.
    CASE_DIR=$(mktemp -d "${TMPDIR:-/tmp}/case-XXXXXX")
    CASE_SHM=$(mktemp -d /dev/shm/attune-test-XXXXXX)
    export ATTUNE_TEST_CASE=$CASE_DIR ATTUNE_SHM_DIR=$CASE_SHM
    export TMPDIR=$CASE_DIR HOME=$CASE_DIR
    export PATH=$ATTUNE_BUILD/bin:$PATH
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
    # For builds with sanitizers; others do not look at these. Leaks are the unit tests' matter: a
    # sidecar that ends early leaves behind what Open MPI allocated, in modules that are unloaded.
    export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
    # A sanitized library cannot stand before a plain program: only where an option asks for it.
    ! hook_is_sanitized || export ATTUNE_GRAPHS=no
    cd "$CASE_DIR"
}

# Process ids, one a line, that were started by this case and still live.
attune_case_processes() {
    local environ pid
    for environ in $(grep -lzsxF -- "ATTUNE_TEST_CASE=$ATTUNE_TEST_CASE" /proc/[0-9]*/environ); do
        pid=${environ#/proc/}
        pid=${pid%/environ}
        # Gone, or a zombie that its parent has yet to collect.
        case $(cut -d' ' -f3 "/proc/$pid/stat" 2>/dev/null) in '' | Z | X) continue ;; esac
        echo "$pid"
    done
}

attune_teardown() {
    local left='' pid segment failed=0 tries
    [ -n "${CASE_DIR:-}" ] || return 0
    # What is ending by itself may take a moment to be gone.
    for tries in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        left=$(attune_case_processes)
        [ -n "$left" ] || break
        sleep 0.1
    done
    for pid in $left; do
        echo "left running: $pid $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null)" >&2
        kill -CONT "$pid" 2>/dev/null || true
        kill -KILL "$pid" 2>/dev/null || true
        failed=1
    done
    for segment in "$CASE_SHM"/*; do
        [ -e "$segment" ] || continue
        echo "left behind: $segment" >&2
        failed=1
    done
    cd /
    rm -rf "$CASE_SHM" "$CASE_DIR"
    return $failed
}

setup() { attune_setup; }
teardown() { attune_teardown; }

# fail TEXT...: end the case with this text, $status and $output.
fail() {
    { printf '%s\n' "$*"; printf 'status: %s\noutput:\n%s\n' "${status-}" "${output-}"; } >&2
    [ -z "${stderr-}" ] || printf 'standard error:\n%s\n' "$stderr" >&2
    return 1
}

# expect_status N: the last `run` ended with N.
expect_status() { [ "$status" -eq "$1" ] || fail "expected status $1"; }

# expect_output REGEX (extended): some line of $output matches.
expect_output() { grep -Eq -- "$1" <<<"$output" || fail "no line of output matches: $1"; }

# reject_output REGEX (extended): no line of $output matches.
reject_output() { ! grep -Eq -- "$1" <<<"$output" || fail "a line of output matches: $1"; }

# expect_one_line REGEX: after `run --separate-stderr`, standard error is one line and it matches.
expect_one_line() {
    [ "$(grep -c '' <<<"$stderr")" -eq 1 ] || fail "expected one line on standard error"
    grep -Eq -- "$1" <<<"$stderr" || fail "standard error does not match: $1"
}

# wait_for SECONDS COMMAND...: until COMMAND succeeds; fails when it never does.
wait_for() {
    local tries=$(($1 * 20))
    shift
    while [ "$tries" -gt 0 ]; do
        if "$@"; then return 0; fi
        sleep 0.05
        tries=$((tries - 1))
    done
    fail "waited in vain for: $*"
}
