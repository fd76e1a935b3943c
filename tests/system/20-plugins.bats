# attune plugins and attune info: what is there, what was refused, and every option.
# bats file_tags=cpu

load setup

needs_strategies() {
    [ -e "$ATTUNE_BUILD/lib/attune/libattune-strategy-coordinate_descent.so" ] ||
        skip 'the strategies are not built'
}
needs_bad_plugins() {
    [ -e "$ATTUNE_BUILD/tests/plugins/libattune-strategy-bad_abi.so" ] ||
        skip 'the plugins that are bad on purpose are not built'
}

@test "the shipped strategies are listed with version, description and parameters" {
    needs_strategies
    run attune plugins
    expect_status 0
    expect_output '^coordinate_descent [0-9.]+: .+'
    expect_output '^random [0-9.]+: .+'
    expect_output '^exhaustive [0-9.]+: .+'
    expect_output '^    variant=[a-z]+  \(choice .*paper.*code.*\)  .+'
    expect_output '^    file .*/lib/attune/libattune-strategy-random.so$'
    reject_output '^refused'
}

@test "--json tells the same" {
    needs_strategies
    run attune plugins --json
    expect_status 0
    jq -e '.version == 1 and .abi == 1 and .refused == [] and
           ([.strategies[].name] | contains(["coordinate_descent", "exhaustive", "random"])) and
           (.strategies[] | .version and .description and .path and
            (.parameters | all(.name and .type and .default != null and .help)))' \
        <<<"$output" || fail 'unexpected form'
}

@test "every refusal has its reason, and the rest is listed all the same" {
    needs_strategies
    needs_bad_plugins
    run attune plugins --plugin-path "$ATTUNE_BUILD/tests/plugins"
    expect_status 0
    expect_output '^refused: .*bad_abi\.so: .*ABI 2.*1'
    expect_output '^refused: .*bad_symbol\.so: .*attune_strategy'
    expect_output '^refused: .*bad_name\.so: .*"other"'
    expect_output '^refused: .*bad_op\.so: .*tell'
    expect_output '^random '
    ATTUNE_PLUGIN_PATH=$ATTUNE_BUILD/tests/plugins run attune plugins --json
    jq -e '(.refused | length >= 4) and
           (.refused[] | select(.path | endswith("bad_abi.so")) | .reason | contains("ABI 2"))' \
        <<<"$output" || fail 'the refusal is not in the JSON'
}

@test "a file that is no library is refused" {
    mkdir mine
    echo 'no library' >mine/libattune-strategy-text.so
    run attune plugins --plugin-path mine
    expect_output '^refused: .*mine/libattune-strategy-text\.so.*'
}

@test "check: what is shipped conforms, and says what it asked" {
    needs_strategies
    local file
    for file in "$ATTUNE_BUILD"/lib/attune/libattune-strategy-{default,random,coordinate_descent,lagom}.so; do
        run attune plugins check "$file"
        expect_status 0
        expect_output '^ok   loads +ABI 1, '
        expect_output '^ok   determinism +the same seed and results give the same [0-9]+ questions'
        expect_output '^ok   trials: all time out '
        expect_output '^ok   speed +[0-9]+ us an answer'
        expect_output ': conforms$'
        reject_output '^FAIL'
    done
    run attune plugins check "$file" --json
    jq -e '.version == 1 and .failures == 0 and (.findings | length > 10 and all(.ok))' <<<"$output" ||
        fail 'unexpected form'
}

@test "check: a crash, a hang and nonsense are lines of the result" {
    needs_strategies
    needs_bad_plugins
    local odd=$ATTUNE_BUILD/tests/plugins/libattune-strategy-odd.so
    try() { # OPTIONS TEXT
        run attune plugins check "$odd" --deadline 0.3 --options "$1"
        expect_status 1
        expect_output "^FAIL .*$2"
        expect_output ': [0-9]+ failures?$'
    }
    try how=crash 'the strategy crashed \(signal 6, Aborted\)'
    try how=crash,place=tell 'the strategy crashed \(signal 6, Aborted\)'
    try how=hang 'the strategy gave no answer within 0.3 s'
    try how=exit 'the strategy ended its process \(exit status 3\)'
    try how=outside 'asked for .*ch=5000, which is outside its space'
    try how=outside,place=best 'outside its space'
    try how=many 'the strategy gave 16 settings, asked for at most 15'
    try how=error,place=create 'strategy odd failed in create: it gave up'
    try how=wrong 'parameter how: "wrong" is not accepted'
    run attune plugins check "$odd"
    expect_status 0
}

@test "check: a strategy that is not deterministic is found out" {
    needs_strategies
    sed -e 's/\.name *= *"random"/.name = "moody"/' \
        -e 's/s->random = options->seed;/{ struct timespec t; clock_gettime(CLOCK_REALTIME, \&t); s->random = (uint64_t)t.tv_nsec; }/' \
        -e '1i #include <time.h>' "$ATTUNE_ROOT/plugins/random/random.c" >moody.c
    cc -std=gnu11 -shared -fPIC -I"$ATTUNE_ROOT/include" -o libattune-strategy-moody.so moody.c -lm
    run attune plugins check libattune-strategy-moody.so
    expect_status 1
    expect_output '^FAIL determinism +the same seed and results: question 1 is '
}

@test "check: files that are no strategy, and wrong usage" {
    echo text >libattune-strategy-text.so
    run attune plugins check libattune-strategy-text.so
    expect_status 1
    expect_output '^FAIL loads +cannot load: '
    run attune plugins check nothing.so
    expect_status 1
    expect_output '^FAIL loads +nothing.so: not named libattune-strategy-<name>.so'
    run --separate-stderr attune plugins check
    expect_status 2
    expect_one_line 'which file'
    run --separate-stderr attune plugins check x.so --deadline soon
    expect_status 2
    expect_one_line '--deadline soon: expected seconds above 0'
    run --separate-stderr attune plugins check x.so --deadline
    expect_status 2
    expect_one_line '^attune: error: --deadline needs a value: S$'
    run --separate-stderr attune plugins check x.so --options
    expect_status 2
    expect_one_line '^attune: error: --options needs a value: key=value,...$'
    run --separate-stderr attune plugins check x.so --wrong
    expect_status 2
    expect_one_line 'no option --wrong'
}

@test "a search that fails while the job runs: not tuned, and no speedup of 1" {
    needs_strategies
    needs_bad_plugins
    [ -x "$ATTUNE_BUILD/bin/attuned" ] || skip 'the sidecar is not built'
    run --separate-stderr attune run --fabric model --surface a40-nvlink-8-allgather --max-cost 0 \
        --run-dir out --plugin-path "$ATTUNE_BUILD/tests/plugins" --strategy odd:how=error,place=create \
        -- attune bench allgather -b 80M -e 80M -t 8 -n 60
    expect_status 0
    local why='strategy odd failed in create: it gave up \(-3\)'
    grep -Eq "^attune: warning: 1 of 1 tasks was not tuned: $why\$" <<<"$stderr" || fail 'no warning'
    grep -Eq '^  allgather 80M x8 .*  not tuned .*  -  +0  +0$' out/summary.txt || fail "$(cat out/summary.txt)"
    jq -e --arg why "$why" '.runs[0].tasks[0] | .speedup == null and .kept_default and (.reason | test($why))' \
        out/summary.json || fail "$(cat out/summary.json)"
    attune report out -o page.html
    attune report out --json >report.json
    jq -e '(.tasks[0] | .verdict == "failed" and .speedup == null) and
           (.summary | .failed == 1 and .kept == 0 and .open == 0 and .speedup_geometric_mean == null)' report.json ||
        fail "$(jq '.tasks[0], .summary' report.json)"
    grep -q '1 not tuned: strategy odd failed in create: it gave up' page.html || fail 'the page does not tell'
}

@test "no strategy at all is said, with status 1" {
    mkdir -p tree/bin
    cp "$ATTUNE_BUILD/bin/attune" tree/bin/
    run --separate-stderr tree/bin/attune plugins
    expect_status 1
    expect_one_line 'no strategy was found'
}

@test "wrong flags of plugins and info are one line and status 2" {
    run --separate-stderr attune plugins --wrong
    expect_status 2
    expect_one_line 'no option --wrong'
    run --separate-stderr attune plugins --plugin-path
    expect_status 2
    expect_one_line '--plugin-path needs a value'
    run --separate-stderr attune info --wrong
    expect_status 2
    expect_one_line 'no option --wrong'
    ATTUNE_SAMPLES=many run --separate-stderr attune info
    expect_status 2
    expect_one_line "ATTUNE_SAMPLES: 'many' is not accepted; expected a whole number"
}

@test "info tells versions, paths and options with their values" {
    ATTUNE_SAMPLES=9 run attune info
    expect_status 0
    expect_output '^attune [0-9]+\.[0-9]+\.[0-9]+$'
    expect_output 'strategy ABI 1, segment layout [0-9]+, NCCL tuner v2 to v6'
    expect_output '^  attune +/.*/bin/attune$'
    expect_output '^      ATTUNE_SAMPLES=9$'
    expect_output '^      default 5$'
    expect_output '^      ATTUNE_MAX_COST=.* \(default\)$'
    ATTUNE_SAMPLES=9 run attune info --json
    jq -e '.version == 1 and .abi.strategy == 1 and (.paths.attune | endswith("/bin/attune")) and
           (.options[] | select(.flag == "samples") | .value == "9" and .default == "5" and
            .variable == "ATTUNE_SAMPLES")' <<<"$output" || fail 'unexpected form'
    run attune info --options
    expect_output '^  --strategy NAME'
    reject_output '^attune '
}

@test "the command without a command, with a wrong one, and its version" {
    run attune
    expect_status 2
    expect_output '^Usage: attune COMMAND'
    run --separate-stderr attune frobnicate
    expect_status 2
    expect_one_line "no command 'frobnicate'"
    run attune --version
    expect_status 0
    expect_output "^attune $(cat "$ATTUNE_ROOT/VERSION")$"
    run attune help
    expect_status 0
    expect_output '^  run '
    run attune help run
    expect_status 0
    expect_output '^  --max-cost PERCENT'
}

@test "bash completes commands and options" {
    complete_line() { # WORD...: candidates for the last word
        bash -c 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _attune
            printf "%s\n" "${COMPREPLY[@]}"' - "$ATTUNE_ROOT/src/cli/completion.bash" "$@"
    }
    run complete_line attune pl
    [ "$output" = plugins ] || fail 'expected plugins'
    run complete_line attune run --max-
    expect_output '^--max-cost$'
    expect_output '^--max-trials$'
    reject_output 'samples'
    run complete_line attune run -- trunca
    expect_output '^truncate$'
    run complete_line attune plugins ''
    [ "$output" = check ] || fail 'expected check'
    run complete_line attune plugins --
    expect_output '^--plugin-path$'
    reject_output 'deadline'
    touch strategy.so strategy.c
    mkdir strange
    run complete_line attune plugins check st
    [ "$(sort <<<"$output")" = 'strange
strategy.so' ] || fail 'expected the folder and the library'
    run complete_line attune plugins check strategy.so --
    expect_output '^--deadline$'
    expect_output '^--options$'
    reject_output 'plugin-path'
    # Every option of its help is among them, and no other.
    [ "$(sort <<<"$output")" = "$(printf '%s\n' --help $(attune plugins check --help | sed -n '/plugins check/p' |
        grep -Eo -- '--[a-z]+') | sort)" ] || fail "$output"
}

@test "a file that crashes, exits or hangs while it is loaded is one line, and the command goes on" {
    needs_strategies
    needs_bad_plugins
    local folder=$ATTUNE_BUILD/tests/plugins-constructor how says
    local file=$folder/libattune-strategy-constructor.so
    while IFS='|' read -r how says; do
        export ATT_TEST_CONSTRUCTOR=$how
        if [ "$how" != hang ]; then
            run --separate-stderr attune run --plugin-path "$folder" --strategy constructor -- true
            expect_status 125
            expect_one_line 'constructor: the strategy (crashed|ended its process)'
            # The list would wait 10 s for one that hangs.
            run --separate-stderr attune plugins --plugin-path "$folder"
            expect_status 0
            expect_output "^refused: .*libattune-strategy-constructor.so: when loaded it $says"
            expect_output '^random [0-9.]+: '
            run --separate-stderr attune sim --plugin-path "$folder" --strategy constructor --seeds 1 \
                --surface a40-nvlink-8-allgather
            expect_status 12
            expect_one_line "strategy constructor: when loaded and asked about its options it $says"
        fi
        run --separate-stderr attune plugins check "$file" --deadline 1
        expect_status 1
        expect_output "^FAIL loads .*when loaded it $says"
    done <<'CASES'
crash|crashed \(signal 6
leave|ended its process \(exit status 0\)
hang|took longer than 1 s
CASES
    unset ATT_TEST_CONSTRUCTOR
    run attune plugins --plugin-path "$folder"
    expect_output '^constructor 1: test'
}
