# attune report --compare: two results side by side, by what bound of noise, and what is not compared.
# bats file_tags=cpu
load setup

results=$ATTUNE_ROOT/docs/results
h200=$ATTUNE_ROOT/examples/report/h200
late=$ATTUNE_ROOT/tests/data/runs/late-rank

# tests_log FILE FACTOR SEED [STYLE]: AllReduce on 8 ranks from 1 KiB to 128 MiB as nccl-tests prints it;
# from 16 MiB on times are FACTOR of what they would be; 1 % of noise.
tests_log() {
    awk -v factor="$2" -v seed="$3" -v style="${4:-new}" 'BEGIN {
        if (style == "new") {
            print "# nccl-tests version 2.19.6 nccl-headers=23007 nccl-library=2300" (seed % 10)
            print "# Collective test starting: all_reduce_perf_mpi"
            print "# nThread 1 nGpus 1 minBytes 1024 maxBytes 134217728 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1"
            print "# Using devices"
            for (r = 0; r < 8; r++) print "#  Rank  " r " Group  0 Pid  77 on node device  " r " [0000:0f:00] NVIDIA H100"
            head = "#       size         count      type   redop    root     time   algbw   busbw #wrong"
            print head "     time   algbw   busbw #wrong"
        } else if (style == "statistics") {
            print "# nThread 1 nGpus 8 minBytes 1024 warmup iters: 1 iters: 20"
            print "#       size         count      type   redop    root     time   algbw   busbw #wrong i_min i_max i_p99 i_cv%"
        } else
            print "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error"
        for (bytes = 1024; bytes <= 134217728; bytes *= 2) {
            us = 20 + bytes / 1.1e5
            if (bytes >= 16777216) us *= factor
            us *= 1 + 0.01 * sin(bytes * 0.7 + seed * 1.3)
            bus = bytes / us * 1.75e-3
            side = sprintf("%.2f %.2f %.2f %s", us, bus / 1.75, bus, style == "old" ? "2e-07" : "0")
            if (style == "statistics") print bytes, bytes / 4, "float sum -1", side, us, us, us, "3.0"
            else print bytes, bytes / 4, "float sum", style == "new" ? "-1" : "", side, side
        }
        print "# Avg bus bandwidth    : 100"
    }' >"$1"
}
# The same as the JSON of nccl-tests.
tests_json() {
    tests_log log.tmp "$2" "$3"
    grep -v '^#' log.tmp | jq -R 'split(" ") | map(select(. != "")) | {size: (.[0] | tonumber), count: (.[1] | tonumber),
        type: .[2], redop: .[3], root: -1, out_of_place: {time: (.[5] | tonumber), alg_bw: 1, bus_bw: (.[7] | tonumber)},
        in_place: {time: (.[9] | tonumber), alg_bw: 1, bus_bw: (.[11] | tonumber)}}' |
        jq -s '{version: 3, nccl_version: "2.30.7", results: .}' >"$1"
}
compare() { attune report --compare "$@" --json; }
refused() { # STATUS REGEX A B
    run --separate-stderr attune report --compare "$3" "$4"
    expect_status "$1"
    expect_one_line "$2"
    [ -z "$output" ] || fail "printed something"
}

@test "logs of two NCCL versions: what changed is found with its sizes, the rest is within noise" {
    tests_log a.log 1 1
    tests_log b.log 0.7 4
    run attune report --compare a.log b.log
    expect_status 0
    expect_output '^# A: a\.log, NCCL 2\.30\.1, NVIDIA H100'
    expect_output '  allreduce 64M x8 float +out of place .*scatter over sizes  better$'
    expect_output '^# shift: allreduce 16M to 128M \(4 sizes\): B takes -[23][0-9]\.[0-9] % time'
    compare a.log b.log | jq -e '([.entries[] | select(.bytes >= 16777216) | .verdict] | unique) == ["better"] and
        ([.entries[] | select(.bytes < 16777216) | .verdict] | unique) == ["within noise"] and
        .summary.compared == 36 and .summary.worse == 0 and (.entries | all(.noise_bound >= 0.01 and .noise_bound < 0.12)) and
        .a.device == "NVIDIA H100" and .ranges[0].sizes == 4 and .cliffs == []'
    # The other way round it is worse.
    compare b.log a.log | jq -e '.summary.worse == 8 and .summary.better == 0'
    # A bound of one's own.
    attune report --compare a.log b.log --noise 60% --json | jq -e '.summary.within_noise == 36'
}

@test "logs of any age, and JSON, against each other" {
    tests_log new.log 1 1
    tests_log old.log 1 2 old
    tests_log statistics.log 1.5 3 statistics
    tests_json new.json 1 4
    compare old.log new.log | jq -e '.summary.compared == 36 and .summary.within_noise == 36 and .entries[0].collective == "allreduce"'
    compare new.json new.log | jq -e '.summary.within_noise == 36'
    compare new.log statistics.log | jq -e '.summary.compared == 18 and .summary.only_a == 18 and .summary.worse == 4'
    # 3 % over 20 iterations, on both sides.
    compare statistics.log statistics.log | jq -e '[.entries[] | select(.noise_from == "samples") |
        .noise_bound * 1000 | round] | length == 18 and unique == [19]'
    # Nothing is known of the noise of few sizes: a bound is assumed, and said to be.
    head -n 14 new.log >few.log
    run attune report --compare few.log few.log
    expect_output '5\.0 %  assumed +within noise'
}

@test "JSON and text of one and the same run are alike" {
    LD_LIBRARY_PATH=$ATTUNE_BUILD/fabric attune bench allreduce -b 64K -e 64K -t 2 -n 50 -J one.json >one.txt
    run attune report --compare one.json one.txt
    expect_status 0
    expect_output 'not alike in 0'
}

@test "rounds of attune bench tell their own noise" {
    for name in a b; do
        jq -n --arg name $name '{version: 1, provenance: {nccl_version: "2.30.7", ranks: 2, iterations: 20, clock: "wall",
            device: "host"}, results: [range(5) as $round | {size: 1024, collective: "allgather", type: "float", redop: "none",
            out_of_place: {time: (if $name == "a" then 100 else 110 end + $round % 3 * 3), bus_bw: 1}, in_place: null}]}' >$name.json
    done
    compare a.json b.json | jq -e '.summary.compared == 1 and .entries[0].verdict == "worse" and
        .entries[0].noise_from == "samples" and .entries[0].noise_bound < 0.06 and .entries[0].ranks == 2'
}

@test "run folders: NCCL's choice and what was in force, by the samples of the last comparison" {
    compare "$late" "$late" | jq -e '.summary.compared == 2 and .summary.within_noise == 2 and
        ([.entries[].what] == ["NCCL'"'"'s choice", "in force"]) and .a.kind == "a run folder"'
    mkdir slower
    jq '.tasks[0].tuned.median_us *= 1.2' "$late/tasks.json" >slower/tasks.json
    compare "$late" slower | jq -e '.summary.worse == 1 and (.entries[1] | .verdict == "worse" and .noise_bound < 0.1)'
    # Two sessions on a GPU; where times were taken by other means they are not compared.
    mkdir first
    cp "$results/2026-11-29-h200/tasks-alone.json.gz" first/tasks.json.gz
    cp "$results/2026-11-29-h200/trials-alone.jsonl.gz" first/trials.jsonl.gz
    compare first "$h200" | jq -e '.summary.compared == 18 and .summary.not_alike == 6 and
        (.summary | .better + .worse + .within_noise) == 12 and
        ([.entries[] | select(.verdict == "not alike") | .bytes] | unique) == [1048576]'
    run attune report --compare first "$h200"
    expect_output "not alike: A's time is by common clock, B's by start to start"
}

@test "sweeps: NCCL's choice, the tuned setting and the best" {
    compare "$results/2026-11-29-h200/sweep-alone.json.gz" "$results/2026-11-29-h200-again/sweep-alone.json.gz" |
        jq -e '.summary.compared == 27 and ([.entries[].what] | unique | length) == 3 and
            (.entries | all(.noise_bound >= 0.01)) and ([.entries[] | select(.noise_from == "samples")] | length) > 5'
    # Beside a GEMM and alone are not the same tasks.
    refused 13 'nothing was measured in both: .* has allgather 1M x4 float, ..., .* x4 float beside gemm, ...' "$results/2026-11-29-h200/sweep-alone.json.gz" \
        "$results/2026-11-29-h200-again/sweep-gemm.json.gz"
}

@test "unlike things are refused in one line" {
    tests_log a.log 1 1
    sed 's/all_reduce/all_gather/' a.log >gather.log
    sed 's/H100/A100/' a.log >a100.log
    sed 's/ float / half /' a.log >half.log
    refused 13 'not alike: a.log is the output of nccl-tests or attune bench, .*/h200 is a run folder' a.log "$h200"
    refused 13 'nothing was measured in both: a.log has allreduce 1K x8 float sum, ..., gather.log has allgather' a.log gather.log
    refused 13 'was measured on NVIDIA H100, a100.log on NVIDIA A100' a.log a100.log
    refused 13 'nothing was measured in both' a.log half.log
    refused 13 'not alike: .*/h200 was measured on NVIDIA H200' "$h200" "$late"
    jq -n '{version: 1, provenance: {clock: "modelled", ranks: 8}, results: [{size: 1024, collective: "allreduce",
        type: "float", redop: "sum", out_of_place: {time: 10, bus_bw: 1}}]}' >model.json
    jq '.provenance.clock = "wall"' model.json >wall.json
    refused 13 'by another clock' model.json wall.json
    refused 3 'has no results' a.log "$ATTUNE_ROOT/README.md"
    refused 3 "give the run's folder, not a file of it" "$late/tasks.json" "$late/tasks.json"
    refused 6 'nowhere: No such file' nowhere a.log
    mkdir empty
    refused 6 'empty/tasks.json: there is no such file' empty "$late"
    run --separate-stderr attune report --compare a.log
    expect_status 2
    run --separate-stderr attune report --compare a.log a.log -o x.html
    expect_status 2
    run --separate-stderr attune report --compare a.log a.log --noise much
    expect_status 2
    run --separate-stderr attune report "$late" --json --noise 3%
    expect_status 2
    expect_one_line 'belongs to --compare'
}
