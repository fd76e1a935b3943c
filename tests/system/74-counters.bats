# bats file_tags=mpi
# --counters: what the machine did beside the calls, within a budget, in the run folder.
load setup
load run-setup

counted_run() {
    local folder=$1
    shift
    run attune run --fabric real --run-dir "$folder" --max-cost 0 --quiet "$@" -- \
        attune bench allreduce -b 256K -e 256K -t 2 -w 5 -n "${calls:-3000}"
}

can_count() { attune info --counters | grep -q '^  task-clock' || skip "perf events: $(attune info --counters | grep 'no processes\|no task-clock')"; }
has_papi() { attune info | grep -q 'counters: PAPI ' || skip "$(attune info | grep counters:)"; }

@test "software events of PAPI and of the job's processes land in the run folder, by iteration and trial" {
    needs_parts
    can_count
    has_papi
    # No limit: on a busy machine a read may be interrupted, and the next one is then late. A search
    # that goes on for some reads.
    calls=6000 counted_run r --counters on --counter-budget 0 --strategy exhaustive
    expect_status 0
    file=r/counters/node-0000.jsonl
    jq -es '.[0].version == 1 and (.[-1].end == true)' $file
    # A source of the agent through PAPI and one of the process, both read more than once.
    jq -es '[.[] | select(.name == "perf_event")] | length == 1 and (.[0].events | index("perf::TASK-CLOCK") != null)' $file
    jq -es '[.[] | select(.scope == "process")] | length == 1 and (.[0].events | index("context-switches") != null)
        and .[0].pid > 0' $file
    # Totals never fall, and both have used the processor.
    jq -es '([.[] | select(.name == "perf_event")][0]) as $agent | ([.[] | select(.scope == "process")][0]) as $process
        | [.[] | select(.values)] as $reads
        | ($agent, $process) as $s | ($s.events | index("task-clock", "perf::TASK-CLOCK") | values) as $e
        | [$reads[].values[$s.source | tostring] | values | .[$e]]
        | length > 0 and . == sort and last > 0' $file
    jq -es '[.[] | select(.iteration)] | length > 0 and ([.[].iteration] | . == sort and last > 0)' $file
    jq -es '[.[] | select(.trial)] | length > 0' $file
    # The first trials may come before the process is seen.
    jq -es '[.[].counters | values] | all(.over_s > 0 and .["agent perf::TASK-CLOCK"] >= 0)
        and any(.["process task-clock"] > 0)' r/trials.jsonl
    # What is not there says why.
    jq -es '[.[] | select(.unavailable)] | length > 0 and all(.reason | length > 0)' $file
}

@test "a budget that nothing fits switches everything off, with a line for each, and the job goes on" {
    needs_parts
    can_count
    calls=1500 counted_run r --counters on --counter-budget 0.0000001%
    expect_status 0
    grep -E 'warning: counters of process 0: switched off: a read takes .* us, the budget is 1e-07 % of the time' r/attuned.log
    jq -es '[.[] | select(.scope)] as $s | $s | length > 0 and (([$off[] | .source] | sort) == ([$s[].source] | sort))' \
        --slurpfile off <(jq -c 'select(.state == "off")' r/counters/node-0000.jsonl) r/counters/node-0000.jsonl
    jq -es '[.[] | select(.values)] | length == 0' r/counters/node-0000.jsonl
    jq -es '[.[] | select(.counters["process task-clock"])] | length == 0' r/trials.jsonl
}

@test "without --counters nothing is counted; names that cannot be are told" {
    needs_parts
    calls=50 counted_run r
    expect_status 0
    [ ! -e r/counters ]
    [ "$(jq -s '[.[] | select(.counters)] | length' r/trials.jsonl)" = 0 ]
    has_papi
    calls=50 counted_run q --counters perf::NO-SUCH-EVENT,nosuch:::event
    expect_status 0
    jq -es '[.[] | select(.unavailable == "perf::NO-SUCH-EVENT")] | length == 1 and (.[0].reason | length > 0)' q/counters/node-0000.jsonl
    jq -es '[.[] | select(.unavailable == "nosuch:::event")][0].reason | test("without the component")' q/counters/node-0000.jsonl
    grep -q 'warning: counters: no perf::NO-SUCH-EVENT: .' q/attuned.log
    # The user sees it too, before the command starts, and only what was named.
    expect_output 'warning: --counters: cannot be counted: perf::NO-SUCH-EVENT \(.*\), nosuch:::event \(.*without the component\); attune info --counters'
    run --separate-stderr attune run --quiet --counters on,perf::NO-SUCH-EVENT,perf::PAGE-FAULTS -- sh -c 'echo started >&2'
    expect_status 0
    [ "$(wc -l <<<"$stderr")" -eq 2 ] || fail 'two lines were expected'
    grep -Eq '^attune: warning: --counters: cannot be counted: perf::NO-SUCH-EVENT \([^,]*\); attune info' <<<"$stderr" || fail 'not named'
    [ "$(tail -n 1 <<<"$stderr")" = started ] || fail 'not before the command'
    run --separate-stderr attune run --quiet --counters on -- true
    [ -z "$stderr" ] || fail 'what "on" stands for is missed'
    run --separate-stderr attune run --counters on,,x -- touch ran
    expect_status 125
    expect_one_line "counters: 'on,,x' has an empty name"
    run --separate-stderr attune run --counter-budget lots -- touch ran
    expect_status 125
    expect_one_line 'counter-budget.*share'
    [ ! -e ran ]
}

@test "an event that is named twice, or by name beside on, is counted once" {
    has_papi
    ATTUNE_COUNTERS=on,perf::PAGE-FAULTS,perf::TASK-CLOCK,perf::TASK-CLOCK run attune info --counters
    expect_status 0
    reject_output 'no perf::'
    [ "$(grep -c 'perf::PAGE-FAULTS' <<<"$output")" -eq 1 ] || fail 'not once'
}

@test "attune info says whether there is PAPI, and lists what can be counted with what it costs" {
    run attune info
    expect_output '^  counters: (PAPI [0-9.]+|none: .*)$'
    run attune info --counters
    expect_status 0
    expect_output ' a read takes [0-9.]+ us|no processes '
    ATTUNE_COUNTERS=perf::NO-SUCH-EVENT run attune info --counters
    has_papi
    expect_output '^  no perf::NO-SUCH-EVENT '
    run attune info --json
    jq -e '.counters | test("PAPI [0-9]")' <<<"$output"
}

@test "attune trace shows them under the collectives" {
    needs_parts
    can_count
    calls=3000 counted_run r --counters on --counter-budget 0 --trace on
    expect_status 0
    run attune trace r -o out.json
    expect_status 0
    "$ATTUNE_BUILD/tests/test_trace_check" out.json
    # As many points of a series as the file has differences, each its rate.
    jq -e '[.traceEvents[] | select(.ph == "C" and .name == "node 0 process context-switches (1/s)")]
        | length > 0 and all(.args.value >= 0)' out.json
    jq -s '[.[] | select(.scope == "process")][0] as $p | ($p.events | index("context-switches")) as $e
        | [.[] | select(.values) | select(.values[$p.source | tostring])
           | [.time_ns, .values[$p.source | tostring][$e]]] as $r
        | [range(1; $r | length) | ($r[.][1] - $r[. - 1][1]) * 1e9 / ($r[.][0] - $r[. - 1][0])]' \
        r/counters/node-0000.jsonl >rates
    jq -e --slurpfile rates rates '[.traceEvents[] | select(.name == "node 0 process context-switches (1/s)") | .args.value] as $shown
        | ($shown | length) > 0 and all($shown[]; . as $v | $rates[0] | any(. - $v | fabs <= 1e-5 * $v + 1e-9))' out.json
}
