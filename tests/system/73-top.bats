# bats file_tags=mpi
# attune top: on a terminal (of script(1)), and as plain lines elsewhere.
load setup
load run-setup

# report STATE TRIALS: what a sidecar would leave in r/.
report() {
    mkdir -p r
    jq --arg state "$1" --argjson trials "$2" \
        '.state = $state | .tasks[0].trials = $trials | .tasks[0].now = {median_us: 100, age_s: 1}
         | .tasks[0].late = {rank: 3, late_us: 2100, share: 1}' \
        "$ATTUNE_ROOT/tests/data/tasks/two-tasks.json" >new.json
    mv new.json r/tasks.json
}

# on_terminal ROWS COLUMNS: `attune top r` on a terminal of its own, with keys read from the pipe keys; what it
# shows goes to seen, the terminal's mode before and after to before and after.
on_terminal() {
    mkfifo keys
    script -qefc "stty rows $1 cols $2; stty -g >before; sh -c 'echo \$\$ >pid; exec attune top --interval 0.1 r'; echo \$? >status; stty -g >after" \
        /dev/null <keys >seen 2>&1 3>&- &
    terminal=$!
    exec 7>keys
}

needs_script() { command -v script >/dev/null || skip 'script(1) is not installed (bsdutils)'; }

given_back() {
    cmp before after || fail 'the terminal has another mode than before'
    # What a shell says afterwards of a program that dumped core may follow.
    [ "$(grep -ao $'\033\\[?1049[hl]' seen | tail -n 1)" = $'\033[?1049l' ] || fail 'not back on the first screen'
}

@test "on a terminal: the screen follows the reports, q leaves, the terminal is as before" {
    needs_script
    report running 3
    on_terminal 24 100
    wait_for 10 grep -q 'settled *3 .*3 (+2.1 ms)' seen
    report running 17
    wait_for 10 grep -q 'settled *17 ' seen
    printf q >&7
    wait "$terminal"
    [ "$(cat status)" = 0 ]
    given_back
}

# The last whole screen has 7 lines, and every one fits into 30 columns.
narrow_screen() {
    tr -d '\r' <seen | sed $'s/\033\\[J/\f/g; s/\033\\[[?0-9;]*[A-Za-z]//g' | awk -v RS='\f' '
        { screen = last; last = $0 }
        END { n = split(screen, line, "\n"); wide = 0; found = screen ~ /-- 1 to 1 of 3/
              for (i = 1; i <= n; i++) wide += length(line[i]) > 30
              exit !(found && !wide) }'
}

@test "a window that changes is filled anew, a narrow one holds no longer line" {
    needs_script
    report running 3
    on_terminal 24 100
    wait_for 10 grep -q 'late rank' seen
    # stty sets the rows first: for a moment the window is a low one of the old width.
    stty rows 7 cols 30 <"/proc/$(cat pid)/fd/0"
    wait_for 10 narrow_screen || fail "a line is longer than 30: $(tail -c 600 seen)"
    printf q >&7
    wait "$terminal"
    given_back
}

@test "whatever ends it, the terminal is given back" {
    needs_script
    for signal in INT TERM HUP SEGV; do
        report running 3
        on_terminal 24 100
        wait_for 10 grep -q 'late rank' seen
        kill -"$signal" "$(cat pid)"
        exec 7>&-
        wait "$terminal" || true
        wait_for 10 test -s after
        given_back
        [ "$(cat status)" = $((128 + $(kill -l "$signal"))) ] || fail "after SIG$signal: status $(cat status)"
        rm -f keys seen before after status
    done
    # A file that is damaged meanwhile ends it too, with one line on the first screen.
    report running 3
    on_terminal 24 100
    wait_for 10 grep -q 'late rank' seen
    echo '{"version":' >r/tasks.json
    wait "$terminal" || true
    [ "$(cat status)" = 3 ]
    cmp before after
    grep -a -q 'tasks.json' seen
}

@test "not on a terminal and no report yet: it says what it waits for, and gives up" {
    mkdir r
    run --separate-stderr attune top --interval 0.05 --patience 0.2 r
    [ "$status" -ne 0 ] || fail "it ended well"
    expect_output "^waiting for the sidecar's first report in .*r/tasks.json"
    [[ $stderr == *'no report for'* ]] || fail "$stderr"
}

@test "not on a terminal: a line a change, until the run has finished" {
    report running 3
    attune top --interval 0.05 r >lines 3>&- &
    top=$!
    wait_for 10 grep -q ': 3 trials, busbw now .*late rank 3 (+2.1 ms)$' lines
    report running 17
    wait_for 10 grep -q ': 17 trials' lines
    report finished 20
    wait "$top"
    run cat lines
    expect_output ': 20 trials'
    expect_output 's: finished$'
    reject_output $'\033'
    [ "$(grep -c ': 3 trials' lines)" = 1 ]
}

@test "which run: folder, run id, the latest; and what is not there is told in one line" {
    report finished 9
    mkdir sub
    (cd sub && mkdir attune-one attune-two && cp ../r/tasks.json attune-one/ && cp ../r/tasks.json attune-two/)
    cd sub
    echo '{}' >attune-two/manifest.json
    touch -d '1 hour ago' attune-two/manifest.json
    echo '{}' >attune-one/manifest.json
    run attune top --once
    expect_output '^attune top  attune-one  .* finished$'
    run attune top --once two
    expect_output '^attune top  attune-two  '
    ATTUNE_RUN_DIR=$PWD/../r run attune top --once
    expect_output '^attune top  r  '
    run --separate-stderr attune top nowhere
    expect_status 6
    expect_one_line "no run 'nowhere'.*attune-nowhere"
    cd ..
    run --separate-stderr attune top sub
    expect_status 6
    expect_one_line 'sub: no file of a run in it, but others'
    run --separate-stderr attune top
    expect_status 6
    expect_one_line 'no run folder'
    run --separate-stderr attune top --interval nan r
    expect_status 2
    expect_one_line 'interval.*0.05'
    run --separate-stderr attune top --bogus
    expect_status 2
    expect_one_line 'bogus'
    # A sidecar that died does not hold a script for ever.
    report running 3
    touch -d '1 minute ago' r/tasks.json
    run --separate-stderr attune top --lines --patience 30 r
    expect_status 16
    expect_one_line 'no report for'
}

@test "a real run, watched from beside" {
    needs_parts
    attune run --quiet --fabric model --surface a40-nvlink-8-allgather --run-dir live --max-cost 0 -- \
        attune bench allgather -b 80M -e 80M -t 8 -w 5 -n 1500 >log 2>&1 3>&- &
    job=$!
    wait_for 20 test -e live/manifest.json
    attune top --lines --interval 0.1 live >lines
    wait "$job"
    run cat lines
    expect_output 'allgather 80M x8 0x[0-9a-f]+ settled: .*busbw now [(0-9.)]+, default [0-9.]+, best [0-9.]+ GB/s'
    expect_output 's: finished$'
}
