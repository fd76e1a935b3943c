# attune record and attune surfaces: recording on the host fabric, kill and resume, conversion, and
# one line for files that are no surface.
# bats file_tags=cpu
load setup

setup() {
    attune_setup
    export ATTUNE_NCCL_LIB=$ATTUNE_BUILD/fabric/libnccl.so.2
    [ -e "$ATTUNE_NCCL_LIB" ] || skip "the host fabric is not built"
    data=$ATTUNE_ROOT/data/surfaces
}

# The settings that were measured again, fastest first: how many samples each has, and that NCCL's
# choice and the first N have at least M; no other setting is faster.
settled() { # SURFACE N M
    zcat "$1" | jq -e --argjson n "$2" --argjson m "$3" '
        [.results[] | {keep: (.configuration.algorithm == "keep"),
                       time: (.measurements[] | select(.name == "time") | .value),
                       again: ([.measurements[] | select(.name == "again") | .value | length] | add // 0)}]
        | (map(select(.again > 0)) | sort_by(.time)) as $again
        | ([$again[0:$n][], (.[] | select(.keep))] | all(.again >= $m))
          and (map(select(.again == 0)) | all(.time >= $again[0].time))'
}

# One line on standard error that begins with the program's name, and the status.
refused() { # STATUS REGEX COMMAND...
    local status_wanted=$1 regex=$2
    shift 2
    run --separate-stderr "$@"
    [ "$status" -eq "$status_wanted" ] || fail "status $status: $stderr"
    [ "$(wc -l <<<"$stderr")" -eq 1 ] || fail "not one line: $stderr"
    grep -qE -- "$regex" <<<"$stderr" || fail "'$stderr' does not match '$regex'"
}

small=(record allreduce --size-list 16K -t 2 --channels 1,2 --chunks 4K,16K --repeats 2 --again 5 --batch 2
    --front 3 --front-samples 12)

@test "the shipped surfaces: at least 15, models and recordings, none that cannot be read" {
    run timeout 60 attune surfaces
    expect_status 0
    [ "$(grep -c ' model ' <<<"$output")" -ge 9 ] || fail "too few models"
    [ "$(grep -c '^h200-4-' <<<"$output")" -ge 18 ] || fail "too few recordings"
    timeout 60 attune surfaces --json >all.json
    jq -e '.version == 1 and ([.surfaces[] | select(.optimum_us > .default_us or .optimum_us <= 0)] == [])' all.json
}

@test "shapes: lines and shares, by knob" {
    timeout 60 attune surfaces --shapes --json h200-4-allreduce-80m a40-nvlink-8-allgather >shapes.json
    jq -e '.surfaces | length == 5' shapes.json
    jq -e '.surfaces[0].shape.channels | .lines > 20 and .not_unimodal <= .lines' shapes.json
    cat >bumpy.csv <<'END'
collective,ranks,bytes,algorithm,protocol,channels,chunk,time_us
allreduce,2,1024,ring,ll,1,4096,10
allreduce,2,1024,ring,ll,2,4096,12
allreduce,2,1024,ring,ll,3,4096,9
allreduce,2,1024,ring,ll,4,4096,9.5
allreduce,2,1024,ring,ll,1,8192,10
allreduce,2,1024,ring,ll,2,8192,9
allreduce,2,1024,ring,ll,3,8192,11
END
    timeout 60 attune surfaces --shapes --tolerance 0.1 --json bumpy.csv >bumpy.json
    jq -e '.surfaces[0].shape.channels | .lines == 2 and .not_unimodal == 1 and .not_unimodal_beyond_tolerance == 1' bumpy.json
    timeout 60 attune surfaces --shapes --tolerance 0.25 --json bumpy.csv |
        jq -e '.surfaces[0].shape.channels.not_unimodal_beyond_tolerance == 0'
}

@test "no table without a surface: its heads stand above the first row" {
    : >empty.json
    run --separate-stderr attune surfaces empty.json
    expect_status 3
    [ -z "$output" ] || fail "heads without a row"
    run --separate-stderr attune surfaces empty.json h200-4-allreduce-80m
    expect_status 3
    [ "$(grep -c '^# surface' <<<"$output")" -eq 1 ] || fail "no heads"
    mkdir none
    ATTUNE_DATA_DIR=$CASE_DIR/none run --separate-stderr attune surfaces
    [ -z "$output" ] || fail "heads without a row"
}

@test "files that are no surface: one line each" {
    : >empty.json
    head -c 700 "$data/a40-pcie-8-allgather.json" >cut.json
    head -c 2000 "$data/h200-4-allreduce-1m.json.gz" >cut.json.gz
    head -c 40M /dev/zero | gzip >bomb.json.gz
    zcat "$data/h200-4-allreduce-1m.json.gz" | sed 's/"unit":"us"/"unit":"GB\/s"/' >unit.json
    printf 'collective,ranks,bytes,algorithm,protocol,time_ms\n' >unit.csv
    printf 'collective,ranks,bytes,algorithm,protocol,time_us\nallreduce,2,1024,ring,ll,nan\n' >nan.csv
    truncate -s 2G huge.json
    refused 3 'empty.json: the file is empty$' attune surfaces ./empty.json
    refused 3 'cut.json: line [0-9]+, column' attune surfaces ./cut.json
    refused 3 'cut.json.gz: compressed data end early' attune surfaces ./cut.json.gz
    refused 3 'bomb.json.gz: larger than 33554432 bytes when inflated' attune surfaces ./bomb.json.gz
    refused 3 'unit.json: /results/0/measurements/0/unit: no unit of time' attune surfaces ./unit.json
    refused 3 "unit.csv: line 1: column 'time_ms': times must be in microseconds" attune surfaces ./unit.csv
    refused 3 "nan.csv: line 2: time_us: 'nan'" attune surfaces ./nan.csv
    refused 6 'none.json: there is no such surface file' attune surfaces ./none.json
    refused 6 "no surface 'none': looked for none.json, .json.gz and .csv" attune surfaces none
    # 2 GB in 200 MB of address space
    case $(nm "$ATTUNE_BUILD/bin/attune" 2>/dev/null) in *__asan_init* | *__tsan_init*) ;;
    *) refused 3 'huge.json: larger than 32 MiB' bash -c 'ulimit -v 200000; exec attune surfaces ./huge.json' ;;
    esac
    refused 3 'huge.json: larger than 32 MiB' attune surfaces ./huge.json
}

@test "record: every setting of the grid, raw samples, the best measured again; T4 by its schema" {
    run timeout 60 attune "${small[@]}" --prefix fabric --description "two threads"
    expect_status 0
    expect_output '^  fabric-allreduce-16k +NCCL +[0-9.]+ us  best +[0-9.]+ us .* complete$'
    [ ! -e fabric-allreduce-16k.partial.jsonl ] || fail "the journal is still there"
    zcat fabric-allreduce-16k.json.gz >t4.json
    # 6 pairs, 2 channels, chunks keep, 4K and 16K (LL128: 2 grains and 8 grains), and NCCL's choice
    jq -e '.results | length == 6 * 2 * 3 + 1' t4.json
    jq -e '[.results[] | .times.runtimes | length] | all(. >= 1 and . <= 2) and any(. == 2)' t4.json
    jq -e '[.results[] | .measurements[] | select(.name == "again") | .value | length]
           | length >= 2 and all(. >= 5)' t4.json
    settled fabric-allreduce-16k.json.gz 3 12
    # Kernel Tuner's T4 results schema 1.0.0, by hand
    jq -e '(.schema_version | test("^[0-9]+[.][0-9]+[.][0-9]+$")) and (.results | all(
        (.timestamp | type == "string") and (.configuration | type == "object") and
        (.objectives | type == "array") and (.times | type == "object") and
        (.times.runtimes | type == "array") and
        ([.times.compilation_time, .times.framework, .times.search_algorithm, .times.validation] | all(type == "number")) and
        (.invalidity | IN("timeout", "compile", "runtime", "correctness", "constraints", "correct")) and
        (.correctness | type == "number") and
        (.measurements | all((.name | type == "string") and (.unit | type == "string") and
                             (.value | type | IN("number", "string", "array"))))))' t4.json
    jq -e '.metadata.machine.ranks == 2 and .metadata.state == "complete" and (.metadata.costs | length == 6)' t4.json
    run timeout 20 attune surfaces ./fabric-allreduce-16k.json.gz
    expect_status 0
    expect_output '^fabric-allreduce-16k +allreduce +16K +2 none +37 '
    # and once more: nothing to do
    before=$(sha256sum <fabric-allreduce-16k.json.gz)
    run timeout 60 attune "${small[@]}" --prefix fabric
    expect_status 0
    expect_output 'fabric-allreduce-16k.json.gz: complete already'
    [ "$before" = "$(sha256sum <fabric-allreduce-16k.json.gz)" ] || fail "it was written anew"
}

@test "record: killed, it goes on where it was" {
    journal=recorded-allreduce-16k.partial.jsonl
    many=(record allreduce --size-list 16K -t 2 --channels 1-4 --repeats 60 --again 5 --front-samples 10 --batch 1)
    attune "${many[@]}" >first.log 2>&1 &
    pid=$!
    for i in $(seq 3000); do
        [ -e "$journal" ] && [ "$(wc -l <"$journal")" -gt 100 ] && break
        sleep 0.02
    done
    kill -KILL $pid
    wait $pid || true
    written=$(wc -l <"$journal")
    [ "$written" -gt 100 ] || fail "it was not recording: $(cat first.log)"
    cp "$journal" before
    printf '[3,"grid",12' >>"$journal" # as if the kill had cut a line
    run timeout 60 attune "${many[@]}" --budget 2
    [ "$status" -eq 0 ] || [ "$status" -eq 10 ] || fail "status $status"
    expect_output "goes on after $((written - 1)) samples"
    if [ -e "$journal" ]; then
        cmp -n "$(stat -c %s before)" before "$journal"
        [ "$(wc -l <"$journal")" -gt "$written" ] || fail "nothing was added"
    fi
    # what is there is a surface, complete or not
    run timeout 20 attune surfaces ./recorded-allreduce-16k.json.gz
    expect_status 0
}

@test "record: out of time it says so, and what is there is a surface" {
    long=(record allreduce,allgather --size-list 16K -t 2 --channels 1-4 --repeats 1000 --again 1000 --batch 1)
    run timeout 60 attune "${long[@]}" --budget 2
    expect_status 10
    expect_output 'out of time with 2 of 2 surfaces incomplete; the same command goes on'
    for file in recorded-allreduce-16k.json.gz recorded-allgather-16k.json.gz; do
        zcat $file | jq -e '.metadata.state == "partial"'
        run timeout 20 attune surfaces ./$file
        expect_status 0
    done
    # another grid does not go with these samples
    refused 13 'recorded-allreduce-16k.partial.jsonl: is of another grid' \
        timeout 60 attune record allreduce --size-list 16K -t 2 --channels 1-3 --batch 1
}

@test "record: out of time while the front is settled, it goes on; fewer samples are enough then" {
    # Long enough that not even a front of one setting, all others being three times slower, is settled in time.
    front=(record allreduce --size-list 4M -t 2 --channels 1,2 --chunks 4K,16K --repeats 2 --again 5 --again-share 1 --batch 1)
    surface=recorded-allreduce-4m.json.gz
    run timeout 60 attune "${front[@]}" --front 100 --front-samples 10000 --budget 2
    expect_status 10
    zcat $surface | jq -e '.metadata.state == "partial"'
    there=$(wc -l <recorded-allreduce-4m.partial.jsonl)
    run timeout 60 attune "${front[@]}" --front 100 --front-samples 10000 --budget 2
    expect_status 10
    expect_output "goes on after $((there - 1)) samples"
    [ "$(wc -l <recorded-allreduce-4m.partial.jsonl)" -gt "$there" ] || fail "nothing was added"
    run timeout 60 attune "${front[@]}" --front 3 --front-samples 12
    expect_status 0
    expect_output ' complete$'
    settled $surface 3 12
}

@test "record: beside a GEMM, and with ranks as processes" {
    run timeout 60 attune "${small[@]}" --gemm 32,32,32
    expect_status 0
    zcat recorded-allreduce-16k-gemm.json.gz | jq -e '.metadata.task.load == "gemm"'
    run timeout 60 attune record allgather --size-list 16K --procs 2 --channels 1,2 --chunks 4K --repeats 1 --again 2 --front 2 --front-samples 4 --batch 1
    expect_status 0
    zcat recorded-allgather-16k.json.gz | jq -e '.results | length == 3 * 2 * 2 + 1'
    settled recorded-allgather-16k.json.gz 2 4
}

@test "record: bad options get one line" {
    refused 2 "^attune record: --channels '0-3': expected" attune record --channels 0-3
    refused 2 "^attune record: --chunks 'x': expected" attune record --chunks x
    refused 2 "^attune record: --threads-list '100': expected .* multiples of 32" attune record --threads-list 100
    refused 2 "^attune record: --front '-1': expected a number from 0" attune record --front -1
    refused 2 "^attune record: --front-samples 'many': expected" attune record --front-samples many
    refused 2 "^attune record: --budget '-1': expected" attune record --budget -1
    refused 2 "^attune record: --budget needs a value" attune record --budget
    refused 2 "^attune record: --sweep and --setting are" attune record --sweep
    refused 2 "^attune record: unknown collective 'sum'" attune record sum
    refused 2 "^attune record: option --nope is not known; see attune record --help" attune record --nope
    refused 15 "host fabric has no thread blocks" timeout 30 attune "${small[@]}" --threads-list 256
    refused 4 'none/x cannot be made: No such file' timeout 30 attune "${small[@]}" --out none/x
    run attune record --help
    expect_status 0
    expect_output '--budget SECONDS'
    expect_output '--front-samples N'
}

@test "record --from-sweep: a surface of each task of a sweep, its best setting the optimum" {
    cd "$ATTUNE_ROOT"
    for load in alone gemm; do
        attune record --from-sweep docs/results/2026-11-29-h200/sweep-$load.json.gz --out "$CASE_DIR" \
            --prefix sweep --device "NVIDIA H200" --device-units 132 --description "one NVIDIA H200, NCCL 2.30.7"
    done
    cd "$CASE_DIR"
    [ "$(ls sweep-*.json.gz | wc -l)" -eq 18 ] || fail "not 18 surfaces"
    timeout 60 attune surfaces --json ./sweep-allreduce-80m.json.gz ./sweep-allgather-16m-gemm.json.gz >both.json
    jq -e '.surfaces[0] | .settings == 486 and .optimum == "ring/simple ch=27 chunk=1246720" and .load == "none"' both.json
    jq -e '.surfaces[1] | .settings == 255 and .load == "gemm" and .measured_again >= 20 and .optimum_us < .default_us' both.json
    (cd "$ATTUNE_ROOT" && attune record --from-sweep docs/results/2026-11-29-h200/sweep-gemm.json.gz \
        --out "$CASE_DIR/new" --prefix sweep)
    [ "$(ls new | wc -l)" -eq 9 ]
    refused 6 'nosuch.json' attune record --from-sweep ./nosuch.json --out newer
    [ ! -e newer ] || fail 'a folder was left for nothing'
    : >taken
    refused 4 'out taken cannot be made: File exists' attune record --from-sweep ./nosuch.json --out taken
    # What would be no surface, or a file elsewhere, is refused, and what is there stays.
    zcat "$ATTUNE_ROOT"/docs/results/2026-11-29-h200/sweep-gemm.json.gz | jq '.tasks |= .[:1]' >one.json
    cp sweep-allreduce-1m-gemm.json.gz before.json.gz
    jq '.tasks[0].grid += [.tasks[0].grid[1]]' one.json >twice.json
    refused 3 'twice.json: /tasks/0: would be no surface: /results element .* was there before' \
        attune record --from-sweep ./twice.json --prefix sweep
    cmp sweep-allreduce-1m-gemm.json.gz before.json.gz
    mkdir -p up/sweep-allreduce-1m-up up/out
    jq '.tasks[0].load = "/../../up"' one.json >elsewhere.json
    refused 3 'elsewhere.json: /tasks/0: no task of a sweep' attune record --from-sweep ./elsewhere.json --out up/out
    [ -z "$(find . -name '.sweep*')" ] || fail "a file was left"
    echo '{"version": 1, "tasks": []}' >other.json
    refused 3 'other.json: no file of attune bench --sweep' attune record --from-sweep ./other.json
    refused 6 ' ./h200-4-allgather-1m: there is no such' attune record --from-sweep h200-4-allgather-1m
    refused 3 'surface' attune record --from-sweep "$data/a40-pcie-8-allgather.json"
}

@test "bench/gpu/record.sh on the host fabric: twice, the second time nothing is left" {
    export OUT=$CASE_DIR/out
    BUDGET=60 run timeout 120 "$ATTUNE_ROOT/bench/gpu/record.sh" --fabric --no-build
    expect_status 0
    [ "$(ls out/*.json.gz | wc -l)" -eq 8 ] || fail "not 8 surfaces"
    BUDGET=60 run timeout 120 "$ATTUNE_ROOT/bench/gpu/record.sh" --fabric --no-build
    expect_status 0
    [ "$(grep -c 'complete already' <<<"$output")" -eq 8 ] || fail "something was recorded anew"
}

@test "the scripts for a GPU say that NCCL is missing before they build anything" {
    for script in record first_light; do
        run env -u ATTUNE_NCCL_LIB OUT="$CASE_DIR/out" ATTUNE_BUILD="$CASE_DIR/built" timeout 60 "$ATTUNE_ROOT/bench/gpu/$script.sh"
        expect_status 2
        [ "$output" = 'ATTUNE_NCCL_LIB must name NCCL 2.30.3 or later' ] || fail "not one line"
        [ ! -e built ] || fail "$script.sh has built something"
    done
}
