# Strategies from outside the tree: a plugin built against the installed header, and programs that
# speak JSON lines with the strategy exec.
# bats file_tags=cpu

load setup

# An installed tree that was moved, and a plugin built against it alone, in $PWD.
installed() {
    DESTDIR=$PWD/stage cmake --install "$ATTUNE_BUILD" --prefix /opt/attune >install.log ||
        fail "$(tail -n 5 install.log)"
    mv stage/opt/attune moved
    export PATH=$PWD/moved/bin:${PATH#"$ATTUNE_BUILD/bin:"}
    export PKG_CONFIG_PATH
    PKG_CONFIG_PATH=$(dirname "$(find "$PWD/moved" -name attune.pc)")
}

needs_exec() {
    [ -e "$ATTUNE_BUILD/lib/attune/libattune-strategy-exec.so" ] || skip 'the strategy exec is not built'
    command -v python3 >/dev/null || skip 'python3 is not installed'
}

halving() { printf 'exec:command=python3 %s/examples/strategies/halving.py' "$ATTUNE_ROOT"; }

@test "a plugin built outside is found, checked, simulated and used live" {
    installed
    sed 's/\.name *= *"random"/.name = "mine"/' "$ATTUNE_ROOT"/plugins/random/random.c >mine.c
    cc -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -shared -fPIC \
        $(pkg-config --cflags attune) -o libattune-strategy-mine.so mine.c -lm

    run attune plugins --plugin-path "$PWD"
    expect_status 0
    expect_output '^mine 1: '

    run attune plugins check ./libattune-strategy-mine.so
    expect_status 0
    expect_output 'conforms$'
    reject_output '^FAIL'

    run attune sim --surface a40-nvlink-8-allgather --plugin-path "$PWD" --strategy mine:trials=20 \
        --seeds 2 --budget 400 --quiet --json sim.json
    expect_status 0
    jq -e '.rows | any(.strategy == "mine:trials=20" and .failed == 0 and .trials_median == 20)' sim.json ||
        fail 'it was not simulated'

    run attune run --fabric model --surface a40-nvlink-8-allgather --max-cost 0 --run-dir run \
        --plugin-path "$PWD" --strategy mine:trials=6 -- attune bench allgather -b 80M -e 80M -t 8 -n 500
    expect_status 0
    [ "$(jq -s '[.[] | select(.phase == "search")] | length' run/trials.jsonl)" = 6 ] ||
        fail 'it did not search the live job'
    [ "$(jq '.runs[0].mismatches' run/summary.json)" = 0 ]
}

@test "the walk-through of the documentation works as it is written" {
    installed
    awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$ATTUNE_ROOT/docs/write-a-strategy.md" >sweep.c
    cc -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -shared -fPIC \
        $(pkg-config --cflags attune) -o libattune-strategy-sweep.so sweep.c
    run attune plugins check ./libattune-strategy-sweep.so
    expect_status 0
    expect_output '^ok   space: six subspaces'
    expect_output 'conforms$'
    # The page quotes what is printed.
    local line
    for line in loads 'space: one subspace'; do
        line=$(grep -F -- "ok   $line" <<<"$output")
        grep -qxF -- "    $line" "$ATTUNE_ROOT/docs/write-a-strategy.md" || fail "the page has another line: $line"
    done
    run attune sim --plugin-path . --strategy sweep --strategy default --surface a40-nvlink-8-allgather --seeds 2
    expect_status 0
    expect_output '^  sweep '
    run attune plugins --plugin-path "$PWD"
    expect_status 0
    expect_output '^sweep 1: every channel count'
    [ -e "$ATTUNE_BUILD/bin/attuned" ] || skip 'the sidecar is not built'
    run attune run --fabric model --surface a40-nvlink-8-allgather --max-cost 0 --run-dir run --plugin-path "$PWD" \
        --strategy sweep:stride=2 -- attune bench allgather -b 80M -e 80M -t 8 -n 600
    expect_status 0
    [ "$(jq -s '[.[] | select(.phase == "search")] | length' run/trials.jsonl)" = 32 ] ||
        fail 'it did not search the live job'
}

@test "a program in Python searches, in the simulation and live" {
    needs_exec
    run attune sim --surface a40-nvlink-8-allgather --strategy "$(halving)" --seeds 2 --budget 600 --quiet \
        --json sim.json
    expect_status 0
    jq -e '.rows[0] | .failed == 0 and .trials_median > 48 and .gap_final_geomean < 0.15' sim.json ||
        fail 'it found nothing'
    [ -e "$ATTUNE_BUILD/bin/attuned" ] || skip 'the sidecar is not built'
    run attune run --fabric model --surface a40-nvlink-8-allgather --max-cost 0 --run-dir run \
        --strategy "$(halving)" -- attune bench allgather -b 80M -e 80M -t 8 -n 1500
    expect_status 0
    [ "$(jq -s '[.[] | select(.phase == "search")] | length' run/trials.jsonl)" -gt 48 ] ||
        fail 'it did not search the live job'
}

@test "what goes wrong with a program is one line and ends the search alone" {
    needs_exec
    try() { # TEXT COMMAND
        run attune plugins check "$ATTUNE_BUILD/lib/attune/libattune-strategy-exec.so" \
            --options "timeout=0.3,command=$2" --deadline 5
        expect_status 1
        expect_output "attune: strategy exec: $1"
        expect_output '^FAIL'
    }
    ready='read x; echo {}; read x'
    try 'the program ended with status 127 \(command not found\?\)' '/nowhere/at/all'
    try 'the program ended with status 3' 'exit 3'
    try 'the program was ended by signal 9 \(Killed\)' 'kill -9 $$'
    try 'the program gave no answer within 0.3 s' 'sleep 60'
    try 'the program wrote no JSON object: nonsense' 'read x; echo nonsense; cat >/dev/null'
    try 'the program says: I give up' "read x; echo '{\"error\":\"I give up\"}'"
    try "the program's answer to ask has no \"settings\" of at most 15" "$ready; echo {}; cat >/dev/null"
    try 'the program gave a setting whose algorithm is not known' \
        "$ready; echo '{\"settings\":[{\"algorithm\":\"star\"}]}'; cat >/dev/null"
    try 'the program gave a setting whose channels is not a whole number up to 65535' \
        "$ready; echo '{\"settings\":[{\"channels\":-1}]}'; cat >/dev/null"
    try 'the program gave a setting that is no JSON object' "$ready; echo '{\"settings\":[1]}'; cat >/dev/null"
    run attune plugins check "$ATTUNE_BUILD/lib/attune/libattune-strategy-exec.so"
    expect_status 1
    expect_output '^FAIL options +strategy exec: parameter command: "" is not accepted \(a program is needed\)'
}

@test "Optuna searches where it is installed" {
    needs_exec
    python3 -c 'import optuna' 2>/dev/null || skip 'Optuna is not installed (pip install optuna)'
    run attune sim --surface a40-nvlink-8-allgather --seeds 1 --budget 600 --quiet --json sim.json \
        --strategy "exec:timeout=60,command=python3 $ATTUNE_ROOT/examples/strategies/optuna_tpe.py"
    expect_status 0
    jq -e '.rows[0] | .failed == 0 and .trials_median == 60' sim.json || fail 'it did not search'
}

@test "without Optuna its example says so in one line" {
    needs_exec
    mkdir empty
    echo 'raise ImportError' >empty/optuna.py
    run attune plugins check "$ATTUNE_BUILD/lib/attune/libattune-strategy-exec.so" --options \
        "command=PYTHONPATH=$PWD/empty python3 $ATTUNE_ROOT/examples/strategies/optuna_tpe.py"
    expect_status 1
    expect_output 'the program says: optuna is not installed \(pip install optuna\)'
}
