# attune run --quarantine: what was on trial when a run ended badly is not tried again.
# bats file_tags=mpi

load setup
load run-setup

@test "a folder that is no run is refused before anything is started" {
    attune_with_fake
    mkdir empty
    run --separate-stderr attune run --quarantine empty -- touch started
    expect_status 125
    expect_one_line '^attune: error: --quarantine: .*/empty: no run folder \(lists.jsonl\)$'
    run --separate-stderr attune run --quarantine nowhere -- touch started
    expect_status 125
    expect_one_line '^attune: error: --quarantine: nowhere: No such file or directory$'
    [ ! -e started ] || fail 'the command was started'
}

@test "lists that cannot be read are refused before the command is started" {
    needs_parts
    mkdir damaged
    local head='{"version":1,"what":"proposed lists"}'
    printf '%s\nnot a list\n{"task":1,"txn":2,"over":true}\n' "$head" >damaged/lists.jsonl
    run --separate-stderr attune run --run-dir run --quarantine damaged -- touch started
    expect_status 125
    expect_one_line '^attune: error: the sidecar did not start: --quarantine .*/damaged: line 2 of lists.jsonl is malformed \(its log is .*\): the command was not run$'
    [ ! -e started ] || fail 'the command was started'
    # The end of the run may have cut off the last line: that list was not voted on.
    printf '%s\n{"task":1,"tx' "$head" >damaged/lists.jsonl
    run --separate-stderr attune run --quiet --run-dir again --quarantine damaged -- touch started
    expect_status 0
    [ -e started ] || fail 'the command was not started'
}

@test "a job that fails in the search leaves its trials behind, and they are left out" {
    needs_parts
    # The sidecar ends itself with the third list committed: its trials are in force.
    ATTUNE_FAULT=committed:3:exit model_run first
    [ -s first/lists.jsonl ]
    suspects=$(jq -cs '[.[1:][] | select(.entries)] | last | [.entries[:-1][].setting]' first/lists.jsonl)
    [ "$(jq length <<<"$suspects")" -gt 0 ] || fail "$(cat first/lists.jsonl)"
    model_run second --quarantine first --log info
    expect_status 0
    grep -q 'quarantine: .* never tries' second/attuned.log || fail "$(cat second/attuned.log)"
    jq -es --argjson suspects "$suspects" \
        '[.[1:][] | select(.phase == "search" and .outcome == "ok") | .setting] as $tried
         | $tried | length > 0 and all(. as $s | $suspects | index($s) == null)' \
        second/trials.jsonl || fail "$(cat second/trials.jsonl)"
    jq -e '.runs[0] | .mismatches == 0 and .result_errors == 0' second/summary.json
}

@test "a command that fails while it is tuned is told what to do" {
    attune_with_fake
    sed 's/"phase": *"[a-z]*"/"phase": "search"/' "$ATTUNE_ROOT/tests/data/tasks/two-tasks.json" >tasks.json
    FAKE_TASKS=$PWD/tasks.json run --separate-stderr attune run --quiet --run-dir out -- \
        sh -c 'sleep 0.3; exit 3'
    expect_status 3
    [[ $stderr == *"failed while 2 tasks were being tuned; to leave out what was on trial then: attune run --quarantine "* ]] ||
        fail "$stderr"
}

@test "a search that the job's orderly end cuts short leaves nobody suspected" {
    needs_parts
    calls=300 model_run short --strategy random:trials=100000
    expect_status 0
    jq -es '[.[1:][] | select(.entries)] | length > 3' short/lists.jsonl || fail "$(cat short/lists.jsonl)"
    jq -es '([.[1:][] | select(.entries) | [.task, .txn]] - [.[1:][] | select(.over) | [.task, .txn]]) == []' \
        short/lists.jsonl || fail "$(tail -n 4 short/lists.jsonl)"
}
