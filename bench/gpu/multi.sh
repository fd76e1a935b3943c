#!/bin/bash
# Two or more GPUs of one host joined by NVLink, one process a GPU:
#
#   bench/gpu/multi.sh STEP [--dry] [--no-build]
#
#   table     AllReduce, AllGather and ReduceScatter at SIZES, and at 128 MiB alone and beside a GEMM:
#             NCCL's choice, tuned online, and a sweep whose best 20, NCCL's choice and the tuned setting
#             are measured again, interleaved, 32 samples each; nccl-tests with NCCL's choice and with the
#             settings found, its data checked
#   variants  transport and threads a block as communicator variants: NCCL's own transport lines, the
#             bandwidth over each, the warps that the profiler saw, six knobs beside four
#   training  PyTorch DDP and FSDP, one GPU a rank (pytorch.sh): --reproducible, then both in each launch
#   record    surfaces for attune sim, three collectives at 1, 16 and 128 MiB
#   report    tables and a verdict a line of what OUT has; status 1 when one FAILED
#   call1     table, variants, report; call2: record, training, report; each within LIMIT_SECONDS
#
# With more than two ranks table and variants are better run as two commands, each with the whole limit,
# and report after them.
# A part that fails leaves the others alone; the end names what failed, with status 1. Everything that was
# measured is in OUT at once. training and record go on where they stopped. Grids and searches end at the
# channels that NCCL's log names for a communicator: it clips what asks for more.
#
#   --dry       on the host fabric, two ranks, small sizes: a try of this script
#   --no-build  do not build, also when attune is not in ATTUNE_BUILD
#
# ATTUNE_NCCL_LIB  NCCL 2.30.3 or later for chunk sizes, 2.29.7 for variants
# NCCL_TESTS_DIR   folder of nccl-tests built with MPI=1; without it that part fails
# ATTUNE_BUILD     build folder, made when attune is not in it (build/gpu)
# CARRY            folder with libraries that the machine lacks
# OUT              STEP.log, PART.tar.gz, report.txt (build/multi); WORK what they are made of (build/multi.work)
# RANKS            (all GPUs); SIZES (1M,4M,16M,64M,256M,1G)
# STRATEGY         of the table's searches (default:stop=0,budget=299)
# LIMIT_SECONDS    for the whole command (540)
# LAUNCHES         of a training of each kind (7); STEPS of one (150), TUNED_STEPS where it is tuned (350);
#                  there, ATTUNE_OBJECTIVE (step) and ATTUNE_STRATEGY (default:budget=40)
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
usage() { sed -n '2,/^set -u/s/^# \{0,1\}//p' "$0" | sed '$d' >&2; exit 2; }
step=${1:-} dry=no build=yes
case $step in table | variants | training | record | report | call1 | call2) ;; *) usage ;; esac
for word in "${@:2}"; do
    case $word in --dry) dry=yes ;; --no-build) build=no ;; *) usage ;; esac
done

export ATTUNE_BUILD=${ATTUNE_BUILD:-$root/build/gpu}
out=${OUT:-$root/build/multi} work=${WORK:-$root/build/multi.work}
began=$SECONDS limit=${LIMIT_SECONDS:-540}
mkdir -p "$out" "$work" || exit 1
out=$(cd "$out" && pwd) work=$(cd "$work" && pwd)
if [ -z "${MULTI_LOG:-}" ]; then
    export MULTI_LOG=$out/$step.log
    "$0" "$@" 2>&1 | tee "$MULTI_LOG"
    exit "${PIPESTATUS[0]}"
fi
. "$root/bench/gpu/machine.sh"
export PATH=$ATTUNE_BUILD/bin:$PATH
until=$limit # when the part that runs must be over
failures=()

failed() { failures+=("$*") && echo "FAILED  $*"; }

# save PART: what there is of it into OUT.
save() {
    tar -C "$work" -czf "$work/$1.tar.gz" "$1"
    [ $? -le 1 ] && mv -f "$work/$1.tar.gz" "$out/$1.tar.gz" # 1: a file grew meanwhile
}

bytes_of() { numfmt --from=iec "$1"; }

# ---- what all parts run with ----

collectives=(allreduce allgather reducescatter)
IFS=, read -ra sizes <<<"${SIZES:-1M,4M,16M,64M,256M,1G}"
tiny=() middle=() large=() paper=128M
for size in "${sizes[@]}"; do
    if [ "$(bytes_of "$size")" -le $((4 << 20)) ]; then
        tiny+=("$size")
    elif [ "$(bytes_of "$size")" -le $((64 << 20)) ]; then
        middle+=("$size")
    else
        large+=("$size")
    fi
done
# The product that AutoCCL's figure 9 runs beside its collectives (m, n, k).
gemm=3456,3456,128,bfloat16
tune_small=22 tune_large=75 tune_gemm=18 calls=50 tests_calls=200
tiny_sweep=(--batch 64 --repeats 64 --time 4) # the host paces short calls
middle_sweep=(--batch 16 --time 3) large_sweep=(--batch 2 --time 6) gemm_sweep=(--batch 8 --time 5)
most='' most_unknown=32
variant_sizes=16M,128M nt_size=16M variant_time=10 process_calls=200 forced_channels=8 forced_calls=1000
nt_grid=(--threads-list 128,256,512 --channels 4,8,16,24,32 --chunks 64K,256K,1M) nt_budget=25
record_sizes=1M,16M,128M record_seconds=140
record_channels=(1 2 4 8 12 16 20 24 28 32)
record_grid=(--chunks 16K,64K,256K,1M --again 30 --front 8 --front-samples 100)
record_name=(--prefix "${PREFIX:-h200-nvlink}" --description "one process a GPU, NVLink")
launches=${LAUNCHES:-7} steps=${STEPS:-150} tuned_steps=${TUNED_STEPS:-350} equal_steps=60 launch_seconds=60
interval_launches=6 # the fewest that a 95 % interval needs

if [ $dry = yes ]; then
    export ATTUNE_NCCL_LIB=$ATTUNE_BUILD/fabric/libnccl.so.2
    ranks=2 tiny=(16K) middle=(64K) large=(256K) paper=128K gemm=64,64,64 most_unknown=4
    tune_small=4 tune_large=3 tune_gemm=3 tests_calls=400
    tiny_sweep=(--batch 2 --time 1) middle_sweep=(--batch 2 --time 1)
    large_sweep=(--batch 2 --time 1) gemm_sweep=(--batch 2 --time 1)
    variant_sizes=64K nt_size=256K variant_time=2 forced_channels=2 nt_budget=4
    nt_grid=(--channels 1,2 --chunks 8K,32K) # the fabric has no threads to record
    record_sizes=16K,64K,256K record_seconds=25
    record_channels=(1 2)
    record_grid=(--chunks 8K,32K --again 30 --front 4 --front-samples 50)
    record_name=(--prefix fabric --device "host fabric")
    launches=${LAUNCHES:-2} steps=${STEPS:-25} tuned_steps=${TUNED_STEPS:-25} equal_steps=25 launch_seconds=30
else
    for name in NCCL_MAX_CTAS NCCL_MULTI_RANK_GPU_ENABLE NCCL_HOSTID CUDA_VISIBLE_DEVICES; do
        [ -z "${!name+set}" ] || echo "$name=${!name} is for several ranks on one GPU: unset here"
        unset "$name"
    done
    export NCCL_NVLS_ENABLE=0
    # As attune run sets it: what is compared must not differ in what is connected.
    export NCCL_RUNTIME_CONNECT=0
    gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ')
    ranks=${RANKS:-$gpus}
    [ "$ranks" -le 2 ] || tune_large=90 forced_calls=300
    gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1)
    record_name+=(--device "${gpu:-unknown GPU}")
fi
small=("${tiny[@]}" "${middle[@]}")

environment() {
    {
        date -u +%FT%TZ
        git -C "$root" rev-parse HEAD 2>/dev/null
        attune --version
        echo "NCCL: $ATTUNE_NCCL_LIB; $ranks ranks; channels: ${most:-unknown}"
        uname -srm
        nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm --format=csv,noheader 2>/dev/null
        nvidia-smi topo -m 2>/dev/null
        env | grep -E '^(NCCL|ATTUNE|CUDA)_' | sort
    } >"$work/$1/environment.txt"
}

need_machine() {
    if [ $dry = no ]; then
        if [ ! -r "${ATTUNE_NCCL_LIB:-}" ]; then
            echo "ATTUNE_NCCL_LIB must name an NCCL of 2.30.3 or later" >&2
            exit 2
        elif [ "$ranks" -lt 2 ]; then
            echo "needs two GPUs or more; nvidia-smi lists $gpus" >&2
            exit 2
        elif ! command -v mpirun >/dev/null; then
            echo "needs Open MPI's mpirun in PATH" >&2
            exit 2
        fi
    fi
    [ -x "$ATTUNE_BUILD/bin/attune" ] && return
    if [ $build = no ]; then
        echo "$ATTUNE_BUILD/bin/attune is not there" >&2
        exit 2
    fi
    say "build in $ATTUNE_BUILD"
    build_here "$work/build.log" || exit 1
}

# joined A B C: with commas
joined() { local IFS=,; echo "$*"; }

# smoke: one AllReduce, which says whether one runs. Sets `most` to the channels of its communicator.
smoke() {
    local status
    say "one AllReduce, to see that it runs"
    (
        export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT NCCL_DEBUG_FILE="$part/nccl-smoke.%p.log"
        limited 60 attune bench allreduce --size-list 64K --procs "$ranks" -n 5
    )
    status=$?
    most=$(cat "$part"/nccl-smoke.*.log 2>/dev/null |
        sed -nE 's/.*NCCL INFO ([0-9]+) coll channels, .*/\1/p' | sort -n | head -n 1)
    if [ -n "$most" ]; then
        echo "channels of the communicator: $most"
    else
        most=$most_unknown
        echo "channels of the communicator: NCCL's log does not say; up to $most are tried"
    fi
    return $status
}

# ---- table ----

# measure NAME SIZES SECONDS SAMPLES [BENCH-OPTION...]: NCCL's choice, then tuned.
measure() {
    local name=$1 list=$2 seconds=$3 samples=$4 all objective=collective
    # Beside compute a call also waits for multiprocessors, before its first stamp: start to start has
    # that, as the sweep's samples do.
    [ "$name" != gemm ] || objective=step
    [ -n "$list" ] || return
    all=$(joined "${collectives[@]}")
    shift 4
    say "$name: NCCL's choice"
    limited 60 attune bench "$all" --size-list "$list" --procs "$ranks" --place out "$@" -w 5 -n "$calls" \
        -J "$part/default-$name.json" || failed "table: $name: NCCL's choice"
    say "$name: tuned online for $seconds s"
    limited $((seconds + 40)) attune run --run-dir "$part/run-$name" --max-cost 0 --samples "$samples" \
        --objective $objective --max-channels "$most" --strategy "${STRATEGY:-default:stop=0,budget=299}" -- \
        attune bench "$all" --size-list "$list" --procs "$ranks" --place out "$@" -w 5 -n "$calls" \
        --time "$seconds" --watch-tuned=10 || failed "table: $name: tuned"
    save table
}

# sweep NAME SIZES BENCH-OPTION...: beside what measure found. A process a collective, as a sweep's file is
# written at its end.
sweep() {
    local name=$1 list=$2 also=() collective
    shift 2
    [ -n "$list" ] || return
    [ -e "$part/run-$name/tasks.json" ] && also=(--also "$part/run-$name")
    for collective in "${collectives[@]}"; do
        say "$name: sweep of $collective at $list"
        limited 150 attune bench "$collective" --size-list "$list" --procs "$ranks" --place out --sweep \
            "${also[@]}" --max-channels "$most" --repeats 32 --keep 20 "$@" \
            -J "$part/sweep-$name-${list%%,*}-$collective.json" || failed "table: $name: sweep of $collective at $list"
    done
    save table
}

# plan LOAD SIZE...: what the report must find.
plan() {
    local load=$1 size collective
    shift
    for size; do
        for collective in "${collectives[@]}"; do
            echo "$collective $(bytes_of "$size") $load" >>"$part/plan.txt"
        done
    done
}

# The settings found in several runs as one, for --apply.
merge() {
    mkdir -p "$part/found" && python3 - "$part" <<'PYTHON'
import glob, json, os, sys
part = sys.argv[1]
merged = None
for path in (os.path.join(part, f"run-{name}", "tasks.json") for name in ("small", "large")):
    if os.path.exists(path):
        run = json.load(open(path))
        if merged is None:
            merged = run
        else:
            merged["tasks"] += run["tasks"]
if merged is None:
    sys.exit("no run has found anything")
json.dump(merged, open(os.path.join(part, "found", "tasks.json"), "w"))
PYTHON
}

nccl_tests() {
    local name kind words how first last factor
    local list=("${small[@]}" "${large[@]}")
    first=${list[0]} last=${list[-1]}
    factor=$(($(bytes_of "${list[1]}") / $(bytes_of "$first")))
    if [ $dry = no ] && [ ! -x "${NCCL_TESTS_DIR:-}/all_reduce_perf" ]; then
        failed "table: NCCL_TESTS_DIR must name a folder with all_reduce_perf, ... built with MPI=1"
        return
    fi
    merge || failed "table: nccl-tests: no settings to apply"
    : >"$part/tests.txt"
    for name in all_reduce all_gather reduce_scatter; do
        for kind in default tuned; do
            say "nccl-tests: $name, $kind"
            if [ $dry = yes ]; then
                words=(attune bench "${name//_/}" --procs 2 -b "$first" -e "$last" -f "$factor" -N 2
                    -n "$tests_calls")
            else
                words=(mpirun --allow-run-as-root -n "$ranks" --oversubscribe --bind-to none
                    "$NCCL_TESTS_DIR/${name}_perf" -g 1 -t 1 -b "$first" -e "$last" -f "$factor" -c 1
                    -N 2 -n "$tests_calls" -w 20) # the second cycle has all settings in force
            fi
            how=()
            [ $kind = default ] || how=(attune run --run-dir "$part/run-tests-$name" --apply "$part/found" --)
            if ! (export LD_LIBRARY_PATH="$(dirname "$ATTUNE_NCCL_LIB"):${LD_LIBRARY_PATH:-}" &&
                limited 60 "${how[@]}" "${words[@]}") | tee "$part/tests-$name-$kind.log" ||
                ! grep -q '^# Out of bounds values : 0 OK' "$part/tests-$name-$kind.log"; then
                failed "table: nccl-tests: $name, $kind"
            fi
            awk -v name=$name -v kind=$kind '/^ +[0-9]+ / { print name, kind, $1, $7 }
                /^# Out of bounds/ { print name, kind, "wrong", $7 }' "$part/tests-$name-$kind.log" >>"$part/tests.txt"
        done
    done
    save table
}

table() {
    part=$work/table
    rm -rf "$part"
    mkdir -p "$part" || return
    plan none "${small[@]}" "$paper" "${large[@]}"
    plan gemm "$paper"
    if ! smoke; then
        failed "table: no AllReduce runs"
        environment table
        return
    fi
    environment table
    measure small "$(joined "${small[@]}")" $tune_small 16
    sweep small "$(joined "${tiny[@]}")" "${tiny_sweep[@]}"
    sweep small "$(joined "${middle[@]}")" "${middle_sweep[@]}"
    measure gemm "$paper" $tune_gemm 16 --gemm "$gemm"
    sweep gemm "$paper" --gemm "$gemm" "${gemm_sweep[@]}"
    measure large "$(joined "$paper" "${large[@]}")" $tune_large 8
    sweep large "$(joined "$paper" "${large[@]}")" "${large_sweep[@]}"
    nccl_tests
}

# ---- variants ----

# forced FROM TO KEY=VALUE...: the run's tasks with this ring/simple setting instead of what it found.
forced() {
    mkdir -p "$2" && python3 - "$@" <<'PYTHON'
import json, os, sys
source, target, *pairs = sys.argv[1:]
run = json.load(open(os.path.join(source, "tasks.json")))
setting = {"algorithm": "ring", "protocol": "simple", "transport": "keep", "channels": 8, "threads": 0, "chunk": 0}
for pair in pairs:
    key, value = pair.split("=")
    setting[key] = int(value) if value.isdigit() else value
for task in run["tasks"]:
    task["tuned"]["setting"] = setting
    task["kept_default"] = False
json.dump(run, open(os.path.join(target, "tasks.json"), "w"))
PYTHON
}

# logged NAME COMMAND...: NCCL's log of it beside what it prints, which stays in NAME.txt.
logged() {
    local name=$1
    shift
    say "variants: $name"
    (
        export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,P2P,SHM,NET,ENV NCCL_DEBUG_FILE="$part/nccl-$name.%p.log"
        limited 45 "$@"
    ) >"$part/$name.txt" 2>&1
    local status=$?
    grep -Ev 'NCCL INFO' "$part/$name.txt" | tail -n 25
    [ $status -eq 0 ] || failed "variants: $name (status $status)"
    save variants
    return $status
}

transports() {
    local bench kind collective=allreduce
    if [ $dry = yes ]; then # only the model has transports; up to 64 KiB it moves all data
        export ATTUNE_FABRIC_MODE=model ATTUNE_FABRIC_SURFACE=a40-pcie-8-allgather ATTUNE_FABRIC_ANY_RANKS=1
        collective=allgather
    fi
    bench=(attune bench "$collective" --size-list "$variant_sizes" --procs "$ranks" --place out -w 20)
    for kind in p2p shm; do
        if [ $dry = yes ]; then
            export ATTUNE_FABRIC_TRANSPORT=$kind
        elif [ $kind = shm ]; then
            unset NCCL_SHM_DISABLE
            export NCCL_P2P_DISABLE=1
        else
            export NCCL_SHM_DISABLE=1
        fi
        # With the setting of the twins below; the second cycle is warm, as theirs.
        logged "process-$kind" "${bench[@]}" --setting "ring/simple ch=$forced_channels" -N 2 -n $process_calls \
            -J "$part/process-$kind.json"
    done
    unset NCCL_P2P_DISABLE NCCL_SHM_DISABLE ATTUNE_FABRIC_TRANSPORT
    logged t-search attune run --run-dir "$part/run-t" --max-cost 0 --max-channels "$most" --variants t=p2p,shm -- \
        "${bench[@]}" -n 50 --time $variant_time || return
    for kind in p2p shm; do
        forced "$part/run-t" "$part/force-$kind" transport=$kind channels=$forced_channels
        logged "t-$kind" attune run --run-dir "$part/run-t-$kind" --variants t=p2p,shm --apply "$part/force-$kind" -- \
            "${bench[@]}" -N 2 -n $forced_calls -J "$part/t-$kind.json"
    done
    unset ATTUNE_FABRIC_MODE ATTUNE_FABRIC_SURFACE ATTUNE_FABRIC_ANY_RANKS
}

threads() {
    local bench nt
    bench=(attune bench allreduce --size-list "$nt_size" --procs "$ranks" --place out -w 20)
    say "variants: six knobs and four, measured side by side"
    limited $((nt_budget + 40)) attune record allreduce --size-list "$nt_size" --procs "$ranks" --place out \
        "${nt_grid[@]}" --max-channels "$most" --again 30 --budget $nt_budget --prefix six-knobs --out "$part"
    # 10: its time was over before every pass was made; what was measured again is there.
    case $? in 0 | 10) ;; *) failed "variants: record with threads" ;; esac
    save variants
    logged four attune run --run-dir "$part/run-four" --max-cost 0 --max-channels "$most" -- \
        "${bench[@]}" -n 50 --time $variant_time
    logged six attune run --run-dir "$part/run-six" --max-cost 0 --max-channels "$most" --variants nt=128,256,512 -- \
        "${bench[@]}" -n 50 --time $variant_time || return
    for nt in 128 256 512; do
        forced "$part/run-six" "$part/force-$nt" threads=$nt channels=$forced_channels
        logged "nt-$nt" attune run --run-dir "$part/run-nt-$nt" --variants nt=128,256,512 --trace on:8M \
            --apply "$part/force-$nt" -- "${bench[@]}" -N 2 -n $forced_calls -J "$part/nt-$nt.json" &&
            attune trace "$part/run-nt-$nt" -q -o "$part/nt-$nt.csv.gz" && rm -rf "$part/run-nt-$nt/trace" ||
            failed "variants: trace of $nt threads"
    done
}

variants() {
    part=$work/variants
    rm -rf "$part"
    mkdir -p "$part"
    [ -n "$most" ] || smoke || failed "variants: no AllReduce runs"
    export NCCL_MAX_CTAS=16 # twins have buffers of their own
    local most=$most
    [ "$most" -le $NCCL_MAX_CTAS ] || most=$NCCL_MAX_CTAS
    environment variants
    # In a shell of its own for what it exports.
    (failures=() && transports; [ ${#failures[@]} -eq 0 ]) || failures+=("variants: transport")
    threads
    unset NCCL_MAX_CTAS
    save variants
}

# ---- training and record ----

# trained CASE LAUNCHES: up to so many launches of each kind; status 3 when the time is over before.
trained() {
    local left=$((until - (SECONDS - began) - 15)) options=() mine=$steps tuned=$tuned_steps
    [ $dry = no ] || options=(--dry)
    [ "$1" != equal ] || mine=$equal_steps tuned=$equal_steps
    [ $left -ge 1 ] || return 3
    # 15: pytorch.sh ends a launch by itself, 10 s late at worst. It must: a signal from here would reach the
    # script alone, as its `timeout` has a process group of its own.
    DEVICES=own RANKS=$ranks LAUNCHES=$2 STEPS=$mine TUNED_STEPS=$tuned CASES="ddp25 fsdp" OUT=$part \
        LIMIT_SECONDS=$left LAUNCH_SECONDS=$launch_seconds ATTUNE_OBJECTIVE=${ATTUNE_OBJECTIVE:-step} \
        ATTUNE_STRATEGY=${ATTUNE_STRATEGY:-default:budget=40} \
        limited $((left + 14)) "$root/bench/gpu/pytorch.sh" "$1" "${options[@]}"
    local status=$?
    save training
    return $status
}

# In rounds of one launch of each kind, so that an early end leaves as many of each case.
training() {
    local case round status cases=(equal together) left
    part=$work/training
    mkdir -p "$part" && environment training
    if [ $dry = no ]; then
        say "training: a first start of PyTorch, which reads its files"
        limited 120 env LD_LIBRARY_PATH="$PLAIN_LIBRARY_PATH" \
            python3 -c 'import torch; torch.zeros(1, device="cuda")' || failed "training: PyTorch does not start"
    fi
    for ((round = 1; round <= launches; round++)); do
        left=()
        for case in "${cases[@]}"; do
            say "training: $case, launch $round"
            trained "$case" $round
            status=$?
            if [ $status -ne 0 ] && [ $status -ne 3 ]; then
                say "training: $case, launch $round, once more"
                trained "$case" $round
                status=$?
            fi
            if [ $status -eq 3 ]; then
                say "training: $((round - 1)) of $launches launches; once more: $0 training"
                [ $round -gt $interval_launches ] || failed "training: $((round - 1)) of $launches launches"
                return
            elif [ $status -ne 0 ]; then
                failed "training: $case"
            elif [ "$case" != equal ]; then
                left+=("$case")
            fi
        done
        cases=("${left[@]}")
    done
}

record() {
    local left channels=() count
    part=$work/record
    mkdir -p "$part" || return
    [ -n "$most" ] || smoke || failed "record: no AllReduce runs"
    environment record
    for count in "${record_channels[@]}"; do
        [ "$count" -ge "$most" ] || channels+=("$count")
    done
    channels+=("$most")
    left=$((until - (SECONDS - began)))
    [ $left -lt $record_seconds ] || left=$record_seconds
    say "record: at most $left s"
    if [ $left -lt 20 ] && [ $dry = no ]; then
        failed "record: no time left"
        return
    fi
    limited $((left + 1)) attune record "$(joined "${collectives[@]}")" --size-list $record_sizes --procs "$ranks" \
        --place out --channels "$(joined "${channels[@]}")" --max-channels "$most" "${record_grid[@]}" \
        "${record_name[@]}" --budget $((left - left / 8)) --out "$part"
    case $? in 0) ;; 10) failed "record: not complete; once more: $0 record" ;; *) failed "record" ;; esac
    save record
    attune surfaces "$part"/*.json.gz || failed "record: unreadable"
}

# ---- report ----

report() {
    local scratch file
    scratch=$(mktemp -d)
    for file in "$out"/*.tar.gz; do
        [ -e "$file" ] && tar -C "$scratch" -xzf "$file"
    done
    python3 "$root/bench/gpu/multi_report.py" "$scratch" "$root/data/paper.json" | tee "$out/report.txt"
    [ "${PIPESTATUS[0]}" -eq 0 ] || failures+=("report: see above")
    rm -rf "$scratch"
}

# part_until SECONDS PART
part_until() {
    until=$1
    [ "$until" -le "$limit" ] || until=$limit
    $2
    until=$limit
}

[ "$step" = report ] || need_machine
case $step in
call1)
    part_until $((limit - 125)) table
    part_until $((limit - 8)) variants
    report
    ;;
call2)
    part_until $((record_seconds + 20)) record # it mostly needs half of that
    part_until $((limit - 8)) training
    report
    ;;
report) report ;;
*) "$step" ;;
esac
say "in $out"
if [ ${#failures[@]} -ne 0 ]; then
    printf 'FAILED  %s\n' "${failures[@]}"
    exit 1
fi
