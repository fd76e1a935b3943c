# attune sim: contests on surfaces, their numbers as JSON and CSV, the suite, the paper's rows, plots.
# bats file_tags=cpu

load setup

setup() {
    attune_setup
    [ -e "$ATTUNE_BUILD/lib/attune/libattune-strategy-coordinate_descent.so" ] ||
        skip 'the strategies are not built'
    DESCENT=coordinate_descent:variant=paper
}

# A surface of a few lines.
small() {
    echo 'collective,ranks,bytes,algorithm,protocol,transport,channels,threads,chunk,time_us'
    echo 'allreduce,4,1M,keep,keep,keep,keep,keep,keep,140'
    local n
    for n in 1 2 4 8 16; do
        echo "allreduce,4,1M,ring,simple,keep,$n,keep,keep,$((100 + 100 / n))"
        echo "allreduce,4,1M,ring,ll,keep,$n,keep,keep,$((150 + 200 / n))"
    done
}

@test "rows have the documented form" {
    small >small.csv
    run attune sim --surface small.csv --strategy coordinate_descent --strategy random:trials=12 \
        --seeds 6 --noise 5% --json out/rows.json --csv out/rows.csv --quiet
    expect_status 0
    expect_output 'optimum ring/simple'
    jq -e '.version == 1 and (.rows | length == 2) and (.rows | all(
            .surface == "small" and .held_out == false and .seeds == 6 and .noise == 0.05 and
            (.gap_at_descent_stop | type == "number") and .gap_final_geomean >= 0 and
            .gap_final_worst >= .gap_final_p99 and .gap_final_p99 >= 0 and
            (.calls_to | keys == ["1", "10", "2", "5"]) and .regret >= 0 and
            has("calls_at_stop_median") and has("calls_at_settled_median") and .budget == 3 * .descent_stop)) and
           (.rows | map(.strategy) == ["coordinate_descent", "random:trials=12"]) and
           (.comparisons | length == 4) and
           (.comparisons | all(.p >= 0 and .p <= 1 and .a == "random:trials=12"))' out/rows.json ||
        fail 'unexpected form'
    # The comparison is in the units of the table above it.
    expect_output 'gap_final +median [0-9.]+%, there [0-9.]+%; smaller in [0-9]+ runs, larger in [0-9]+; p '
    expect_output 'calls_to_2 +median [0-9]+ calls, there [0-9]+ calls;'
    expect_output 'regret +median [0-9.]+ calls, there [0-9.]+ calls;'
    [ "$(wc -l <out/rows.csv)" -eq 3 ]
    [ "$(head -1 out/rows.csv | tr ',' '\n' | wc -l)" -eq "$(tail -1 out/rows.csv | tr ',' '\n' | wc -l)" ]
}

@test "a name of a surface with a comma, a quote and a newline is one field of one line of the CSV" {
    command -v python3 >/dev/null || skip 'python3 is not installed'
    local name=$'a,b"c\nd.csv'
    small >"$name"
    run attune sim --surface "$name" --strategy random:trials=3 --seeds 2 --csv rows.csv --quiet
    expect_status 0
    [ "$(wc -l <rows.csv)" -eq 2 ]
    python3 - <<'END'
import csv
header, row = csv.reader(open('rows.csv'))
assert len(header) == len(row), row
assert row[0] == 'a,b"c?d', row[0]
assert row[2] == 'random:trials=3', row[2]
END
}

@test "a never is null, not a number" {
    small >small.csv
    run attune sim --surface small.csv --strategy random --seeds 3 --budget 5 --json rows.json --quiet
    expect_status 0
    jq -e '.rows[0] | .calls_to == {"10": null, "5": null, "2": null, "1": null} and
           .calls_at_stop_median == null and .gap_at_descent_stop == null and
           .gap_final_geomean > 0.3' rows.json
}

@test "the numbers do not depend on how many processes there are" {
    small >small.csv
    for workers in 1 3; do
        attune sim --surface small.csv --strategy coordinate_descent --strategy random --seeds 7 \
            --workers $workers --json "$workers.json" --quiet >/dev/null
        jq 'del(.rows[].ask_us)' "$workers.json" >"$workers.plain"
    done
    cmp 1.plain 3.plain
}

@test "a seed gives the same run again, another one another run" {
    small >small.csv
    for seed in 1 1 2; do
        attune sim --surface small.csv --strategy random --seeds 1 --seed $seed --trace trace.csv \
            --quiet >/dev/null
        mv trace.csv "trace-$((++n)).csv"
    done
    cmp trace-1.csv trace-2.csv
    run ! cmp -s trace-1.csv trace-3.csv
    head -1 trace-1.csv | grep -q '^surface,strategy,call,phase,'
}

@test "a load that comes changes what is fast" {
    run attune sim --surface a40-nvlink-8-allgather --strategy coordinate_descent --seeds 2 \
        --load-schedule 0:none,200:heavy --budget 400 --quiet
    expect_status 0
    expect_output '^a40-nvlink-8-allgather'
    run attune sim --surface a40-nvlink-8-allgather --strategy coordinate_descent --seeds 2 \
        --drift 50% --budget 200 --quiet
    expect_status 0
}

@test "the best bandwidth can make the step slower; the step as objective avoids it" {
    local surface=$ATTUNE_ROOT/data/sim/lagom-phi2-fsdp.json
    common=(--surface "$surface" --compute-us 1980 --slowdown 0.1 --noise 3% --seeds 5 --budget 600
        --quiet --json rows.json)
    local strategy=default
    [ -e "$ATTUNE_BUILD/lib/attune/libattune-strategy-default.so" ] || strategy=coordinate_descent
    run --separate-stderr attune sim "${common[@]}" --strategy $strategy --objective collective
    expect_status 0
    expect_one_line 'warning: the objective is the collective alone, isolated from the compute'
    jq -e '.rows[0] | .speedup > 1.3 and .step_speedup < 0.92' rows.json
    run --separate-stderr attune sim "${common[@]}" --strategy $strategy --objective step
    expect_status 0
    [ -z "$stderr" ] || fail 'it warns'
    jq -e '.rows[0].step_speedup > 1.33' rows.json
}

# What NCCL's costs say of settings is about the collective, and says little of a step that hides it.
@test "the step as objective: fewer channels are tried early" {
    [ -e "$ATTUNE_BUILD/lib/attune/libattune-strategy-default.so" ] || skip 'the default strategy is not built'
    run attune sim --surface a40-nvlink-8-reducescatter --objective step --compute-us 10000 --slowdown 0.02 \
        --samples 1 --discard 4 --noise 4% --seeds 20 --budget 800 --strategy default:budget=40 --quiet --json rows.json
    expect_status 0
    jq -e '.rows[0].calls_to["2"] | . != null and . <= 120' rows.json || fail "$(cat rows.json)" # 475 with the whole prior
}

@test "the suite: every shipped surface, held out by its name alone" {
    run attune sim --suite --seeds 1 --strategy default --strategy $DESCENT --json suite.json \
        --quiet
    expect_status 0
    reject_output 'does not list'
    expect_output 'surfaces, of which [0-9]+ held out'
    jq -e --slurpfile suite "$ATTUNE_ROOT/data/suite.json" '
        ([.rows[].surface | split("@")[0] | split("/")[0]] | unique) as $run |
        ($suite[0].surfaces | map(.surface) | unique) == $run and
        ([.rows[] | select(.held_out) | .surface | split("@")[0]] | unique) ==
            ($suite[0].surfaces | map(select(.held_out) | .surface) | unique)' suite.json
    for file in "$ATTUNE_ROOT"/data/surfaces/*; do
        name=$(basename "$file"); name=${name%.gz}; name=${name%.json}; name=${name%.csv}
        jq -e --arg name "$name" '.surfaces | any(.surface == $name)' "$ATTUNE_ROOT/data/suite.json" \
            >/dev/null || fail "$name is not in data/suite.json"
    done
}

@test "a suite that holds out what its names do not say is refused" {
    jq '.surfaces |= map(if .surface == "h200-4-allgather-1m" then .held_out |= not else . end)' \
        "$ATTUNE_ROOT/data/suite.json" >suite.json
    run --separate-stderr attune sim --suite-file suite.json --seeds 1
    expect_status 3
    expect_one_line 'suite.json: /surfaces/[0-9]+: by the hash of its name h200-4-allgather-1m is not held out'
    jq '.surfaces |= map(if .surface == "h200-4-reducescatter-1m" then .held_out |= not else . end)' \
        "$ATTUNE_ROOT/data/suite.json" >suite.json
    run --separate-stderr attune sim --suite-file suite.json --seeds 1
    expect_status 3
    expect_one_line 'h200-4-reducescatter-1m was seen, so it is not held out'
}

# bats test_tags=long
@test "a suite or a paper's table that is malformed is refused with its place" {
    mkdir data
    cp -r "$ATTUNE_ROOT"/data/. data/
    local change want
    while IFS='|' read -r change want; do
        jq "$change" "$ATTUNE_ROOT/data/suite.json" >suite.json
        run --separate-stderr attune sim --suite-file suite.json --seeds 1
        [ "$status" -ne 0 ] || fail "$change was taken"
        expect_one_line "suite.json: $want"
    done <<'END'
.version = 2|the format's version is 2
.surfaces = []|"surfaces" and "strategies" must be lists
.surfaces[0].surface = ("x" * 200)|/surfaces/0: "surface" \(text\)
.strategies += [.strategies[0]]|/strategies/[0-9]+: .* is there twice
.strategies[1] = 3|/strategies/1: not a name
.surfaces += [limit(600; repeat(.surfaces[0]))]|/surfaces: more than 512
END
    export ATTUNE_DATA_DIR=$PWD/data
    while IFS='|' read -r change want; do
        jq "$change" "$ATTUNE_ROOT/data/paper.json" >data/paper.json
        run --separate-stderr attune sim --paper --quiet
        [ "$status" -ne 0 ] || fail "$change was taken"
        expect_one_line "paper.json: $want"
    done <<'END'
.rows = {}|"rows" must be a list
del(.units)|"source" \(text\) and "units"
.rows[2].kind = "guess"|/rows/2: "kind" must be
.rows[1].bytes = 1e300|/rows/1: "bytes" must be a number of bytes or null
.rows[0].autoccl_speedup = -1|/rows/0: "autoccl_speedup" must be a number above 0
.rows[0].collective = "alltoall"|/rows/0: "collective" must be a collective or all
END
}

# bats test_tags=long
@test "the paper's rows come with source, simulation and difference" {
    run attune sim --paper --json made/paper.json --quiet
    expect_status 0
    mv made/paper.json .
    expect_output 'Table 6 .*heavy .*18\.26 +18\.2[0-9] +-0\.[0-9]%.*1\.7[78]x'
    jq -e '.version == 1 and (.rows | length > 20) and (.rows | all(.published.source)) and
           ([.rows[] | select(.published.kind == "numeric" and .speedup_difference != null) |
             .published.autoccl_speedup as $published |
             [(.simulated.tuned_speedup, .simulated.stock_speedup) / $published - 1 | fabs] | min] |
             length > 8 and all(. <= 0.031))' paper.json
    # AFNFA is trained idle: under the heavy load its setting is not what training there would find.
    jq -e '[.rows[] | select(.published.source == "Table 6" and .published.load == "heavy") | .simulated] |
           length == 1 and all(.afnfa_speedup == null or .afnfa_speedup < 0.9 * .tuned_speedup)' paper.json
}

@test "a report that cannot be written is said before anything runs" {
    mkdir folder
    for what in '--surface small.csv' --paper; do
        small >small.csv
        # shellcheck disable=SC2086 # words
        run --separate-stderr attune sim $what --json folder
        expect_status 4
        expect_one_line 'folder: cannot write: it is a folder'
        [ -z "$output" ] || fail "it ran"
        # shellcheck disable=SC2086
        run --separate-stderr attune sim $what --json small.csv/out.json
        expect_status 4
        expect_one_line 'small.csv/out.json: cannot write: Not a directory'
    done
}

@test "plots are SVG; without gnuplot one line says so before anything runs" {
    small >small.csv
    run --separate-stderr env PATH=/nowhere "$ATTUNE_BUILD/bin/attune" sim --surface small.csv --plots plots
    expect_status 6
    expect_one_line 'gnuplot, which is not on PATH: install gnuplot-nox'
    command -v gnuplot >/dev/null || skip 'gnuplot is not installed'
    run attune sim --surface a40-nvlink-8-allgather --strategy random --strategy $DESCENT --seeds 3 \
        --plots plots --quiet
    expect_status 0
    for file in convergence path-random path-coordinate_descent_variant_paper; do
        grep -q '</svg>' "plots/a40-nvlink-8-allgather-$file.svg"
    done
    run ! compgen -G 'plots/*.gp'
    run ! compgen -G 'plots/*.log'
}

@test "plots of recordings: rows that are not evenly spaced, and cells that nobody measured" {
    command -v gnuplot >/dev/null || skip 'gnuplot is not installed'
    local n chunk
    {
        small | head -2
        for n in 1 2 4 16; do
            for chunk in 16384 32768 49152 1048576; do
                [ $((n * chunk)) -gt 8000000 ] || [ $n -eq 2 ] && [ $chunk -eq 32768 ] && continue
                echo "allreduce,4,1M,ring,simple,keep,$n,keep,$chunk,$((100 + 100 / n))"
            done
        done
    } >gaps.csv
    run --separate-stderr attune sim --surface h200-4-allreduce-16m --surface gaps.csv \
        --strategy random --seeds 2 --budget 60 --plots plots --quiet
    expect_status 0
    [ -z "$stderr" ] || fail "it says: $stderr"
    for file in h200-4-allreduce-16m gaps; do
        grep -q '</svg>' "plots/$file-path-random.svg"
        # Each cell once, and none without a number.
        awk 'NF == 7 && !/^#/ { print $1, $2; if ($7 !~ /^[0-9.]+$/) print "no number" }' \
            "plots/$file-path-random.dat" >cells
        [ -s cells ] || fail "$file has no cells"
        run ! grep -q 'no number' cells
        [ -z "$(sort cells | uniq -d)" ] || fail "$file has cells twice"
    done
}

@test "a plot that cannot be drawn costs one warning and the status, no numbers" {
    small >small.csv
    mkdir bin
    printf '#!/bin/sh\necho noise >&2\nexit 1\n' >bin/gnuplot
    chmod +x bin/gnuplot
    cp small.csv other.csv
    run --separate-stderr env PATH="$PWD/bin:$PATH" "$ATTUNE_BUILD/bin/attune" sim --surface small.csv \
        --surface other.csv --strategy random:trials=3 --seeds 2 --plots plots --json rows.json --quiet
    expect_status 4
    expect_one_line 'warning: 2 of the plots could not be drawn: gnuplot failed on plots/small-convergence.gp: '
    jq -e '.rows | map(.surface) == ["small", "other"]' rows.json
    grep -q noise plots/small-convergence.log
}

@test "wrong usage is one line" {
    small >small.csv
    while IFS='|' read -r arguments line; do
        # shellcheck disable=SC2086
        run --separate-stderr attune sim $arguments
        expect_status 2
        expect_one_line "$line"
    done <<'CASES'
|what is to be searched\? --surface NAME\|FILE, --suite or --paper
--surface small.csv --seeds 0|--seeds: "0" is no whole number from 1
--surface small.csv --noise loud|--noise: "loud" is no number
--surface small.csv --noise 5|--noise: "5" is no number from 0 to 1
--surface small.csv --noise 101%|--noise: "101%" is no number from 0 to 1
--surface small.csv --strategy random --strategy default --strategy random|--strategy random is given twice
--surface small.csv --strategy random --against default|--against default is none of the strategies that run
--surface small.csv --load lunch|surface small has no load "lunch"
--surface small.csv --bytes 7|surface small has no task of 7
--surface small.csv --collective allgather|surface small has no allgather
--surface small.csv --objective step|--objective step needs the compute: --compute-us US
--surface small.csv --strategy random:trails=5|trails
--surface small.csv --frobnicate|no option --frobnicate
--surface small.csv extra|"extra" is no option
--suite --surface small.csv|--surface does not go with --suite
--surface small.csv --paper|--surface does not go with --paper
--suite --bytes 1M|--bytes does not go with --suite
--suite --load none|--load does not go with --suite
--paper --suite|--suite does not go with --paper
--paper --csv paper.csv|--csv does not go with --paper
--paper --strategy random|--strategy does not go with --paper
--paper --seeds 3|--seeds does not go with --paper
--surface small.csv --seeds|--seeds needs a value
CASES
}

@test "a file that cannot be used is one line, with bounded memory" {
    small >whole.csv
    head -c 300 whole.csv >truncated.csv
    : >empty.csv
    sed 's/time_us/time_ms/' whole.csv >unit.csv
    echo 'allreduce,4,1M,ring,simple,keep,3,keep,keep,-5' | cat whole.csv - >negative.csv
    head -c 100 "$ATTUNE_ROOT"/data/surfaces/h200-4-allgather-1m.json.gz >truncated.json.gz
    truncate -s 2G huge.json
    for file in truncated.csv empty.csv unit.csv negative.csv truncated.json.gz huge.json; do
        run --separate-stderr bash -c "ulimit -v 600000; exec attune sim --surface $file --seeds 1"
        if [ "$status" -ne 3 ]; then
            # An address-space limit and AddressSanitizer do not go together.
            run --separate-stderr attune sim --surface "$file" --seeds 1
        fi
        expect_status 3
        expect_one_line "$file"
    done
    run --separate-stderr attune sim --surface nowhere.csv
    expect_status 6
    expect_one_line 'nowhere.csv'
    run --separate-stderr attune sim --surface whole.csv --strategy nowhere
    expect_status 6
    expect_one_line 'no strategy "nowhere"'
    run --separate-stderr attune sim --surface whole.csv --json /proc/x.json
    expect_status 4
    expect_one_line '/proc/x.json: cannot write'
}

@test "a strategy that crashes or fails is named" {
    [ -e "$ATTUNE_BUILD/tests/plugins/libattune-strategy-odd.so" ] ||
        skip 'the plugins that are bad on purpose are not built'
    small >small.csv
    run --separate-stderr attune sim --surface small.csv --plugin-path "$ATTUNE_BUILD/tests/plugins" \
        --strategy odd:how=crash --seed 7 --seeds 1
    expect_status 1
    expect_one_line 'small, seed 7: strategy odd:how=crash crashed: signal 6'
    run --separate-stderr attune sim --surface small.csv --plugin-path "$ATTUNE_BUILD/tests/plugins" \
        --strategy odd:how=error --seeds 3
    expect_status 1
    expect_output 'failed in 3 runs: .*failed in ask'
    run --separate-stderr attune sim --surface small.csv --plugin-path "$ATTUNE_BUILD/tests/plugins" \
        --strategy odd:how=hang --seeds 3 --limit 0.5
    expect_status 1
    expect_one_line 'small, seed [123]: strategy odd:how=hang takes longer than 0.5 s'
}

@test "a strategy that ends its process well is no result, and other strategies get none made up" {
    [ -e "$ATTUNE_BUILD/tests/plugins/libattune-strategy-odd.so" ] ||
        skip 'the plugins that are bad on purpose are not built'
    small >small.csv
    local place
    for place in create ask tell; do
        run --separate-stderr attune sim --surface small.csv --plugin-path "$ATTUNE_BUILD/tests/plugins" \
            --strategy odd:how=leave,place=$place --strategy random --seeds 2 --workers 1 --json rows.json
        expect_status 1
        expect_one_line "small, seed 1: strategy odd:how=leave,place=$place ended its process \(exit status 0\)"
        [ -z "$output" ] || fail "rows were printed: $output"
        [ ! -e rows.json ] || fail "rows were written: $(cat rows.json)"
    done
}

@test "the paper's rows: a strategy that ends its process is named with its surface" {
    command -v cc >/dev/null || skip 'no C compiler'
    cat >leaver.c <<'END'
#include "body.h"
static int leave(void *state, att_setting_t *settings, uint32_t max, uint32_t *count)
{
    (void)state, (void)settings, (void)max, (void)count;
    exit(0);
}
static const att_parameter_t parameters[] = {
    {"variant", ATT_PARAMETER_STRING, 0, "", NULL, "any"}};
ATT_STRATEGY_EXPORT const att_strategy_t attune_strategy = {
    BODY("coordinate_descent"), .ask = leave, .parameters = parameters, .parameter_count = 1};
END
    cc -w -shared -fPIC -I "$ATTUNE_ROOT/include" -I "$ATTUNE_ROOT/tests/unit/plugins" leaver.c \
        -o libattune-strategy-coordinate_descent.so
    run --separate-stderr attune sim --paper --plugin-path . --workers 1 --quiet
    expect_status 1
    expect_one_line 'under load .*, seeds 1 to 5: strategy coordinate_descent:variant=code.* ended its process \(exit status 0\)'
}

@test "--help and the man page list the same options" {
    run attune sim --help
    expect_status 0
    grep -Eo -- '^  --[a-z-]+' <<<"$output" | tr -d ' ' | sort >help
    sed 's/\\-/-/g' "$ATTUNE_ROOT/man/attune-sim.1" | grep -Eo -- '--[a-z-]+' | sort -u >page
    grep -Fxv -f page help && fail 'options without a place in the man page'
    true
}
