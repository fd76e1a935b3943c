# What attune run refuses: one clear line each, status 125, and the command is not started. A sidecar
# that does not start is one line too, but the command runs.
# bats file_tags=cpu

load setup
load run-setup

# refused REGEX ARGUMENT...: attune run with these arguments says one line and does not run.
refused() {
    local regex=$1
    shift
    run --separate-stderr attune run "$@" -- touch started
    expect_status 125
    expect_one_line "^attune: error: .*$regex"
    [ ! -e started ] || fail 'the command was started'
}

# unstarted REGEX ARGUMENT...: the sidecar does not start, one line says why, the command runs all the same.
unstarted() {
    local regex=$1
    shift
    run --separate-stderr attune run "$@" -- touch started
    expect_status 0
    expect_one_line "^attune: warning: the sidecar did not start: $regex"
    rm started || fail 'the command was not started'
}

@test "wrong flags and missing values" {
    attune_with_fake
    refused 'no option --frobnicate; --help lists them' --frobnicate
    refused 'no option -n' -n 4
    refused '--samples needs a value: N' --samples
    refused "--samples: '0' is not accepted; expected a whole number from 1 to 1000" --samples 0
    refused "--max-cost: 'cheap' is not accepted; expected a share such as 1% or 0.01" --max-cost cheap
    refused "--max-slowdown: '-3x' is not accepted" --max-slowdown=-3x
    refused "--log: 'loud' is not accepted; expected one of error\|warn\|info\|debug" --log loud
    refused "--min-bytes: '1.5M' is not accepted" --min-bytes 1.5M
    refused "--run-id: 'a/b' is not accepted" --run-id a/b
    [ -z "$(ls -d attune-* 2>/dev/null)" ] || fail 'a run folder was made'
}

@test "an option that a command does not have is named, also one letter of several" {
    local command
    for command in report trace stragglers surfaces sim bench record; do
        for word in -ZY --frobnicate; do
            run --separate-stderr attune "$command" "$word" run
            expect_status 2
            expect_one_line "(^|[ ':])${word%Y}[ ';]"
            run --separate-stderr attune "$command" --help=yes "$word"
            expect_status 2
        done
    done
    run --separate-stderr attune report --json -Zdash
    expect_one_line '^attune: error: -Z is not an option'
    run --separate-stderr attune report run --output
    expect_one_line '^attune: error: --output is not an option, or lacks its value'
    run --separate-stderr attune bench --iters
    expect_one_line '^attune bench: option --iters needs a value'
}

# meant WORD ARGUMENT...: attune with these arguments is refused with one line that asks for WORD.
meant() {
    local word=$1
    shift
    run --separate-stderr attune "$@"
    [ "$status" -ne 0 ] || fail "accepted: $*"
    expect_one_line "\(did you mean '${word//./\\.}'\?\)"
}

@test "a misspelt word is answered with the one that was meant" {
    local surface=a40-nvlink-8-allgather
    meant run rnu
    meant record help recrod
    meant --version --verison
    meant warn run --log warm -- true
    meant model run --fabric modl -- true
    meant $surface run --fabric model --surface ${surface/link/lnk} -- true
    meant --quiet run -quiet -- true
    meant chrome trace --format crome run
    meant allreduce sim --surface $surface --collective alreduce
    meant stock sim --surface $surface --knobs stok
    meant light sim --surface $surface --load ligth
    meant $surface surfaces ${surface}s
    meant allreduce pin run allreduc:64M
    meant check plugins chek file.so
    meant threads knobs --check thread=480
    meant ring knobs --check algorithm=rign
    meant ll128 knobs --check protocol=ll182
    meant allgather knobs --check collective=all_gahter
    meant mpirun slurm mpirnu
    if attune help | grep -q '^  bench '; then
        meant allreduce bench alreduce
        meant float bench -d flaot
        meant prod bench -o prood
        meant both bench --place bth
        meant every bench --sync evry
        meant simple bench --setting ring/simpel
    fi
    if [ -e "$ATTUNE_BUILD/lib/attune/libattune-strategy-random.so" ]; then
        meant random run --strategy randon -- true
        meant trials run --strategy random:trails=3 -- true
        meant random sim --surface $surface --strategy ranodm
    fi
    # Nothing is near, or the word is known.
    run --separate-stderr attune frobnicate
    expect_one_line "no command 'frobnicate'; 'attune help' lists them\$"
    run --separate-stderr attune report run --output
    [[ $stderr != *'did you mean'* ]] || fail 'an option without its value is not misspelt'
}

# The lists of options in the program and in its help are the same.
@test "every option in the help of a command is known by its misspelling" {
    local command option wrong count
    for command in $(attune help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
        count=0
        for option in $(attune "$command" --help | sed -nE 's/^ +(-[a-zA-Z], )?(--[a-z][a-z_-]+).*/\2/p'); do
            wrong=--${option:2:1}${option:2} # the first letter twice
            case $command$option in
            plugins--options | plugins--deadline) meant "$option" plugins check "$wrong" ;;
            *) meant "$option" "$command" "$wrong" ;;
            esac
            count=$((count + 1))
        done
        case $command in
        pin | unpin | version | help) ;;
        *) [ "$count" -gt 0 ] || fail "no option in the help of $command" ;;
        esac
    done
}

@test "a list of counters with an empty name is refused before anything starts" {
    attune_with_fake
    local list
    for list in , on, ,on on,,perf::PAGE-FAULTS ''; do
        refused "--counters: '$list' has an empty name; expected off, on or EVENT" "--counters=$list"
    done
    ATTUNE_COUNTERS=, refused "--counters: ',' has an empty name"
    [ -z "$(ls -d attune-* 2>/dev/null)" ] || fail 'a run folder was made'
    [ ! -x "$ATTUNE_BUILD/bin/attuned" ] || {
        run --separate-stderr "$ATTUNE_BUILD/bin/attuned" --run-id x --run-dir . --counters ,
        expect_status 2
        grep -q "^attuned: error: --counters: ',' has an empty name" <<<"$stderr"
    }
}

@test "a variable with a bad value is named" {
    attune_with_fake
    ATTUNE_WATCH=often refused "ATTUNE_WATCH: 'often' is not accepted"
}

@test "a variable that attune does not know is told once, with the one that was meant" {
    attune_with_fake
    local strategi="ATTUNE_STRATEGI is no variable of attune \(did you mean 'ATTUNE_STRATEGY'\?\) and has no effect"
    ATTUNE_STRATEGI=random ATTUNE_NOISE_LEVEL=1 ATTUNE_SAMPELS='' run --separate-stderr attune run --quiet -- true
    expect_status 0
    [ "$(grep -c ATTUNE_ <<<"$stderr")" -eq 2 ] || fail 'expected two lines about variables'
    grep -E "^attune: warning: $strategi\$" <<<"$stderr"
    grep -x 'attune: warning: ATTUNE_NOISE_LEVEL is no variable of attune and has no effect' <<<"$stderr"
    # Less than a warning is not asked for.
    ATTUNE_STRATEGI=random run --separate-stderr attune run --quiet --log error -- true
    [ -z "$stderr" ] || fail 'a warning with --log error'
}

@test "attuned that is started by hand tells such a variable, the one that attune run starts does not" {
    needs_parts
    export ATTUNE_STRATEGI=random
    attuned --run-id hand 2>by-hand.log &
    wait_for 60 grep -q '^attuned: warning: ATTUNE_STRATEGI is no variable of attune' by-hand.log
    kill -INT $!
    wait $!
    [ "$(grep -c ATTUNE_STRATEGI by-hand.log)" -eq 1 ] || fail 'not told once'
    run --separate-stderr attune run --run-dir run --observe --quiet -- true
    expect_status 0
    [ "$(grep -c ATTUNE_STRATEGI <<<"$stderr")" -eq 1 ] || fail 'attune run does not tell it once'
    run cat run/attuned.log
    reject_output ATTUNE_STRATEGI
}

# What the sources read, and what tests, benchmarks, examples and job scripts set.
@test "no variable of attune's own is taken for a misspelt one" {
    attune_with_fake
    local options name names variables=()
    options=$(attune info --options --json | jq -r '.[].variable')
    names=$(cd "$ATTUNE_ROOT" && {
        grep -rhoE '"ATTUNE_[A-Z0-9_]+"' src plugins bench examples include
        grep -rhoE '\$\{?ATTUNE_[A-Z0-9_]+|\bATTUNE_[A-Z0-9_]+=' jobs bench examples packages tests \
            --exclude={30-bad-input.bats,25-doctor.bats,test_variables.c,CMakeLists.txt}
    } | grep -oE 'ATTUNE_[A-Z0-9_]+' | sort -u)
    [ "$(wc -w <<<"$names")" -gt 40 ] || fail 'the sources read fewer variables than they should'
    for name in $names; do
        grep -qx "$name" <<<"$options" || variables+=("$name=x")
    done
    run --separate-stderr env "${variables[@]}" attune run --fabric model -- true
    expect_one_line '--fabric model needs --surface'
}

@test "a standard output that is closed or full is an error, a reader that left is none" {
    local command
    local commands=(help version 'run --help' knobs 'knobs --check threads=480' info 'info --json' 'info --options'
        'info --man' 'info --counters' plugins surfaces 'doctor --help' 'sim --help' 'slurm --jobs' 'top --help'
        'trace --help' 'report --help' 'stragglers --help' 'pin --help')
    if attune help | grep -q '^  bench '; then commands+=('bench --help' 'record --help'); fi
    for command in "${commands[@]}"; do
        run --separate-stderr sh -c "attune $command >/dev/full"
        expect_status 4
        expect_one_line '^attune: error: cannot write to standard output: No space left on device$'
        run --separate-stderr sh -c "attune $command >&-"
        expect_status 4
        expect_one_line '^attune: error: cannot write to standard output: Bad file descriptor$'
        run --separate-stderr sh -c "attune $command | head -1"
        expect_status 0
        [ -z "$stderr" ] || fail "not silent when the reader leaves: $command"
    done
    # Nothing to print, nothing lost.
    attune_with_fake
    run --separate-stderr sh -c 'attune run --quiet -- true >&-'
    expect_status 0
    [[ $stderr != *'standard output'* ]] || fail 'an error without a result'
}

@test "attuned: a standard output that is closed or full is an error" {
    needs_parts
    local option
    for option in --version --help; do
        run --separate-stderr sh -c "attuned $option >/dev/full"
        expect_status 4
        expect_one_line '^attuned: error: cannot write to standard output: No space left on device$'
        run --separate-stderr sh -c "attuned $option >&-"
        expect_status 4
        expect_one_line '^attuned: error: cannot write to standard output: Bad file descriptor$'
    done
}

@test "no command" {
    attune_with_fake
    run --separate-stderr attune run --samples 3
    expect_status 125
    expect_one_line 'no command; use: attune run'
    run --separate-stderr attune run --
    expect_status 125
    expect_one_line 'no command'
}

@test "an unknown strategy: says where it looked" {
    attune_with_fake
    mkdir mine
    unset ATTUNE_OBSERVE
    refused '"nosuch" in .*mine.*lib/attune' --plugin-path "$PWD/mine" --strategy nosuch
}

@test "a strategy with another ABI number, and one with a wrong parameter" {
    local plugins=$ATTUNE_BUILD/tests/plugins
    [ -e "$plugins/libattune-strategy-bad_abi.so" ] ||
        skip 'the plugins that are bad on purpose are not built'
    [ -e "$ATTUNE_BUILD/lib/attune/libattune-strategy-random.so" ] ||
        skip 'the strategies are not built'
    attune_with_fake
    unset ATTUNE_OBSERVE
    refused 'bad_abi\.so: .*ABI 2' --plugin-path "$plugins" --strategy bad_abi
    refused 'random: no parameter "frob"' --strategy random:frob=1
    refused 'random: parameter trials: "x" is not accepted' --strategy random:trials=x
}

# The words of a refused value: the parameter, the value and what is accepted.
@test "a value that a shipped strategy cannot take is refused before the command starts" {
    local strategies=$ATTUNE_BUILD/lib/attune
    [ -e "$strategies/libattune-strategy-default.so" ] || skip 'the strategies are not built'
    attune_with_fake
    unset ATTUNE_OBSERVE
    wrong() { # STRATEGY PARAMETER VALUE ACCEPTED
        [ -e "$strategies/libattune-strategy-$1.so" ] || return 0
        refused "strategy $1: parameter $2: \"$3\" is not accepted \($4\)" --strategy "$1:$2=$3"
    }
    wrong default budget 300 '1 to 299'
    wrong default budget 0 '1 to 299'
    wrong default batch 0 'at least 1'
    wrong default stop -0.1 'at least 0'
    wrong coordinate_descent budget 0 'at least 1'
    wrong coordinate_descent restarts 0 'at least 1'
    wrong coordinate_descent screen -1 'at least 0'
    wrong coordinate_descent top_k 0 'at least 1'
    wrong random trials 0 'at least 1'
    wrong exhaustive grid 1 '0, or at least 2'
    wrong annealing trials 0 'at least 1'
    wrong annealing hot 0 'above 0'
    wrong annealing cold 0.3 'above 0, at most hot'
    wrong bandit rounds 65 '1 to 64'
    wrong lagom trials 1001 '1 to 1000'
    wrong lagom channels 0 'at least 1'
    wrong exec timeout 0 'above 0, at most 1000000 s'
    wrong afnfa samples 7 '8 to 20000'
    wrong afnfa share 1.5 'above 0, at most 1'
    wrong afnfa trees 10001 '1 to 10000'
    wrong afnfa steps 0 'at least 1'
    wrong afnfa train "$PWD/nowhere" "$PWD/nowhere: cannot be read"
    refused 'strategy exec: parameter command: "" is not accepted \(a program is needed\)' --strategy exec
}

@test "the sidecar, the simulation and the conformance test refuse such a value too" {
    local strategy=$ATTUNE_BUILD/lib/attune/libattune-strategy-default.so
    [ -e "$strategy" ] || skip 'the strategies are not built'
    local line='strategy default: parameter budget: "300" is not accepted \(1 to 299\)'
    if [ -x "$ATTUNE_BUILD/bin/attuned" ]; then
        run --separate-stderr attuned --run-id x --strategy default:budget=300
        expect_status 2
        expect_one_line "$line"
    fi
    run --separate-stderr attune sim --surface a40-nvlink-8-allgather --strategy default:budget=300
    expect_status 2
    expect_one_line "$line"
    run attune plugins check "$strategy" --options budget=300
    expect_status 1
    expect_output "^FAIL options +$line\$"
}

@test "a strategy that crashes while it looks at its parameters is refused with one line" {
    local plugins=$ATTUNE_BUILD/tests/plugins
    [ -e "$plugins/libattune-strategy-odd.so" ] || skip 'the plugins that are bad on purpose are not built'
    attune_with_fake
    unset ATTUNE_OBSERVE
    refused 'the strategy crashed \(signal 6, Aborted\)' --plugin-path "$plugins" \
        --strategy odd:how=crash,place=check
}

@test "a run folder that cannot be written, and one that is not empty" {
    attune_with_fake
    echo plain >file
    refused 'run folder .*/file/out cannot be made \(--run-dir says where\): Not a directory' --run-dir "$PWD/file/out"
    refused 'run folder /proc/out cannot be made' --run-dir /proc/out
    mkdir full
    echo x >full/x
    refused 'run folder full exists and is not empty' --run-dir full
    mkdir closed
    chmod 555 closed
    [ "$(id -u)" -eq 0 ] || refused 'run folder closed/out cannot be made \(--run-dir says where\): Permission denied' --run-dir closed/out
}

@test "a run within a run, two folders for one --apply, a run that is not there" {
    attune_with_fake
    run "$PWD/tree/bin/attune" run --quiet --run-dir outer -- "$PWD/tree/bin/attune" run --quiet -- touch ran
    expect_status 125
    expect_output 'this is inside the run of .*/outer, which tunes the command already: leave this .attune run. out'
    [ ! -e ran ] || fail 'the command ran'
    run -127 --separate-stderr "$PWD/tree/bin/attune" run --quiet --run-dir other second -- true
    expect_one_line 'second cannot be run: No such file or directory; it stands before --, and the option before it takes one word'
    for command in trace stragglers; do
        run "$PWD/tree/bin/attune" $command nowhere
        expect_status 6
        expect_output 'no run nowhere: No such file or directory'
    done
}

@test "parts that are missing: says where it looked" {
    attune_with_fake
    local hide
    for hide in lib/libattune-nccl.so bin/attuned; do
        mv "tree/$hide" hidden
        # The build's own attuned is on the PATH as well.
        PATH=$PWD/tree/bin:/usr/bin:/bin refused "was not found; looked for .*tree/bin.*${hide##*/}"
        mv hidden "tree/$hide"
    done
    refused 'the host fabric was not found; looked for .*fabric/libnccl.so.2' --fabric real
}

@test "fabric options that do not fit together" {
    attune_with_fake
    refused '--fabric model needs --surface NAME' --fabric model
    refused '--surface needs --fabric model' --surface x
    refused '--load needs --fabric model' --fabric real --load heavy
    refused "no surface 'nosuch'" --fabric model --surface nosuch
    refused "--fabric: 'fast' is not accepted" --fabric fast
}

@test "a sidecar that does not start: its own words, and the command runs without attune" {
    attune_with_fake '' refuse
    run --separate-stderr attune run --run-dir out -- sh -c 'env; exit 6'
    expect_status 6
    expect_one_line 'warning: the sidecar did not start: no room in /dev/shm \(its log is .*/attuned.log\): the command runs without attune'
    reject_output '^(NCCL_|LD_PRELOAD)'
    reject_output '^ATTUNE_RUN'
    jq -e '.exit_status == 6' out/manifest.json
    [ ! -e out/summary.json ] || fail 'a summary without a sidecar'
    export FAKE_SIDECAR=silent
    unstarted 'it ended before it was ready .*: the command runs without attune' --run-dir again
}

@test "on a fabric of attune's a sidecar that does not start is an error" {
    attune_with_fake '' refuse
    [ -e "$ATTUNE_BUILD/fabric/libnccl.so.2" ] || skip 'the host fabric is not built'
    ln -s "$ATTUNE_BUILD/fabric" tree/fabric
    refused 'the sidecar did not start: no room in /dev/shm \(its log is .*/attuned.log\): the command was not run$' --fabric real --run-dir out
    jq -e '.exit_status == 125' out/manifest.json
}

@test "a summary.txt that cannot be written is an error line" {
    attune_with_fake
    local command
    for command in 'ln -s /dev/full "$ATTUNE_RUN_DIR/summary.txt"' 'mkdir "$ATTUNE_RUN_DIR/summary.txt"'; do
        run --separate-stderr attune run --quiet --run-dir run -- sh -c "$command"
        expect_status 0
        grep -E '^attune: error: .*/run/summary\.txt: (No space left on device|Is a directory)$' <<<"$stderr"
        rm -rf run
    done
}

@test "a run folder that a program left malformed is named, the status is the command's" {
    attune_with_fake
    run --separate-stderr attune run --quiet --run-dir out -- sh -c '
        echo "{" >$ATTUNE_RUN_DIR/tasks.json; exit 4'
    expect_status 4
    expect_one_line 'no tasks to show: .*out/tasks.json: no JSON: line 2'
}

@test "the stale segment of a dead run is replaced, with a line in the log" {
    [ -x "$ATTUNE_BUILD/bin/attuned" ] || skip 'bin/attuned is not built'
    (umask 077 && echo garbage >"$ATTUNE_SHM_DIR/attune-$(id -u)-dead")
    run attune run --observe --run-id dead --run-dir out -- true
    expect_status 0
    grep -q 'replaced the stale segment .*-dead of a dead run' out/attuned.log
}

@test "a segment that others can read or write is not touched, with a line that says what to do" {
    [ -x "$ATTUNE_BUILD/bin/attuned" ] || skip 'bin/attuned is not built'
    local file
    file=$ATTUNE_SHM_DIR/attune-$(id -u)-shared
    (umask 022 && echo garbage >"$file")
    run attune run --observe --run-id shared --run-dir out -- true
    expect_status 0
    expect_output 'did not start: .*-shared has mode 0644, but a segment is private \(0600\): remove it'
    [ "$(cat "$file")" = garbage ] || fail 'the file was changed'
    rm "$file"
}

@test "a segment in use, and one of another version" {
    [ -x "$ATTUNE_BUILD/bin/attuned" ] || skip 'bin/attuned is not built'
    attune run --quiet --observe --run-id live --run-dir first -- sh -c ': >ready
        while [ ! -e end ]; do sleep 0.05; done' 3>&- &
    local first=$!
    wait_for 20 test -e ready
    unstarted 'another sidecar serves .*-live' --observe --run-id live --run-dir second
    # The layout's number stands behind the eight bytes of magic.
    printf '\143' | dd of="$ATTUNE_SHM_DIR/attune-$(id -u)-live" bs=1 seek=8 conv=notrunc status=none
    unstarted '.*-live was made by .*layout 99.*in use' --observe --run-id live --run-dir third
    : >end
    wait $first
}
