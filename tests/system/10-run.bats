# attune run: what the command gets, what comes back, what is left in the run folder.
# bats file_tags=cpu

load setup
load run-setup

@test "the exit status is the command's own" {
    attune_with_fake
    run attune run -- true
    expect_status 0
    run attune run -- sh -c 'exit 7'
    expect_status 7
    run attune run sh -c 'exit 8'
    expect_status 8
}

@test "a command that a signal ended gives 128+n" {
    attune_with_fake
    run attune run -- sh -c 'kill -9 $$'
    expect_status 137
    run attune run -- sh -c 'kill -TERM $$'
    expect_status 143
}

@test "a command that is not there gives 127, one that cannot be run 126, in one line" {
    attune_with_fake
    run -127 --separate-stderr attune run -- ./nothing-here
    expect_status 127
    expect_one_line './nothing-here cannot be run: No such file'
    run -127 --separate-stderr attune run -- no-such-program-anywhere
    expect_one_line 'no-such-program-anywhere cannot be run: No such file'
    echo text >plain
    run --separate-stderr attune run -- ./plain
    expect_status 126
    expect_one_line './plain cannot be run: Permission denied'
}

@test "a command that cannot be run leaves no run folder, and one that was there as it was" {
    attune_with_fake
    mkdir here
    run -127 attune run --run-dir here -- ./nothing-here
    run -127 attune run --run-dir a/new/one -- ./nothing-here
    run -127 attune run -- ./nothing-here
    echo text >plain
    run -126 attune run -- ./plain
    [ -d here ] || fail 'the folder that was there is gone'
    [ -z "$(ls here)" ] || fail "left in it: $(ls here)"
    for folder in a attune-*; do
        [ ! -e "$folder" ] || fail "left behind: $folder"
    done
}

@test "a command whose interpreter is missing is seen late: the run folder says how it ended" {
    attune_with_fake
    printf '#!/no/such/interpreter\n' >script
    chmod +x script
    run -127 --separate-stderr attune run --run-dir out -- ./script
    expect_one_line './script cannot be run: No such file'
    [ "$(jq .exit_status out/manifest.json)" = 127 ] || fail "$(cat out/manifest.json)"
}

@test "the command gets the hook, the run and the segment's place" {
    attune_with_fake
    NCCL_DEBUG=WARN run --separate-stderr attune run --run-dir out/here --run-id the-run --node n1 -- env
    expect_status 0
    expect_output "^NCCL_TUNER_PLUGIN=$PWD/tree/lib/libattune-nccl.so$"
    expect_output "^NCCL_PROFILER_PLUGIN=$PWD/tree/lib/libattune-nccl.so$"
    expect_output "^NCCL_RUNTIME_CONNECT=0$"
    expect_output "^NCCL_DEBUG=WARN$"
    expect_output "^ATTUNE_RUN_ID=the-run$"
    expect_output "^ATTUNE_NODE=n1$"
    expect_output "^ATTUNE_RUN_DIR=$PWD/out/here$"
    expect_output "^ATTUNE_SHM_DIR=$ATTUNE_SHM_DIR$"
    reject_output "^ATTUNE_FABRIC_MODE="
}

@test "the sidecar gets every option, an own session and no job variables" {
    attune_with_fake
    NCCL_DEBUG=WARN attune run --run-dir out --max-cost 2% --samples 7 --observe -- true
    run cat out/fake-arguments
    expect_output "^--run-dir=$PWD/out$"
    expect_output '^--max-cost=2%$'
    expect_output '^--samples=7$'
    expect_output '^--observe=yes$'
    expect_output '^--run-id=[0-9]{8}-[0-9]{6}-[0-9a-f]{4}$'
    run cat out/fake-environment
    expect_output '^OMPI_ALLOW_RUN_AS_ROOT=1$'
    expect_output '^NCCL_DEBUG=WARN$'
    reject_output '^NCCL_TUNER_PLUGIN='
    run cat out/attuned.log
    expect_output 'the log of the stand-in'
}

@test "a user's NCCL_RUNTIME_CONNECT stays, and --log info explains it" {
    attune_with_fake
    NCCL_RUNTIME_CONNECT=1 run attune run --log info -- env
    expect_output '^NCCL_RUNTIME_CONNECT=1$'
    expect_output "NCCL_RUNTIME_CONNECT=1 is the user's"
    run attune run --log info -- true
    expect_output 'NCCL_RUNTIME_CONNECT=0: .*device memory'
    run attune run -- true
    reject_output 'NCCL_RUNTIME_CONNECT'
}

@test "standard output is the command's; the table goes to standard error and summary.txt" {
    attune_with_fake two-tasks.json
    run --separate-stderr attune run --run-dir out -- echo hello
    expect_status 0
    [ "$output" = hello ] || fail 'standard output is not the command'
    output=$stderr
    expect_output 'allgather 80M x8 +ring/simple ch=8 +ring/simple ch=20 chunk=128K +30\.08 +38\.62 +26\.32 +33\.79 +1\.284x +41 +350'
    expect_output "allreduce 1M x8 +tree/ll ch=16 +kept NCCL's choice +10\.49 +10\.49 +18\.35 +18\.35 +1\.000x +38 +310"
    expect_output 'gain 0\.3 % is within the noise'
    expect_output 'cost: trials lost 12\.345 ms of 4\.568 s run time \(0\.27 %\)'
    expect_output 'coverage: 10000 calls, 8000 timed, 2000 not \(off 1990, lost 10\); 3 frozen, 4 unseen'
    expect_output 'waits: 7 calls waited for a decision .*longest 123\.4 us'
    expect_output "run folder: $PWD/out"
    diff out/summary.txt <(printf '%s\n' "$stderr") || fail 'summary.txt differs'
}

@test "--quiet prints nothing and writes the run folder all the same" {
    attune_with_fake two-tasks.json
    run attune run --quiet --run-dir out -- true
    expect_status 0
    [ -z "$output" ] || fail 'expected silence'
    [ -s out/summary.json ] && [ -s out/tuner.csv ] && [ -s out/summary.txt ]
}

@test "the run folder tells what was run, how it ended and what was found" {
    attune_with_fake two-tasks.json
    run attune run --run-dir out --run-id r1 -- sh -c 'exit 3' 'an argument'
    expect_status 3
    jq -e '.version == 1 and .run_id == "r1" and .exit_status == 3 and .duration_s >= 0 and
           .command == ["sh", "-c", "exit 3", "an argument"] and .argv[0] == "run" and
           (.host | length > 0) and (.started | endswith("Z")) and (.ended | endswith("Z")) and
           .options["max-cost"] == "5%" and .environment.NCCL_RUNTIME_CONNECT == "0" and
           (.environment | keys | all(startswith("NCCL_") or startswith("ATTUNE_"))) and
           .sidecar.end == "exit status 0"' out/manifest.json || fail "$(cat out/manifest.json)"
    jq -e '.version == 1 and (.runs | length == 1) and
           (.runs[0] | .name == "out" and .fabric == "gpu" and .surface == null and
            .load == "none" and .ranks == 8 and .mismatches == null and .result_errors == null and
            (.tasks | length == 2)) and
           (.runs[0].tasks[0] | .collective == "allgather" and .bytes == 83886080 and
            (.default_gbs - 30.08 | fabs) < 0.001 and (.tuned_gbs - 38.62 | fabs) < 0.001 and
            (.tuned_busbw_gbs - 33.7925 | fabs) < 0.001 and (.speedup - 1.28391 | fabs) < 0.0001 and
            .trials == 41 and .calls == 350 and .kept_default == false and
            .setting == {"algorithm": "ring", "protocol": "simple", "transport": "keep",
                         "channels": 20, "threads": 0, "chunk": 131072})' out/summary.json ||
        fail "$(cat out/summary.json)"
    [ -e out/fake-end ] || fail 'the sidecar was not asked to end'
}

@test "what the fabric and the driver found is in the summary" {
    attune_with_fake two-tasks.json
    attune run --quiet --run-dir out -- sh -c '
        echo "{\"version\":1,\"fabric\":\"model\",\"surface\":\"s\",\"load\":\"heavy\",\"ranks\":8,\"calls\":100,\"mismatches\":0}" >$ATTUNE_RUN_DIR/fabric-1.json
        echo "{\"version\":1,\"fabric\":\"model\",\"surface\":\"s\",\"load\":\"heavy\",\"ranks\":8,\"calls\":50,\"mismatches\":2}" >$ATTUNE_RUN_DIR/fabric-2.json
        echo "{\"version\":1,\"result_errors\":3}" >$ATTUNE_RUN_DIR/bench-1.json'
    jq -e '.runs[0] | .fabric == "model" and .surface == "s" and .load == "heavy" and
           .mismatches == 2 and .result_errors == 3' out/summary.json || fail "$(cat out/summary.json)"
    grep -q 'checks: 2 mismatches between ranks in 150 calls; 3 wrong results' out/summary.txt
}

@test "signals to attune are passed on to the command" {
    attune_with_fake
    local name
    for name in TERM INT HUP USR1; do
        # A shell starts background commands with SIGINT ignored.
        env --default-signal="$name" attune run --quiet --run-dir "out-$name" -- sh -c "
            trap 'echo got >got-$name; exit 21' $name
            : >ready-$name
            while :; do sleep 0.05; done" &
        wait_for 20 test -e "ready-$name"
        kill -s "$name" $!
        status=0
        wait $! || status=$?
        expect_status 21
        [ -e "got-$name" ] || fail "SIG$name did not arrive"
    done
}

@test "the job outlives a sidecar that dies, and one line says so" {
    attune_with_fake two-tasks.json mortal
    run --separate-stderr attune run --quiet --run-dir out -- sh -c '
        : >$ATTUNE_RUN_DIR/die; sleep 1; echo finished; exit 5'
    expect_status 5
    expect_output '^finished$'
    expect_one_line 'the sidecar is gone \(killed by signal 9.*the job goes on'
    jq -e '.sidecar.end | startswith("killed by signal 9")' out/manifest.json
    jq -e '.runs[0].tasks | length == 2' out/summary.json
}

@test "a sidecar that was killed: the table and everything that reads the run later say so" {
    jq '.state = "running"' "$ATTUNE_ROOT/tests/data/tasks/two-tasks.json" >running.json
    attune_with_fake '' mortal
    export FAKE_TASKS=$PWD/running.json
    attune run --run-dir out -- sh -c ': >$ATTUNE_RUN_DIR/die; sleep 1' 2>said
    local line='not finished: the sidecar \(killed by signal 9 \(Killed\)\) left no closing report'
    grep -Eq "^# $line; numbers are those of its last one$" out/summary.txt || fail "$(cat out/summary.txt)"
    grep -Eq "^# $line" said || fail "$(cat said)"
    jq -e '.runs[0].state == "unfinished"' out/summary.json
    run --separate-stderr attune report out --json
    expect_status 0
    expect_one_line "out: $line"
    run --separate-stderr attune report --compare out out
    [ "$(grep -Ec "out: $line" <<<"$stderr")" -eq 2 ] || fail 'not said of both'
    run attune top --once out
    expect_output 'NOT FINISHED: the sidecar is gone \(killed by signal 9'
    run --separate-stderr attune top --lines out
    expect_status 16
    expect_one_line 'not finished: the sidecar is gone \(killed by signal 9'
    unset FAKE_SIDECAR
    run --separate-stderr attune run --quiet --apply out -- true
    expect_status 0
    grep -Eq "\-\-apply: out: $line" <<<"$stderr" || fail 'not said of what is applied'
}

@test "a run that is under way is not taken for one whose sidecar is gone" {
    jq '.state = "running"' "$ATTUNE_ROOT/tests/data/tasks/two-tasks.json" >running.json
    attune_with_fake
    export FAKE_TASKS=$PWD/running.json
    run --separate-stderr attune run --quiet --run-dir out -- attune report out --json
    expect_status 0
    [ "$(jq -r '.missing[] | select(.what == "the end of the run").why' <<<"$output")" = \
        'it is under way: numbers are those of the last report' ] || fail 'it says something else'
    reject_output 'not finished'
    [ -z "$stderr" ] || fail 'it warns'
}

@test "a sidecar that is deaf to SIGTERM is killed" {
    attune_with_fake two-tasks.json stubborn
    run attune run --quiet --run-dir out -- true
    expect_status 0
    jq -e '.sidecar.end | startswith("killed by signal 9")' out/manifest.json
}

@test "the sidecar ends when attune itself is killed" {
    attune_with_fake
    attune run --quiet --run-dir out -- sh -c 'echo $$ >ready; exec sleep 5' 3>&- &
    local attune=$!
    wait_for 20 test -s ready
    kill -9 $attune
    wait_for 5 test -e out/fake-end
    kill -9 "$(cat ready)"
}

@test "on a terminal: a progress line, and Ctrl-C reaches the command once" {
    command -v script >/dev/null || skip 'script(1) is not installed'
    attune_with_fake two-tasks.json
    cat >job.sh <<'EOF'
interrupts=0
trap 'interrupts=$((interrupts + 1))' INT
: >ready
while [ ! -e end ]; do sleep 0.05; done
echo "interrupted $interrupts times"
EOF
    { wait_for 20 test -e ready; sleep 1.5; printf '\003'; sleep 0.5; : >end; } |
        timeout 30 script -qec 'exec attune run --run-dir out -- sh job.sh' /dev/null >typescript
    output=$(tr '\r' '\n' <typescript)
    expect_output '^attune: [0-9]+ s: 2 tasks, 2 settled; lost 0.27 %'
    expect_output 'interrupted 1 times'
    expect_output 'allgather 80M x8'
}

@test "no tasks: one line says that no collective was seen" {
    attune_with_fake
    echo '{"version":1,"attune":"0.1.0","nccl_version":0,"device":"","state":"finished","agent":{},"coverage":{},"cost":{},"tasks":[]}' >none.json
    FAKE_TASKS=$PWD/none.json run attune run --run-dir out -- true
    expect_status 0
    expect_output 'no collective was seen'
    reject_output 'attune run --apply'
    jq -e '.runs[0].tasks == []' out/summary.json
}

@test "a hook that is switched off is no question to the user" {
    attune_with_fake
    ATTUNE_DISABLE=1 run attune run --run-dir out -- true
    expect_status 0
    expect_output 'ATTUNE_DISABLE=1: the hook does nothing'
    ATTUNE_DISABLE=0 run attune run --run-dir again -- true
    reject_output 'ATTUNE_DISABLE'
}

@test "--observe shows what NCCL chooses, and how fast that is" {
    needs_parts
    run timeout 60 attune run --observe --fabric real --run-dir out -- \
        attune bench allreduce -b 1M -e 1M -t 2 -n 500
    expect_status 0
    jq -e '.runs[0].tasks[0] | .default_gbs > 0 and .tuned_gbs == null and .speedup == null' \
        out/summary.json || fail "$(cat out/summary.txt)"
    reject_output 'not seen'
}

@test "two runs at once do not disturb each other" {
    attune_with_fake two-tasks.json
    attune run --quiet --run-dir a -- sleep 0.5 &
    local first=$!
    attune run --quiet --run-dir b -- sleep 0.5 &
    wait $first && wait $!
    [ -s a/summary.json ] && [ -s b/summary.json ]
    [ "$(jq -r .run_id a/manifest.json)" != "$(jq -r .run_id b/manifest.json)" ]
}

@test "on the modelled fabric: tuned, equal on all ranks, no segment left" {
    needs_parts
    model_run out
    expect_status 0
    expect_output 'allgather 80M x8 '
    jq -e '.runs[0] | .fabric == "model" and .surface == "a40-nvlink-8-allgather" and
           .mismatches == 0 and .result_errors == 0 and .tasks[0].speedup >= 0.97 and
           .tasks[0].trials > 0' out/summary.json || fail "$(cat out/summary.txt)"
    [ -s out/trials.jsonl ]
    [ -z "$(ls "$ATTUNE_SHM_DIR")" ] || fail "left: $(ls "$ATTUNE_SHM_DIR")"
}

@test "every load that the surface has is played, and no other" {
    needs_parts
    run timeout 60 attune run --fabric model --surface a40-nvlink-8-allgather --load gemm --run-dir out -- \
        attune bench allgather -b 80M -e 80M -t 8 -n 20
    expect_status 0
    [ "$(jq -r '.runs[0].load' out/summary.json)" = gemm ]
    run attune run --fabric model --surface a40-nvlink-8-allgather --load windy -- true
    expect_status 125
    expect_output "has no load 'windy', but none, light, heavy, gemm"
}

@test "on the real fabric: every size is tuned or kept, results are right" {
    needs_parts
    run attune run --fabric real --run-dir out --max-cost 0 -- \
        attune bench allreduce -b 64K -e 256K -f 4 -n 100 -t 2 --time 2
    expect_status 0
    jq -e '.runs[0] | .fabric == "real" and .mismatches == 0 and .result_errors == 0 and
           (.tasks | length == 2)' out/summary.json || fail "$(cat out/summary.txt)"
}

@test "two tuned runs on one node at once do not see each other" {
    needs_parts
    model_run a &
    local first=$!
    model_run b
    wait $first
    jq -e -s 'all(.[].runs[0]; .mismatches == 0 and .result_errors == 0 and (.tasks | length == 1))' \
        a/summary.json b/summary.json || fail "$(cat a/summary.txt b/summary.txt)"
    [ -z "$(ls "$ATTUNE_SHM_DIR")" ] || fail "left: $(ls "$ATTUNE_SHM_DIR")"
}

@test "a run folder with a long path: all files are in it and none beside it" {
    needs_parts
    local part=$(printf 'd%.0s' {1..200})
    local folder=$part/$part/$part/$part/$part/$part
    run attune run --fabric model --surface a40-nvlink-8-allgather --run-dir "$folder" --quiet -- attune bench allgather -b 4M -e 4M -t 8
    expect_status 0
    find "$part" -type f -path "$folder/fabric-*.json" | grep -q . || fail "$(ls "$folder")"
    run find "$part" -type f -not -path "$folder/*"
    [ -z "$output" ] || fail 'written beside it'
}

settled() { jq -e '[.tasks[] | select(.phase == "settled")] | length == 2' out/tasks.json >/dev/null 2>&1; }

# attune_lines COMMAND...: no line of what it prints began within the name of the run.
attune_lines() {
    run attune "$@"
    expect_status 0
    reject_output '^(yz|zx)'
    expect_output 'run\\nyz\\tzx\\x1b'
}

@test "a run folder with control characters in its name: a line stays a line, the command can be pasted" {
    needs_parts
    local folder=$'run\nyz\tzx\e' line
    calls=1000 model_run "$folder" --trace on --strategy random:trials=2 --max-cost 0
    expect_status 0
    reject_output '^(yz|zx)'
    expect_output '^# run\\nyz\\tzx\\x1b: 8 ranks'
    run cat "$folder/summary.txt"
    expect_output '^# run folder: .*/run\\nyz\\tzx\\x1b'
    reject_output '^[^# ]'
    run cat "$folder/tuner.csv"
    expect_output '^# from run run\\nyz\\tzx\\x1b of '
    attune_lines trace "$folder"
    attune_lines trace "$folder" --format csv -o -
    attune_lines stragglers "$folder"
    attune_lines stragglers "$folder" --steps -
    attune_lines report --compare "$folder" "$folder"
    run attune report --json $'no\nyz'
    expect_output '^attune: error: no\\nyz: '
    reject_output '^yz'
    line=$(sed -n 's/^#   attune run --apply \(.*\) -- \.\.\.)$/\1/p' "$folder/summary.txt")
    eval "set -- $line"
    [ "$1" -ef "$folder" ] || fail "another folder: $line"
}

@test "every settled task has the reason of its own" {
    needs_parts
    attune run --fabric model --surface a40-nvlink-8-allgather --run-dir out --max-cost 0 --search-each --quiet \
        -- attune bench allgather --size-list 4M,80M -t 8 -n 300 --time 120 >/dev/null 2>&1 &
    local job=$!
    wait_for 100 settled
    jq -e '[.tasks[].reason] | all(test("^wins by [0-9.]+ %")) and .[0] != .[1]' out/tasks.json ||
        fail "$(jq -c '.tasks[] | [.bytes, .reason]' out/tasks.json)"
    kill "$job"
    wait "$job" || true
}

@test "sizes within a sixteenth of each other share one search" {
    needs_parts
    run attune run --run-dir out --fabric model --surface a40-nvlink-8-allgather --max-cost 0 \
        --strategy random:trials=30 -- \
        attune bench allgather --size-list 80M,81M,96M -t 8 -n 10 --rounds 60 --place out
    expect_status 0
    # Whichever is first in gathering its baseline searches for both.
    jq -e '[.runs[0].tasks[] | select(.bytes < 90000000) | .trials] | sort | .[0] == 0 and .[1] > 0' \
        out/summary.json || fail "$(cat out/summary.txt)"
    jq -e '.runs[0].tasks[] | select(.bytes > 90000000) | .trials > 0' out/summary.json ||
        fail "$(cat out/summary.txt)"
}

@test "no more channels are asked for than NCCL_MAX_CTAS and NCCL_MAX_NCHANNELS allow" {
    needs_parts
    local variable
    for variable in NCCL_MAX_CTAS NCCL_MAX_NCHANNELS; do
        run env $variable=3 ATTUNE_FABRIC_CHANNELS=8 attune run --fabric real --run-dir $variable \
            --max-cost 0 --strategy random:trials=20 -- attune bench allreduce -b 64K -e 64K -n 50 -t 2 --time 2
        expect_status 0
        [ "$(jq -s 'map(select(.setting) | .setting.channels) | max' $variable/trials.jsonl)" = 3 ] ||
            fail "$(jq -c .setting $variable/trials.jsonl)"
    done
}

@test "while a search waits for its budget the calls of the job are not timed" {
    needs_parts
    attune run --quiet --fabric model --surface a40-nvlink-8-allgather --max-cost 0.1% --run-dir out \
        --strategy random:trials=200 -- attune bench allgather -b 80M -e 80M -t 8 -n 300 --rounds 8
    jq -e '(.tasks[0] | .trials > 0 and .trials < 200) and (.coverage | .untimed.off * 2 > .decisions)' out/tasks.json ||
        fail "$(jq -c '.tasks[0].phase, .tasks[0].trials, .cost, .coverage' out/tasks.json)"
}

@test "what a job calls only once does not keep the stamps on" {
    needs_parts
    RANKS_ONCE=1 run attune run --fabric real --node n0 --run-dir out --max-cost 0 --strategy random:trials=5 -- \
        "$ATTUNE_BUILD/tests/test_ranks" 2 1 40000 16384 100 busy
    expect_status 0
    jq -e '.coverage | .untimed.off > .timed' out/tasks.json || fail "$(cat out/summary.txt)"
    jq -e '[.tasks[] | select(.phase == "settled")] | length == 1' out/tasks.json ||
        fail "$(cat out/summary.txt)"
}

@test "what timing costs counts against --max-cost" {
    needs_parts
    run attune run --fabric real --run-dir out --timing-cost 20 --max-cost 5% -- \
        attune bench allreduce -b 16K -e 16K -t 2 -n 100 --time 4 --place out
    expect_status 0
    expect_output 'trials lost .*, timing about .* ms of '
    # Every second or so it may run over by a list.
    jq -e '.cost | .timing_us > 0 and .timing_us + .lost_us < 0.1 * .run_us' out/tasks.json ||
        fail "$(cat out/summary.txt)"
    jq -e '.coverage | .untimed.off > .timed' out/tasks.json || fail "$(cat out/summary.txt)"
}
