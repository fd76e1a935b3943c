# attune run --apply: the settings of a finished run, without a search; what does not fit is refused.
# bats file_tags=cpu

load setup
load run-setup

refused() {
    local regex=$1
    shift
    run --separate-stderr attune run "$@" -- touch started
    expect_status 125
    expect_one_line "^attune: error: --apply.*${regex#--apply}"
    [ ! -e started ] || fail 'the command was started'
}

@test "a folder that is no run is refused before anything is started" {
    attune_with_fake
    unset ATTUNE_OBSERVE
    refused 'nowhere: No such file or directory' --apply nowhere
    mkdir empty
    refused 'empty/tasks.json: there is no such file' --apply empty
    mkdir broken old none
    echo '{"version":1,' >broken/tasks.json
    refused 'broken/tasks.json: no JSON: line 2' --apply broken
    sed 's/"version":1/"version":7/' "$ATTUNE_ROOT/tests/data/tasks/two-tasks.json" >old/tasks.json
    refused 'old/tasks.json: the format.s version is 7, this attune reads version 1' --apply old
    echo '{"version":1,"nccl_version":0,"tasks":[]}' >none/tasks.json
    refused 'none/tasks.json has no task' --apply none
    cp "$ATTUNE_ROOT/tests/data/tasks/two-tasks.json" none/tasks.json
    refused '--apply and --observe exclude each other' --apply none --observe
}

@test "the sidecar gets the folder with its whole path, and no strategy is needed" {
    attune_with_fake
    unset ATTUNE_OBSERVE
    mkdir before
    cp "$ATTUNE_ROOT/tests/data/tasks/two-tasks.json" before/tasks.json
    run attune run --strategy nosuch --apply before --run-dir out -- true
    expect_status 0
    grep -qx -- "--apply=$PWD/before" out/fake-arguments
    jq -e --arg folder "$PWD/before" '.options.apply == $folder' out/manifest.json
}

@test "applied to the same job: the tuned setting from the start, no trial" {
    needs_parts
    model_run first
    expect_status 0
    jq -e '.runs[0].tasks[0] | .kept_default == false and .trials > 0' first/summary.json ||
        fail "$(cat first/summary.txt)"
    calls=200 model_run second --apply first
    expect_status 0
    jq -e '.runs[0] | .mismatches == 0 and .result_errors == 0 and .tasks[0].trials == 0' \
        second/summary.json || fail "$(cat second/summary.txt second/attuned.log)"
    [ "$(jq -c '.runs[0].tasks[0].setting' first/summary.json)" = \
        "$(jq -c '.runs[0].tasks[0].setting' second/summary.json)" ] ||
        fail "$(cat first/summary.txt second/summary.txt)"
}

@test "applied of a run that found nothing: said, as no search follows" {
    needs_parts
    calls=100 model_run first
    jq -e '.tasks[0].phase != "settled"' first/tasks.json || skip 'the search had ended'
    reject_output 'again without a search'
    calls=100 model_run second --apply first
    expect_status 0
    expect_output '1 of its 1 tasks were not searched to the end'
}

@test "another NCCL version, device or number of ranks: NCCL's choice stays, with the reason" {
    needs_parts
    local change
    for change in '.nccl_version = 22809' '.device = "another device"' '.tasks[].ranks = 16' '.tasks[].nodes = 2'; do
        rm -rf before out
        mkdir before
        # What a finished run on this fabric would have written.
        jq "$change" <<'EOF' >before/tasks.json
{"version":1,"attune":"0.1.0","nccl_version":23007,"device":"host, 84 units","state":"finished",
 "agent":{},"coverage":{},"cost":{},"tasks":[{"group":"0x1","ranks":8,"nodes":1,
 "collective":"allgather","bytes":83886080,"phase":"settled","kept_default":false,"reason":"",
 "default":{"setting":{"algorithm":"ring","protocol":"simple","transport":"keep","channels":8,
  "threads":0,"chunk":0},"median_us":2580.0,"samples":30},
 "tuned":{"setting":{"algorithm":"ring","protocol":"ll128","transport":"keep","channels":3,
  "threads":0,"chunk":0},"median_us":2100.0,"samples":30}}]}
EOF
        calls=100 model_run out --apply before
        expect_status 0
        jq -e '.runs[0] | .mismatches == 0 and .tasks[0].kept_default and
               (.tasks[0].reason | length > 0)' out/summary.json ||
            fail "$change: $(cat out/summary.txt out/attuned.log)"
    done
}
