# attune trace and attune stragglers: what was recorded, on one clock, and who is late.
load setup
load run-setup

segments() { [ "$(ls "$ATTUNE_SHM_DIR" | wc -l)" -ge 1 ]; }
check() { "$ATTUNE_BUILD/tests/test_trace_check" "$@"; }
field() { jq -r "$@" late.json; }

# traced FOLDER RUN-OPTION... -- BENCH-OPTION...: 16 modelled ranks, AllGather, observed.
traced() {
    local folder=$1 options=()
    shift
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    ATTUNE_FABRIC_ANY_RANKS=1 run timeout 100 attune run --quiet --observe --trace on \
        --fabric model --surface a40-nvlink-8-allgather --run-dir "$folder" "${options[@]}" -- \
        attune bench allgather -b 1M -e 1M -t 16 -c 0 "$@"
    expect_status 0
}

@test "a finished run of the repository: summary, checked traces, lines, the late rank" {
    local run=$ATTUNE_ROOT/tests/data/runs/late-rank
    run attune trace "$run"
    expect_status 0
    expect_output '^# trace of .*records in'
    expect_output '4 of 4 ranks recorded'
    run attune trace "$run" -o out.json.gz --per-rank ranks
    expect_status 0
    run check out.json.gz ranks/*.json.gz
    expect_status 0
    expect_output 'out.json.gz: good: [1-9][0-9]* calls, [1-9][0-9]* flows'
    [ "$(ls ranks | wc -l)" -eq 4 ]
    run attune stragglers "$run"
    expect_output 'LATE rank 2 '
    attune trace "$run" -o out.csv -q
    attune trace "$run" -o out.jsonl -q
    [ "$(grep -vc '^#' out.csv)" -eq "$(wc -l <out.jsonl)" ] || fail "CSV and JSON lines differ"
    attune trace "$run" -o - --format inspector | jq -es '
        length > 100 and all(.[]; .metadata.inspector_output_format_version == "v4.0"
            and .header.n_ranks == 4 and .coll_perf.coll_busbw_gbs > 0)' >/dev/null ||
        fail "not the lines of NCCL Inspector"
}

@test "--window, --ranks and --groups select, and say what is there when they match nothing" {
    local run=$ATTUNE_ROOT/tests/data/runs/late-rank
    attune trace "$run" -o all.jsonl -q
    attune trace "$run" -o some.jsonl -q --ranks 0,2 --window :0.2
    [ "$(jq -s '[.[1:][].rank] | unique | tostring' some.jsonl)" = '"[0,2]"' ]
    jq -es '.[1:] | length > 0 and all(.[]; .start_us < 200000)' some.jsonl >/dev/null
    local hash
    hash=$(jq -rs '.[1].communicator' all.jsonl)
    attune trace "$run" -o group.jsonl -q --groups "$hash"
    cmp all.jsonl group.jsonl
    run --separate-stderr attune trace "$run" -o x.csv --ranks 9
    expect_status 2
    expect_one_line 'this trace has 0 to 3'
    run --separate-stderr attune trace "$run" -o x.csv --groups 0xno
    expect_status 2
    run --separate-stderr attune trace "$run" -o x.csv --window 3:2
    expect_status 2
    run --separate-stderr attune trace "$run" -o x.tar
    expect_status 2
    expect_one_line 'format cannot be told'
    [ ! -e x.csv ]
}

@test "a folder without records is refused with the way to get them" {
    mkdir empty
    run --separate-stderr attune trace empty
    expect_status 6
    expect_one_line '--trace on'
    run --separate-stderr attune stragglers empty
    expect_status 6
    run --separate-stderr attune run --trace sometimes -- true
    expect_status 125
    expect_one_line "--trace: 'sometimes' is not accepted"
}

@test "a record file that was cut: one line with file and place, and what is good is shown" {
    cp -r "$ATTUNE_ROOT/tests/data/runs/late-rank" run
    local file=run/trace/node-0000-000001.records whole
    cp $file whole
    attune trace run -q -o whole.csv
    whole=$(grep -vc '^#' whole.csv)
    for size in 369871 300000 200001; do
        head -c $size whole >$file
        for command in 'trace run' 'trace run -o cut.csv -q' 'stragglers run'; do
            run --separate-stderr attune $command
            expect_status 0
            expect_one_line "warning: $file is cut: from byte [0-9]+ on its last [0-9]+ bytes are no whole frame"
            set -- $(grep -Eo '[0-9]+ on its last [0-9]+' <<<"$stderr")
            [ $(($1 + $5)) -eq $size ] || fail "the place is not in the file: $stderr"
        done
    done
    [ "$(grep -vc '^#' cut.csv)" -lt "$whole" ] && [ "$(grep -vc '^#' cut.csv)" -gt 300 ] || fail "calls left: $(wc -l <cut.csv)"
    attune report run --json | jq -e '.missing[] | select(.what == "some calls of the trace").why | contains("is cut: from byte")'
    # Damage in the middle, and a second file that is none.
    head -c 100 whole >run/trace/node-0000-000002.records
    { head -c 100000 whole && printf x && tail -c +100002 whole; } >$file
    run --separate-stderr attune stragglers run
    expect_status 0
    expect_one_line "node-0000-00000[12].records is "
    # Nothing can be read.
    head -c 100 whole >$file
    rm run/trace/node-0000-000002.records
    for command in 'trace run' 'trace run -o none.csv' 'stragglers run'; do
        run --separate-stderr attune $command
        expect_status 3
        expect_one_line "error: $file is cut at byte 100, in its header: nothing of it is used"
    done
    [ ! -e none.csv ] || fail 'an empty file was written'
    attune report run --json | jq -e '.missing[] | select(.what == "late ranks").why | contains("is cut at byte 100")'
}

@test "start and stop name a tasks.json that was cut, and ask nobody" {
    mkdir cut
    head -c 500 "$ATTUNE_ROOT/tests/data/runs/late-rank/tasks.json" >cut/tasks.json
    for verb in start stop; do
        run --separate-stderr attune trace $verb cut
        expect_status 3
        expect_one_line 'error: cut/tasks.json: no JSON: line [0-9]+'
    done
    [ ! -e cut/trace ] || fail 'a request was written'
}

@test "the end of a record file that is still being written is no damage" {
    cp -r "$ATTUNE_ROOT/tests/data/runs/late-rank" run
    head -c 300000 "$ATTUNE_ROOT/tests/data/runs/late-rank/trace/node-0000-000001.records" >run/trace/node-0000-000001.records
    rm run/manifest.json
    sed -i 's/"state": "finished"/"state": "running"/' run/tasks.json
    run --separate-stderr attune stragglers run
    expect_status 0
    [ -z "$stderr" ] || fail 'it warns'
    touch -d '1 minute ago' run/tasks.json
    run --separate-stderr attune stragglers run
    expect_one_line 'is cut: from byte'
}

@test "clocks that were not calibrated are never merged; one node's ranks may be" {
    "$ATTUNE_BUILD/bin/trace_records" two 4000 2 4 >/dev/null
    run attune trace two -o good.json -q
    expect_status 0
    run check good.json
    expect_status 0
    # The clock points of node 1 become a frame type of the future.
    "$ATTUNE_BUILD/tests/test_forget_clock" two/trace/node-0001-000001.records
    run --separate-stderr attune trace two -o bad.json
    expect_status 13
    expect_one_line 'the clock of node 1 .* was not calibrated'
    [ ! -e bad.json ]
    run --separate-stderr attune stragglers two
    expect_status 13
    run attune trace two -o one.json -q --ranks 2,3
    expect_status 0
    run attune trace two --per-rank each -q
    expect_status 0
}

@test "a large trace is cut into parts of limited size with an overview, each of them good" {
    "$ATTUNE_BUILD/bin/trace_records" big 60000 >/dev/null
    run attune trace big -o big.json.gz --part-size 4M
    expect_status 0
    expect_output 'overview of [0-9]+ parts'
    [ "$(ls big.part-*.json.gz | wc -l)" -ge 6 ] || fail "parts"
    for part in big.part-*.json.gz; do
        [ "$(zcat "$part" | wc -c)" -le 4194304 ] || fail "$part is too large"
    done
    run check big.json.gz big.part-*.json.gz
    expect_status 0
    [ "$(grep -o '[0-9]* calls' <<<"$output" | awk '{ n += $1 } END { print n }')" -eq 60000 ] ||
        fail "calls are lost or written twice"
}

# A file-size limit fails writes as a full disk does, without needing one.
short_of_room() { # BLOCKS-OF-1024 COMMAND...
    (trap '' XFSZ && ulimit -f "$1" && shift && "$@")
}

@test "a full disk: one line, no half file, and what stood there before is as it was" {
    "$ATTUNE_BUILD/bin/trace_records" full 60000 >/dev/null
    local name
    for name in out.json out.json.gz out.csv out.csv.gz out.jsonl; do
        run --separate-stderr short_of_room 200 attune trace full -o $name
        expect_status 4
        expect_one_line "cannot write $name: File too large"
        [ -z "$(ls -A | grep -v '^full$')" ] || fail "left behind: $(ls -A)"
    done
    run --separate-stderr short_of_room 200 attune trace full -o out.json.gz --part-size 8M
    expect_status 4
    expect_one_line 'cannot write out.part-.*.json.gz: File too large'
    [ -z "$(ls -A | grep -v '^full$')" ] || fail "left behind: $(ls -A)"
    run --separate-stderr short_of_room 40 attune trace full --per-rank each
    expect_status 4
    [ -z "$(ls -A each)" ] || fail "left behind: $(ls -A each)"
    attune trace full -o out.csv -q --window :0.01
    cp out.csv before.csv
    run --separate-stderr short_of_room 200 attune trace full -o out.csv
    expect_status 4
    cmp out.csv before.csv
    run --separate-stderr short_of_room 200 attune stragglers full --steps steps.csv
    expect_status 4
    [ ! -e steps.csv ] || fail "half of the steps"
    # What is no file cannot be put in place at the end.
    run --separate-stderr attune trace full -o /dev/full --format csv
    expect_status 4
    expect_one_line 'cannot write /dev/full: No space left'
    [ -c /dev/full ]
    run --separate-stderr sh -c 'attune trace full -o - --format csv >/dev/full'
    expect_status 4
    expect_one_line 'cannot write standard output: No space left'
}

@test "ring mode never grows, and what it holds can be read" {
    "$ATTUNE_BUILD/bin/trace_records" ring 400000 2 4 ring:4194304 >/dev/null
    for node in 0 1; do
        [ "$(cat ring/trace/node-000$node-*.ring.records | wc -c)" -le 4194304 ] || fail "grown"
    done
    run attune trace ring -o ring.json.gz -q
    expect_status 0
    run check ring.json.gz
    expect_status 0
    expect_output 'good: [1-9][0-9]* calls'
}

@test "kill -9 of the sidecar while it writes leaves a readable file" {
    needs_parts
    export ATTUNE_RUN_ID=killed ATTUNE_NODE=n0 NCCL_TUNER_PLUGIN=$ATTUNE_BUILD/lib/libattune-nccl.so
    export NCCL_PROFILER_PLUGIN=$NCCL_TUNER_PLUGIN NCCL_RUNTIME_CONNECT=0
    attuned --observe --trace on --run-dir "$CASE_DIR/run" 2>agent.log &
    local agent=$!
    wait_for 15 segments
    LD_LIBRARY_PATH=$ATTUNE_BUILD/fabric "$ATTUNE_BUILD/tests/test_ranks" 2 1 2000 4096 2000 &
    local job=$!
    wait_for 15 grep -q '"records":[1-9]' run/trace/node-0000.json
    kill -KILL $agent
    wait $agent || true
    wait $job
    run attune trace run -o killed.json
    expect_status 0
    run check killed.json
    expect_status 0
    expect_output 'good: [1-9][0-9]* calls'
    rm -f "$ATTUNE_SHM_DIR"/*
}

@test "start and stop in a running job; nothing is recorded before, between and after" {
    needs_parts
    attune run --quiet --observe --fabric real --run-dir run -- \
        attune bench allreduce -b 64K -e 64K -t 2 -c 0 --time 30 >/dev/null 2>&1 &
    local job=$!
    wait_for 15 test -e run/tasks.json
    run attune trace run
    expect_status 6
    run attune trace start run
    expect_status 0
    expect_output 'has started'
    sleep 0.7
    run attune trace stop run
    expect_status 0
    [ "$(jq .recording run/trace/node-0000.json)" = false ]
    run attune trace start run --trace ring:4M
    expect_status 0
    sleep 0.5
    kill -TERM $job
    wait $job || true
    run attune trace run --json
    expect_status 0
    [ "$(jq '.records > 10' <<<"$output")" = true ] || fail "records"
    ls run/trace/*.ring.records >/dev/null
    run --separate-stderr attune trace start run
    expect_status 6
    expect_one_line 'has finished'
}

@test "a run folder whose name reads as a pattern: start, stop and counters are found all the same" {
    needs_parts
    local folder='lr[1-9]*\a'
    attune run --quiet --observe --fabric real --counters on --run-dir "$folder" -- \
        attune bench allreduce -b 64K -e 64K -t 2 -c 0 --time 60 >/dev/null 2>&1 &
    local job=$!
    wait_for 15 test -e "$folder/tasks.json"
    run attune trace start "$folder"
    expect_status 0
    sleep 1.5
    run attune trace stop "$folder"
    expect_status 0
    kill -TERM $job
    wait $job || true
    attune trace "$folder" -o out.json -q
    [ ! -s "$folder/counters/node-0000.jsonl" ] || ! grep -q '"values"' "$folder/counters/node-0000.jsonl" ||
        grep -q '"ph":"C"' out.json || fail 'no counters in the trace'
}

@test "modelled fabric, 16 ranks: a rank delayed by 2, 20, 200 ms is named, nobody else" {
    needs_parts
    local ms
    for ms in 2 20 200; do
        rm -rf run
        traced run -- -n 100 --delay 5:$ms:40
        attune stragglers run --json >late.json
        [ "$(field '[.groups[].named[].rank] | unique | tostring')" = '[5]' ] || fail "$ms ms"
        # Of 201 calls the last 160 are delayed: more than 95 % of those that were recorded, which on a busy
        # machine are not all.
        [ "$(field '.groups[0] | .steps > 100 and ([.named[].named_steps] | add) > 0.95 * (.steps - 41)')" = true ] ||
            fail "$ms ms: too few: $(field -c '.groups[0] | [.steps, .named]')"
        [ "$(field '[.groups[].named[].named_steps] | add')" -le 160 ] || fail "$ms ms: too many"
        [ "$(field '[.groups[].named[]][0].onset_iteration')" -eq 40 ] || fail "$ms ms: onset"
    done
}

@test "modelled fabric, 16 ranks: nobody is named without a delay" {
    needs_parts
    traced run -- -n 100
    attune stragglers run --json >late.json
    [ "$(field '[.groups[].named[]] | length')" -eq 0 ]
    # Of 201 calls; on a busy machine not all are recorded.
    [ "$(field '[.groups[].steps] | add')" -gt 100 ]
}

# as_arrived MS LEAST: in at least LEAST steps rank 1 came last by more than half of MS; all but 5 % of them
# are named, and no step is in which the last one came less than 5 % of the period late. What cores that have
# other work do to the ranks is lateness too: arrivals are the truth, not the delay.
as_arrived() {
    awk -F, -v ms="$1" -v least="$2" -v period="$(field '.groups[0].period_us')" '
        /^[0-9]/ {
            delayed = ms > 0 && $7 == 1 && $8 > 500 * ms
            all += delayed
            named += delayed && $10
            wrong += $10 && $8 < 0.05 * period
        }
        END {
            printf "%d of %d late steps named, %d wrongly\n", named, all, wrong
            exit !(all >= least && named >= 0.95 * all && wrong == 0)
        }' steps.csv
}

# bats test_tags=long
@test "real fabric, 2 ranks, one a core: 20 and 200 ms are named, nobody without a reason" {
    needs_parts
    [ "$(nproc)" -ge 2 ] || skip "one core"
    local ms delay calls
    for ms in 0 20 200; do
        rm -rf run
        delay=() calls=400
        [ $ms -eq 0 ] || delay=(--delay "1:$ms:30") calls=60
        run timeout 100 attune run --quiet --observe --trace on --fabric real --run-dir run -- \
            attune bench allreduce -b 1M -e 1M --procs 2 -c 0 -n $calls "${delay[@]}"
        expect_status 0
        attune stragglers run --json --steps steps.csv >late.json
        [ "$(grep -c '^[0-9]' steps.csv)" -ge 60 ] || fail "$ms ms: too few steps were recorded"
        # The last 90 of 121 steps are delayed; a recording begins when the sidecar has looked.
        run as_arrived $ms $((ms > 0 ? 60 : 0))
        expect_status 0
    done
}

@test "Holistic Trace Analysis makes its tables of the per-rank traces" {
    local python=${ATTUNE_TEST_HTA:-python3}
    command -v "$python" >/dev/null || skip "no python3"
    attune trace "$ATTUNE_ROOT/tests/data/runs/late-rank" --per-rank ranks -q
    run "$python" "$ATTUNE_ROOT/tests/system/hta_tables.py" ranks
    [ "$status" -ne 77 ] || skip "${lines[0]}"
    expect_status 0
    expect_output 'COMMUNICATION'
    expect_output 'comp_comm_overlap_pctg'
}
