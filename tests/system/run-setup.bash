# For the tests of `attune run`: an installed tree whose sidecar is the stand-in, and a check that the
# real parts are there.

# attune_with_fake [TASKS-FILE [BEHAVIOUR]]: from now on `attune` is a copy beside tests/system/fake/attuned,
# which leaves tests/data/tasks/TASKS-FILE as tasks.json.
attune_with_fake() {
    mkdir -p tree/bin tree/lib
    cp "$ATTUNE_BUILD/bin/attune" "$ATTUNE_ROOT/tests/system/fake/attuned" tree/bin/
    cp "$ATTUNE_BUILD/lib/libattune-nccl.so" tree/lib/
    [ ! -d "$ATTUNE_BUILD/lib/attune" ] || ln -sfn "$ATTUNE_BUILD/lib/attune" tree/lib/attune
    [ -e tree/lib/attune/libattune-strategy-coordinate_descent.so ] ||
        export ATTUNE_OBSERVE=yes # no strategy is looked up then
    export PATH=$PWD/tree/bin:$PATH
    [ -z "${1:-}" ] || export FAKE_TASKS=$ATTUNE_ROOT/tests/data/tasks/$1
    [ -z "${2:-}" ] || export FAKE_SIDECAR=$2
}

# Skip when a part of the real thing is not built.
needs_parts() {
    local part
    for part in bin/attuned lib/libattune-nccl.so fabric/libnccl.so.2 \
        lib/attune/libattune-strategy-coordinate_descent.so; do
        [ -e "$ATTUNE_BUILD/$part" ] || skip "$part is not built"
    done
    attune help | grep -q '^  bench ' || skip 'attune bench is not built'
}

# [calls=N] model_run FOLDER [OPTION...]: 8 ranks of the modelled A40 machine, through the real
# sidecar; twice N calls.
model_run() {
    local folder=$1
    shift
    run attune run --fabric model --surface a40-nvlink-8-allgather --run-dir "$folder" --max-cost 0 \
        "$@" -- attune bench allgather -b 80M -e 80M -t 8 -w 5 -n "${calls:-1500}"
}

# Programs without a sanitizer cannot take a library with one.
needs_plain_hook() {
    ! hook_is_sanitized || skip 'the hook is built with a sanitizer'
}
