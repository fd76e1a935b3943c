#!/bin/bash
# PyTorch training with attune, and nccl-tests under attune run, on one GPU with four processes, or with
# DEVICES=own on several GPUs, one process each.
#
#   bench/gpu/pytorch.sh STEP [--dry]
#
#   check       what is there: GPU, PyTorch, NCCL, nccl-tests
#   ddp25, ddp4 DDP, buckets of 25 and 4 MB      fsdp     FSDP
#   together    CASES one after the other in each launch: less time for starts
#   sweep       CASES with fixed settings that take turns within one launch: sweep.txt
#   sockets     DDP, the wheel's own NCCL over sockets, each process a node of its own
#   graph       DDP, forward and backward in a CUDA graph
#   uneven      AllReduce, and all_gather of tensors of different sizes
#   equal       DDP with --reproducible: the losses of its first 50 steps are those without attune, bit by bit
#   nccl-tests  every collective, its data checked, NCCL's columns beside the tuned ones: the last of PASSES
#               passes, which the search of a size precedes (without a limit of its cost)
#   report      the tables, and PASSED or FAILED a line
#
# A training step launches it without attune, with the idle hook and tuned, in the order A B C C B A,
# LAUNCHES times each. It stops before LIMIT_SECONDS; the same command then goes on where it stopped.
#
#   --dry            on the host fabric, with a stand-in for torchrun: a try of this script
#
# ATTUNE_NCCL_LIB  NCCL 2.30.3 or later (several ranks on one GPU), preloaded into PyTorch
# NCCL_TESTS_DIR   folder of nccl-tests built with MPI=1 (all_reduce_perf, ...)
# ATTUNE_BUILD     build folder, made when attune is not in it (build/gpu)
# DEVICES          shared (default): all ranks on GPU 0, under MPS; own: one GPU a rank
# KINDS            none idle tuned (default); observe counts and times all calls
# MODEL            more options of the examples, such as "--layers 2 --width 1024"
# CASES            of "together" and "sweep" (ddp25 ddp4 fsdp)
# LAUNCHES         of each kind (10); RANKS (4, or with own all GPUs)
# STEPS            of a case (300); TUNED_STEPS where it is tuned (STEPS): a search takes its time
# PASSES           over the sizes of nccl-tests, 1000 calls each (5)
# MASTER_PORT      of torchrun (a free one for each launch)
# LIMIT_SECONDS    for one step (560); LAUNCH_SECONDS for one launch (150)
# OUT              runs.jsonl, CASE-KIND/ of the latest launch, tests.txt, tests-summary.txt, report.txt, failed.log,
#                  build.log (build/pytorch)
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
usage() { sed -n '2,/^set -u/s/^# \{0,1\}//p' "$0" | sed '$d' >&2; exit 2; }
step=${1:-} dry=no
[ $# -le 2 ] || usage
case ${2:-} in --dry) dry=yes ;; '') ;; *) usage ;; esac
export ATTUNE_BUILD=${ATTUNE_BUILD:-$root/build/gpu}
out=${OUT:-$root/build/pytorch}
mkdir -p "$out" || exit 1
runs=$out/runs.jsonl
began=$SECONDS limit=${LIMIT_SECONDS:-560} each=${LAUNCH_SECONDS:-150}
launches=${LAUNCHES:-10} ranks=${RANKS:-4} steps=${STEPS:-300} cases=${CASES:-ddp25 ddp4 fsdp}
kinds=${KINDS:-none idle tuned} devices=${DEVICES:-shared}
case $devices in
shared) ;;
own) ranks=${RANKS:-$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ')} ;;
*) echo "DEVICES is shared or own, not '$devices'" >&2 && exit 2 ;;
esac
. "$root/bench/gpu/machine.sh"
export PATH=$ATTUNE_BUILD/bin:$PATH
hook=$ATTUNE_BUILD/lib/libattune-nccl.so
scratch=$(mktemp -d)
trap 'stop_mps; rm -rf "$scratch"' EXIT # its pipes are in there

need_parts() {
    if [ ! -x "$ATTUNE_BUILD/bin/attune" ]; then
        build_here "$out/build.log" || exit 1
    fi
    if [ $dry = yes ]; then
        export ATTUNE_NCCL_LIB=$ATTUNE_BUILD/fabric/libnccl.so.2
        return
    fi
    if [ ! -r "${ATTUNE_NCCL_LIB:-}" ] && [ "$step" != sockets ]; then
        echo "ATTUNE_NCCL_LIB must name an NCCL of 2.30.3 or later" >&2
        exit 2
    elif [ "$devices" = own ] && [ "$ranks" -lt 2 ]; then
        echo "DEVICES=own needs two GPUs or more" >&2
        exit 2
    fi
    [ "$devices" = own ] || start_mps "$scratch"
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# example CASE STEPS: the script and its options.
example() {
    local more="--steps $2 ${MODEL:-}"
    [ "$devices" = own ] || more+=' --device 0'
    case $1 in
    ddp25 | sockets | equal) echo "ddp --bucket-mb 25 $more" ;;
    ddp4) echo "ddp --bucket-mb 4 $more" ;;
    graph) echo "ddp --graph $more" ;;
    fsdp) echo "fsdp --width 2560 $more" ;; # else the CPU holds it up
    uneven) echo "../../bench/gpu/pytorch_uneven $more" ;;
    *) echo "CASES: no case is called '$1'" >&2 && return 1 ;;
    esac
}

# program CASE STEPS: the words that train; the same for every kind.
program() {
    local script options one
    if [ $dry = yes ]; then
        words=(python3 "$root/bench/gpu/pytorch_dry.py" --library "$ATTUNE_NCCL_LIB" --ranks 2
            --steps "$2" --cases "$([ "$1" != together ] || echo "$cases")")
        return
    fi
    words=(torchrun --nproc-per-node "$ranks" --master-port "${MASTER_PORT:-$(free_port)}")
    if [ "$1" = sockets ]; then
        words+=(--no-python bash -c 'NCCL_HOSTID=rank$LOCAL_RANK exec python3 "$@"' train)
    fi
    case $1 in
    together) words+=("$root/bench/gpu/pytorch_cases.py") ;;
    sweep) words+=("$root/bench/gpu/pytorch_sweep.py") ;;
    *)
        read -r script options <<<"$(example "$1" "$2")"
        # shellcheck disable=SC2206 # words
        words+=("$root/examples/pytorch/$script.py" $options)
        ;;
    esac
    if [ "$1" = together ] || [ "$1" = sweep ]; then
        for one in $cases; do
            words+=("$one=$(example "$one" "$2")")
        done
    fi
    words=(env LD_LIBRARY_PATH="$PLAIN_LIBRARY_PATH" "${words[@]}") # the wheel's own CUDA
}

# Environment of all kinds alike.
surroundings() {
    export PYTHONPATH=$root/examples/pytorch NCCL_RUNTIME_CONNECT=0 CUBLAS_WORKSPACE_CONFIG=:4096:8
    [ $dry = yes ] && return
    export NCCL_NVLS_ENABLE=0
    if [ "$1" = sockets ]; then
        export NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_SOCKET_IFNAME=${NCCL_SOCKET_IFNAME:-lo}
    else
        export LD_PRELOAD=$ATTUNE_NCCL_LIB
    fi
    if [ "$devices" = shared ]; then # the kernels of all ranks must fit
        export NCCL_MULTI_RANK_GPU_ENABLE=1 NCCL_MAX_CTAS=${NCCL_MAX_CTAS:-$((128 / ranks))}
    fi
}

# launch CASE KIND NUMBER: one run, its lines added to runs.jsonl when it ended well.
launch() {
    local folder=$scratch/$1-$2-$3 words how=() mine=${TUNED_STEPS:-$steps}
    case $2 in
    none | idle | observe) mine=$steps ;;
    esac
    program "$1" "$mine"
    case $2 in
    none) ;;
    idle)
        how=(env NCCL_TUNER_PLUGIN="$hook" NCCL_PROFILER_PLUGIN="$hook" ATTUNE_RUN_ID="idle-$$"
            bash -c 'LD_PRELOAD=$0${LD_PRELOAD:+:$LD_PRELOAD} exec "$@"' "$hook")
        ;;
    observe) how=(attune run --quiet --observe --run-dir "$folder" --) ;;
    tuned) how=(attune run --quiet --run-dir "$folder" --) ;;
    reproducible) how=(attune run --quiet --reproducible --run-dir "$folder" --) ;;
    esac
    local status=0
    (surroundings "$1" && exec timeout -k 10 "$each" "${how[@]}" "${words[@]}") \
        >"$scratch/lines" 2>"$scratch/log" || status=$?
    # Of the latest launch: what was tried, and what came of it.
    [ ! -d "$folder" ] || { mkdir -p "$out/$1-$2" && cp "$folder"/{summary.txt,tasks.json,trials.jsonl} "$out/$1-$2"; }
    if [ $status -ne 0 ]; then
        cp "$scratch/log" "$out/failed.log"
        echo "$1, $2, launch $3 failed; the end of $out/failed.log:" >&2
        tail -n 15 "$out/failed.log" >&2
        exit 1
    fi
    python3 - "$scratch/lines" "$folder/tasks.json" "$1" "$2" "$3" >>"$runs" <<'PYTHON'
import json, os, sys
lines, tasks, case, kind, number = sys.argv[1:]
found = {}
for line in open(lines):
    if line.startswith('{"case"'):
        case = json.loads(line)["case"]
    elif line.startswith('{"iteration"'):
        found.setdefault(case, []).append(json.loads(line))
if not found:
    sys.exit("no iteration was printed")
for case, steps in found.items():
    head = {"case": case, "kind": kind, "launch": int(number)}
    end = {"done": True, "seconds": [s["seconds"] for s in steps], "loss": [s["loss"] for s in steps]}
    if os.path.exists(tasks):
        end["coverage"] = json.load(open(tasks))["coverage"]
    print(json.dumps(head | end))
PYTHON
    [ "${PIPESTATUS[0]}" = 0 ] || exit 1
}

is_done() { [ -f "$runs" ] && grep -qF "{\"case\": \"$1\", \"kind\": \"$2\", \"launch\": $3," "$runs"; }

train() {
    local case=$1 i=1 kind last=$1
    shift
    [ "$case" != together ] || last=${cases##* } # its line is the launch's last one
    while [ "$i" -le "$launches" ]; do
        local order=("$@")
        [ $((i % 2)) = 1 ] || order=($(printf '%s\n' "$@" | tac))
        for kind in "${order[@]}"; do
            is_done "$last" "$kind" "$i" && continue
            if [ $((SECONDS - began + each)) -gt "$limit" ]; then
                echo "$case: up to launch $i; once more: $0 $case"
                exit 3
            fi
            launch "$case" "$kind" "$i"
            echo "$((SECONDS - began)) s  $case $kind $i"
        done
        i=$((i + 1))
    done
    echo "$case: done"
}

sweep() {
    local words
    [ $dry = no ] || { echo "sweep needs GPUs" >&2; exit 2; }
    program sweep "$steps"
    (surroundings sweep && export ATTUNE_BENCH_SETTING=$scratch/setting NCCL_TUNER_PLUGIN=$ATTUNE_BUILD/lib/libattune-bench-tuner.so &&
        exec timeout -k 10 "$limit" "${words[@]}") 2>"$out/failed.log" | tee "$out/sweep.txt"
    [ "${PIPESTATUS[0]}" = 0 ] || { tail -n 15 "$out/failed.log" >&2; exit 1; }
    rm -f "$out/failed.log"
}

check() {
    nvidia-smi --query-gpu=name,memory.total --format=csv,noheader 2>/dev/null || echo "no GPU"
    python3 -c 'import torch; print("torch", torch.__version__, "NCCL", torch.cuda.nccl.version())' 2>/dev/null ||
        echo "no PyTorch"
    command -v torchrun || echo "no torchrun"
    [ -r "${ATTUNE_NCCL_LIB:-}" ] && echo "NCCL $ATTUNE_NCCL_LIB" || echo "ATTUNE_NCCL_LIB names no NCCL"
    [ -x "${NCCL_TESTS_DIR:-}/all_reduce_perf" ] && echo "nccl-tests $NCCL_TESTS_DIR" ||
        echo "NCCL_TESTS_DIR has no all_reduce_perf"
}

nccl_tests() {
    local name words how kind bad=0 passes=${PASSES:-5}
    : >"$out/tests.txt" >"$out/tests-summary.txt"
    [ $dry = yes ] || [ -x "${NCCL_TESTS_DIR:-}/all_reduce_perf" ] || {
        echo "NCCL_TESTS_DIR must name a folder with all_reduce_perf, ... built with MPI=1" >&2
        exit 2
    }
    for name in all_reduce all_gather reduce_scatter broadcast reduce; do
        for kind in default tuned; do
            if [ $dry = yes ]; then
                words=(attune bench "${name//_/}" -t 2 -b 64K -e 256K -f 4 -n 50 -N "$passes")
            else
                words=(mpirun --allow-run-as-root -n "$ranks" --oversubscribe --bind-to none "$NCCL_TESTS_DIR/${name}_perf"
                    -g 1 -t 1 -b 1M -e 64M -f 4 -n 1000 -N "$passes" -w 20)
            fi
            how=()
            [ $kind = default ] || how=(attune run --quiet --max-cost 0 --run-dir "$scratch/$name" --)
            if ! (surroundings nccl-tests && unset LD_PRELOAD &&
                { [ "$devices" = own ] || export NCCL_TESTS_DEVICE=0; } &&
                export LD_LIBRARY_PATH="$(dirname "$ATTUNE_NCCL_LIB"):${LD_LIBRARY_PATH:-}" &&
                exec timeout -k 10 100 "${how[@]}" "${words[@]}") >"$scratch/table" 2>"$scratch/log"; then
                cat "$scratch/table" "$scratch/log" >"$out/failed.log"
                echo "$name, $kind failed; see $out/failed.log" >&2
                bad=1
                continue
            fi
            [ $kind = default ] || cat "$scratch/$name/summary.txt" >>"$out/tests-summary.txt"
            grep -q '^# Out of bounds values : 0 OK' "$scratch/table" || bad=1
            awk -v name=$name -v kind=$kind '/^ +[0-9]+ / { print name, kind, $1, $7 }
                /^# Out of bounds/ { print name, kind, "wrong", $7 }' "$scratch/table" >>"$out/tests.txt"
        done
    done
    echo "nccl-tests: $([ $bad = 0 ] && echo done || echo FAILED)"
    return $bad
}

for one in $cases; do
    example "$one" 1 >/dev/null || exit 2
done
case $step in
check) check ;;
ddp25 | ddp4 | fsdp | together | sockets | graph | uneven) need_parts && train "$step" $kinds ;;
equal) need_parts && launches=1 train equal none reproducible ;;
nccl-tests) need_parts && nccl_tests ;;
sweep) need_parts && sweep ;;
report) python3 "$root/bench/gpu/pytorch_report.py" "$out" | tee "$out/report.txt" && exit "${PIPESTATUS[0]}" ;;
*) usage ;;
esac
