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
