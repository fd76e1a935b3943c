# Communicator variants: threads per block and transport as knobs, on the modelled fabric.
# bats file_tags=cpu
load setup
load run-setup

setup() {
    attune_setup
    needs_parts
    export ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0
    export ATTUNE_NCCL_LIB=$ATTUNE_BUILD/fabric/libnccl.so.2 ATTUNE_FABRIC_NOISE=0.005
}

# Eight ranks of the PCIe machine, whose transport is the wrong one.
pcie_run() {
    local folder=$1 calls=$2
    shift 2
    run timeout 300 attune run --fabric model --surface a40-pcie-8-allgather --run-dir "$folder" \
        --max-cost 0 "$@" -- attune bench allgather -b 80M -e 80M -t 8 -w 5 -n "$calls"
}

speedup() { jq -r '.runs[0].tasks[0].speedup' "$1/summary.json"; }

# bats test_tags=long
@test "six knobs find a better setting than four, without a mismatch, with right results" {
    pcie_run four 1100
    expect_status 0
    pcie_run six 1100 --variants t=p2p
    expect_status 0
    expect_output '0 mismatches between ranks in .* 0 wrong results$'
    run jq -r '.tasks[0].tuned.setting.transport' six/tasks.json
    expect_output '^p2p$'
    awk -v four="$(speedup four)" -v six="$(speedup six)" 'BEGIN { exit !(six > four * 1.02) }' ||
        fail "speedup of four knobs $(speedup four), of six $(speedup six)"
}

# bats test_tags=long
@test "a setting of a variant is applied again, and its threads are in force" {
    pcie_run one 12 --variants nt=128 --variants t=p2p --observe
    expect_status 0
    jq '.tasks[0].tuned.setting = {"algorithm":"ring","protocol":"simple","transport":"p2p","channels":4,"threads":128,"chunk":0}
        | .tasks[0].kept_default = false' one/tasks.json >tasks.json
    mv tasks.json one/tasks.json
    pcie_run two 150 --variants nt=128 --variants t=p2p --apply one --trace on
    expect_status 0
    expect_output ' ring/simple/p2p ch=4 thr=128 '
    expect_output '0 mismatches between ranks in .* 0 wrong results$'
    # Without variants there is no such setting.
    pcie_run three 60 --apply one
    expect_status 0
    run jq -r '.tasks[0].reason' three/tasks.json
    expect_output 'is not legal here'
}

# bats test_tags=long
@test "the sidecar's death is harmless: the job ends well, on whatever was in force" {
    attune run --fabric model --surface a40-pcie-8-allgather --run-dir out --max-cost 0 \
        --variants nt=128,512 --variants t=p2p -- \
        attune bench allgather -b 80M -e 80M -t 8 -w 5 -n 400 >out.txt 2>&1 &
    job=$!
    for _ in $(seq 100); do
        [ ! -s out/trials.jsonl ] || break
        sleep 0.1
    done
    [ -s out/trials.jsonl ] || fail "no trial began"
    sidecar=$(for environ in $(grep -lzsxF -- "ATTUNE_TEST_CASE=$ATTUNE_TEST_CASE" /proc/[0-9]*/environ); do
        pid=${environ#/proc/}
        pid=${pid%/environ}
        [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != attuned ] || echo "$pid"
    done)
    [ -n "$sidecar" ] || fail "no sidecar"
    # Its helper processes go with it.
    for pid in $sidecar; do kill -9 "$pid" 2>/dev/null || true; done
    wait $job || fail "the job failed: $(cat out.txt)"
    run cat out.txt
    expect_output '^# Out of bounds values : 0 OK$'
    expect_output '0 mismatches between ranks in'
}

@test "what --variants refuses, before anything starts" {
    run -125 attune run --variants nt=480 -- true
    expect_output "--variants: nt '480' is not accepted; NCCL_NTHREADS takes 128, 256 or 512$"
    run -125 attune run --variants nt=128 --preload off -- true
    expect_output '--variants needs the preload: leave out --preload off$'
    NCCL_NTHREADS=256 run -125 attune run --variants nt=128 -- true
    expect_output '--variants: NCCL_NTHREADS fixes the threads: unset it, or leave nt out$'
    NCCL_P2P_DISABLE=1 run -125 attune run --variants t=p2p,shm -- true
    expect_output '--variants: NCCL_P2P_DISABLE fixes the transport: unset it, or leave shm out$'
    NCCL_ENV_PLUGIN=mine run -125 attune run --variants nt=128 -- true
    expect_output "NCCL_ENV_PLUGIN is set to 'mine'; --variants needs its place: unset it$"
    run -125 attune run --variants nt=128,256,512 --variants-memory 2G -- true
    expect_output '3 variants of up to 32 channels may take 3.4 GiB on each GPU .*, but --variants-memory is 2G; name fewer'
    NCCL_MAX_CTAS=8 run -0 attune run --variants nt=128,256,512 --variants-memory 2G -- true
    expect_output '--variants: 3 more communicators for each one of the job, of up to 8 channels: up to 0.9 GiB on each GPU$'
}

# Eight ranks, NCCL without a chunk per call.
buffered() { # VERSION [option...]
    local version=$1
    shift
    rm -rf out
    ATTUNE_FABRIC_VERSION=$version run timeout 300 attune run --fabric model --surface a40-nvlink-8-allgather \
        --run-dir out --max-cost 0 "$@" -- attune bench allgather -b "${size:-80M}" -e "${size:-80M}" -t 8 -w 1 -n "$calls"
    expect_status 0
    expect_output '0 mismatches between ranks in .* 0 wrong results$'
}

@test "buffer: only the NCCL that reads it anew and has no chunk per call; one line elsewhere" {
    local size=1M calls=5
    buffered 2.28.9 --observe --variants buffer=512K
    expect_output 'has no variants: this NCCL takes other values for a new communicator only since 2.29.7'
    buffered 2.30.7 --observe --variants buffer=512K
    expect_output 'has no variants: this NCCL takes a chunk for each call: leave buffer out of --variants'
    buffered 2.29.7 --observe --variants buffer=512K
    reject_output 'has no variants'
    NCCL_BUFFSIZE=1048576 run --separate-stderr attune run --variants buffer=512K -- true
    expect_status 125
    expect_one_line 'NCCL_BUFFSIZE fixes the buffers'
    ATTUNE_FABRIC_VERSION=2.30.7 LD_LIBRARY_PATH=$ATTUNE_BUILD/fabric run --separate-stderr \
        attune doctor --json --variants buffer=512K
    expect_status 1
    expect_output 'buffer: NCCL 2.30.7 takes a chunk for each call'
}

# bats test_tags=long
@test "buffer: the chunk is searched through communicators with other buffers, in 2.29.7" {
    calls=600 buffered 2.29.7 --variants buffer=128K,512K,1M --strategy random:trials=40
    # A ring's chunk is half of the buffer; every one of them was tried, no other.
    [ "$(jq -r 'select(.phase == "search") | .setting.chunk' out/trials.jsonl | sort -nu | xargs)" = '0 65536 262144 524288' ] ||
        fail "$(cat out/trials.jsonl)"
    # It is in force: such a chunk takes as long as where NCCL is asked for it, and not as long as NCCL's own. The
    # medians are of the latest 32 calls: the model's noise would tell them apart.
    export ATTUNE_FABRIC_NOISE=0
    jq '.tasks[0].tuned.setting = {"algorithm":"ring","protocol":"simple","transport":"keep","channels":8,"threads":0,"chunk":65536}
        | .tasks[0].kept_default = false' out/tasks.json >tasks.json
    mkdir again
    mv tasks.json again/tasks.json
    local median=()
    calls=150 buffered 2.29.7 --apply again --variants buffer=128K
    expect_output ' ring/simple ch=8 chunk=64K '
    median+=("$(jq -r '.tasks[0].now.median_us' out/tasks.json)")
    jq '.nccl_version = 23007' again/tasks.json >tasks.json
    mv tasks.json again/tasks.json
    calls=150 buffered 2.30.7 --apply again
    expect_output ' ring/simple ch=8 chunk=64K '
    median+=("$(jq -r '.tasks[0].now.median_us' out/tasks.json)")
    calls=150 buffered 2.29.7 --observe
    median+=("$(jq -r '.tasks[0].now.median_us' out/tasks.json)")
    awk -v one="${median[0]}" -v other="${median[1]}" -v own="${median[2]}" \
        'BEGIN { exit !(one > 0 && one < other * 1.01 && one > other * 0.99 && (one > own * 1.03 || one < own * 0.97)) }' ||
        fail "buffer ${median[0]}, chunk ${median[1]}, NCCL's own ${median[2]}"
}
