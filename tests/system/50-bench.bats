# attune bench on the host fabric: columns, results, processes, settings, failures.
# bats file_tags=cpu
load setup

setup() {
    attune_setup
    export ATTUNE_NCCL_LIB=$ATTUNE_BUILD/fabric/libnccl.so.2
    [ -e "$ATTUNE_NCCL_LIB" ] || skip "the host fabric is not built"
}

# Number of table rows (lines that are no comment) in $output.
rows() { grep -cvE '^#|^$' <<<"$output"; }

# Field N of the first table row.
field() { awk -v n="$1" '!/^#/ && NF > 8 { print $n; exit }' <<<"$output"; }

@test "started several times by a launcher: said once, as they are no job of several ranks" {
    local rank
    for rank in 0 1; do
        OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=$rank run --separate-stderr \
            env LD_LIBRARY_PATH="$ATTUNE_BUILD/fabric" attune bench allreduce -b 8 -e 8 -t 2 -n 2
        expect_status 0
        if [ $rank = 0 ]; then
            expect_one_line 'OMPI_COMM_WORLD_SIZE=2: attune bench does not join the ranks of a launcher'
        else
            [ -z "$stderr" ] || fail "$stderr"
        fi
    done
}

@test "-J where nothing can be written is refused before anything is measured" {
    run --separate-stderr timeout 60 attune bench -b 4K -e 4K -t 2 -n 3 -J nowhere/x.json
    expect_status 4
    expect_one_line 'nowhere/x.json cannot be written: No such file or directory'
    [ -z "$output" ] || fail 'it measured'
    run --separate-stderr timeout 60 attune bench -b 4K -e 4K --procs 2 -n 3 -J nowhere/x.json
    expect_status 4
    expect_one_line 'nowhere/x.json cannot be written: No such file or directory'
    [ -z "$output" ] || fail 'it measured'
}

@test "-J into a pipe or through a link: they stay what they are" {
    mkfifo pipe
    timeout 60 cat pipe >got &
    reader=$!
    run timeout 60 attune bench -b 4K -e 4K -t 2 -n 3 -J pipe
    expect_status 0
    [ -p pipe ] || fail 'replaced by a file'
    wait "$reader"
    jq -e '.version' got || fail "$(cat got)"
    ln -s there.json link.json
    echo >there.json
    run timeout 60 attune bench -b 4K -e 4K -t 2 -n 3 -J link.json
    expect_status 0
    [ -L link.json ] || fail 'the link is gone'
    jq -e '.version' there.json || fail "$(cat there.json)"
}

@test "a run folder that is gone is told in one line, however many communicators end" {
    ATTUNE_RUN_DIR=$PWD/gone run --separate-stderr timeout 60 attune bench -b 4K -e 4K -t 4 -n 3
    [ "$(grep -c 'fabric-.*No such file' <<<"$stderr")" -eq 1 ] || fail 'expected one line'
}

@test "all collectives on four threads: nccl-tests' columns, right results" {
    run timeout 60 attune bench all -b 4K -e 64K -f 4 -t 4 -n 3
    expect_status 0
    [ "$(rows)" -eq 15 ] || fail "expected 15 rows"
    expect_output '^#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong$'
    expect_output '^        4096          1024     float     sum      -1 +[0-9.e+]+ +[0-9.]+ +[0-9.]+       0 +[0-9.e+]+ +[0-9.]+ +[0-9.]+       0$'
    expect_output '^# Out of bounds values : 0 OK$'
    expect_output '^# Avg bus bandwidth    : '
}

@test "several ranks a thread, in groups, in every data type" {
    for type in float half bfloat16 double int8 uint8 int32 int64; do
        run timeout 60 attune bench allreduce,reducescatter -b 12K -e 12K -t 2 -g 2 -n 2 -d $type
        expect_status 0
    done
}

@test "--place makes calls of one kind only" {
    run timeout 60 attune bench -b 4K -e 4K -t 2 -n 3 --place in -J in.json
    expect_status 0
    expect_output '^        4096          1024     float     sum      -1      N/A     N/A     N/A     N/A +[0-9.e+]+ +[0-9.]+ +[0-9.]+       0$'
    jq -e '.results[0] | .out_of_place == null and .in_place.nwrong == 0 and .in_place.host > 0 and
        .in_place.host <= .in_place.time' in.json
    run timeout 60 attune bench -b 4K -e 4K -t 2 -n 3 --place out
    expect_status 0
    expect_output ' 0      N/A     N/A     N/A     N/A$'
    run attune bench --place sideways
    expect_status 2
    expect_output "attune bench: --place 'sideways': expected both, out or in"
}

@test "ranks as processes" {
    run timeout 60 attune bench allreduce,allgather -b 16K -e 16K --procs 3 -n 3
    expect_status 0
    expect_output '^# 3 processes$'
    expect_output '^#  Rank  2 .* Process  2 '
    expect_output '^# Out of bounds values : 0 OK$'
}

@test "processes on processors of their own" {
    run --separate-stderr timeout 60 taskset -c 0 attune bench allreduce -b 4K -e 4K --procs 2 -n 2 --bind
    expect_status 15
    expect_one_line '--bind: 1 processors for 2 processes'
    [ "$(nproc)" -ge 2 ] || skip 'one processor'
    attune bench allreduce -b 4K -e 4K --procs 2 --bind --time 30 >/dev/null &
    parent=$!
    for ((i = 0; i < 100; i++)); do
        children=$(pgrep -P $parent) && [ "$(wc -w <<<"$children")" -eq 2 ] &&
            shares=$(for pid in $children; do sed -n 's/^Cpus_allowed_list:\s*//p' /proc/$pid/status; done) &&
            [ "$(sort -u <<<"$shares" | wc -l)" -eq 2 ] && break
        sleep 0.1
    done
    kill $parent
    wait $parent || true
    [ "$i" -lt 100 ] || fail "shares: $shares"
}

@test "processes with threads each" {
    run timeout 60 attune bench reduce -b 16K -e 16K --procs 2 -t 2 -r 3 -n 3
    expect_status 0
    expect_output '^       16384          4096     float     sum       3 '
}

@test "the modelled fabric's clock gives the published time" {
    export ATTUNE_FABRIC_MODE=model ATTUNE_FABRIC_SURFACE=a40-nvlink-8-allgather
    run timeout 60 attune bench allgather -b 80M -e 80M -t 8 -n 50 --compute-us 1000
    expect_status 0
    expect_output '^# modelled fabric: times are of its own clock'
    awk -v x="$(field 7)" 'BEGIN { exit !(x > 30.08 * 0.97 && x < 30.08 * 1.03) }' ||
        fail "algorithm bandwidth $(field 7), not within 3 % of 30.08"
}

@test "a fixed setting is in force, and one that NCCL lacks is refused" {
    export ATTUNE_FABRIC_MODE=model ATTUNE_FABRIC_SURFACE=a40-nvlink-8-allgather ATTUNE_FABRIC_NOISE=0
    run timeout 60 attune bench allgather -b 80M -e 80M -t 8 -n 3
    native=$(field 7)
    run timeout 60 attune bench allgather -b 80M -e 80M -t 8 -n 3 --setting 'ring/simple ch=12'
    expect_status 0
    expect_output '^# setting: ring/simple ch=12$'
    awk -v a="$native" -v b="$(field 7)" 'BEGIN { exit !(b < a * 0.9) }' ||
        fail "twelve channels give $(field 7), NCCL's choice $native"
    run --separate-stderr timeout 60 attune bench allgather -b 80M -e 80M -t 8 --setting 'nvls/simple'
    expect_status 11
    expect_one_line 'setting nvls/simple: NCCL does not have it for AllGather here'
}

@test "a sweep on the modelled fabric beats NCCL's choice and writes its medians" {
    export ATTUNE_FABRIC_MODE=model ATTUNE_FABRIC_SURFACE=a40-nvlink-8-allgather
    run timeout 120 attune bench allgather -b 80M -e 80M -g 8 --sweep --keep 5 --repeats 30 \
        --grid-repeats 1 -J sweep.json
    expect_status 0
    expect_output "NCCL's choice$"
    ratio=$(awk '/^  allgather/ { print $7 }' <<<"$output")
    awk -v r="$ratio" 'BEGIN { exit !(r > 0.6 && r < 0.9) }' || fail "NCCL's choice at $ratio of the best"
    grep -q '"repeats": 30' sweep.json
    grep -q '"definition": "a sample is' sweep.json
}

@test "ranks that differ in a setting end the run, and the reason is told once" {
    export ATTUNE_FABRIC_INJECT_MISMATCH=1:5
    run --separate-stderr timeout 60 attune bench allreduce -b 64K -e 64K -t 2 -n 20
    [ "$status" -ne 0 ] || fail "passed"
    [ "$(grep -c '^attune: error: ' <<<"$stderr")" -eq 1 ] || fail "expected one error line"
}

@test "a killed process ends the others within seconds" {
    attune bench allreduce -b 64K -e 64K --procs 3 -n 20 --time 60 >out 2>err &
    bench=$!
    wait_for 20 grep -q 'out-of-place' out
    victim=$(pgrep -P $bench | tail -n 1)
    kill -KILL "$victim"
    status=0
    wait $bench || status=$?
    output=$(cat err)
    expect_status 137
    expect_output 'process [0-2] was killed by signal 9'
}

@test "killing the parent leaves no process behind" {
    attune bench allreduce -b 64K -e 64K --procs 3 -n 20 --time 60 >out 2>&1 &
    bench=$!
    wait_for 20 grep -q 'out-of-place' out
    kill -KILL $bench
    wait $bench || true
    wait_for 10 sh -c "! pgrep -f '[a]ttune bench allreduce -b 64K -e 64K --procs 3 -n 20 --time 60' >/dev/null"
}

@test "products beside the collectives" {
    run timeout 60 attune bench allreduce -b 64K -e 64K -t 2 -n 50 --gemm 64,64,64
    expect_status 0
    expect_output '^# beside each rank: float products of 64x64 by 64x64'
    expect_output '^# products beside: [1-9]'
}

@test "bad input: one line and status 2" {
    for words in '--frob' '--bind' '-b 5Q' 'alltoall' '-t 0' '--setting ring'; do
        run --separate-stderr attune bench $words
        expect_status 2
        expect_one_line '^attune bench: |^setting '
    done
}

@test "no NCCL, or something else under its name: one line" {
    ATTUNE_NCCL_LIB=/nowhere/libnccl.so.2 run --separate-stderr attune bench
    expect_status 6
    expect_one_line 'cannot load NCCL .*/nowhere/libnccl.so.2'
    ATTUNE_NCCL_LIB=$ATTUNE_BUILD/lib/libattune-bench-tuner.so run --separate-stderr attune bench
    expect_status 7
    expect_one_line 'not an NCCL library'
}

@test "under attune run: the run folder learns of the results, a sweep is refused" {
    run timeout 60 attune run --fabric real --run-dir run -- \
        attune bench allreduce -b 64K -e 64K -t 2 -n 100
    expect_status 0
    grep -q '"result_errors": 0' run/bench-*.json
    run timeout 60 attune run --fabric real --run-dir run2 -- \
        attune bench allreduce -b 64K -e 64K -t 2 --sweep
    expect_status 8
    expect_output 'fixed settings need NCCL_TUNER_PLUGIN, which is set to'
}

@test "--time prints the first and the last round" {
    run timeout 60 attune bench allreduce -b 16K -e 16K -t 2 -n 20 --time 1 --watch-tuned=0.3
    expect_status 0
    [ "$(rows)" -eq 2 ] || fail "expected 2 rows"
    expect_output '^# after 1\.[0-9] s, the last round \([0-9]+\):$'
    expect_output '^# +[0-9.]+ s  AllReduce +16384 B  busbw out-of-place'
}
