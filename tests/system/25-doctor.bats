# attune doctor: each check with its verdict and remedy, on made-up machines and real processes.
# bats file_tags=cpu

load setup

setup() {
    attune_setup
    # A quiet machine: every check passes or is skipped.
    mkdir -p root/proc/sys/net/ipv4 root/sys/class/net/eth0 root/sys/class/net/lo root/etc \
        root/sys/devices/system/clocksource/clocksource0
    echo '32768 60999' >root/proc/sys/net/ipv4/ip_local_port_range
    echo tsc >root/sys/devices/system/clocksource/clocksource0/current_clocksource
    echo up >root/sys/class/net/eth0/operstate
    echo unknown >root/sys/class/net/lo/operstate
}

needs_parts() {
    [ -x "$ATTUNE_BUILD/bin/attuned" ] || skip 'the sidecar is not built (no MPI)'
    [ -e "$ATTUNE_BUILD/fabric/libnccl.so.2" ] || skip 'the host fabric is not built'
}

# verdict ID: status of the check in $output.
verdict() { jq -r --arg id "$1" '.checks[] | select(.id == $id) | .status' <<<"$output"; }
expect_verdict() {
    [ "$(verdict "$1")" = "$2" ] || fail "expected $1 to be $2"
    # What is not well has a remedy.
    case $2 in warn | fail)
        jq -e --arg id "$1" '.checks[] | select(.id == $id) | .remedy | length > 5' <<<"$output" >/dev/null ||
            fail "$1 has no remedy"
        ;;
    esac
}
machine() { run attune doctor --json --root root; }

ib() { # ib STATE
    mkdir -p root/sys/class/infiniband/mlx5_0/ports/1
    echo "$1" >root/sys/class/infiniband/mlx5_0/ports/1/state
}

@test "the form: text and JSON tell the same, no fail is exit 0" {
    needs_parts
    machine
    expect_status 0
    jq -e '.version == 1 and
        (.checks | all(.id and .what and (.status | IN("pass", "warn", "fail", "skip")) and has("remedy"))) and
        ([.checks[].id] | (length == (unique | length))) and
        ([.capabilities[].knob] == ["algorithm", "protocol", "transport", "channels", "threads", "chunk", "buffer"]) and
        (.capabilities | all(has("scope") and has("since") and (.available | type == "boolean") and .why))' \
        <<<"$output" || fail 'unexpected form'
    for id in switch segment sidecar clock sockets ports interface; do expect_verdict "$id" pass; done
    for id in rdma gpu-direct; do expect_verdict "$id" skip; done
    run attune doctor --root root
    expect_status 0
    expect_output '^pass  clock: clock source tsc$'
    expect_output '^no    threads '
}

@test "variables: one that attune does not know is named with the one that was meant" {
    machine
    expect_verdict variables pass
    export ATTUNE_STRATEGI=random ATTUNE_FROBNICATE=1
    machine
    expect_status 0
    expect_verdict variables warn
    expect_output "ATTUNE_STRATEGI \(did you mean 'ATTUNE_STRATEGY'\?\)"
    expect_output 'ATTUNE_FROBNICATE'
}

@test "sockets: RDMA that is there and not used is named" {
    ib '4: ACTIVE'
    machine
    expect_verdict rdma pass
    NCCL_IB_DISABLE=1 machine
    expect_verdict rdma warn
    NCCL_NET=Socket machine
    expect_verdict rdma warn
    ib '1: DOWN'
    machine
    expect_verdict rdma warn
}

@test "GPU direct: modules, or the open driver's dma-buf" {
    ib '4: ACTIVE'
    mkdir -p root/proc/driver/nvidia
    echo 'NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54' >root/proc/driver/nvidia/version
    machine
    expect_verdict gpu-direct warn
    mkdir -p root/sys/module/nvidia_peermem
    machine
    expect_verdict gpu-direct pass
    rmdir root/sys/module/nvidia_peermem
    echo 'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.1' >root/proc/driver/nvidia/version
    machine
    expect_verdict gpu-direct pass
}

@test "room in /dev/shm for what NCCL needs to time calls" {
    machine
    expect_verdict timing-room skip
    mkdir -p root/proc/driver/nvidia/gpus/0000:{1a,1b}:00.0 root/dev/shm
    machine
    expect_verdict timing-room pass
    expect_output 'timing takes 65 MiB of /dev/shm for each communicator of 2 GPUs'
    rmdir root/dev/shm
    machine
    expect_verdict timing-room warn
    expect_output 'docker run --shm-size'
}

@test "a policy that NCCL does not follow with any tuner loaded" {
    machine
    expect_verdict cta-policy pass
    NCCL_CTA_POLICY=EFFICIENCY machine
    expect_verdict cta-policy warn
    NCCL_CTA_POLICY=1 NCCL_ALGO=RING machine
    expect_verdict cta-policy pass
    echo NCCL_CTA_POLICY=1 >root/etc/nccl.conf
    machine
    expect_verdict cta-policy warn
}

@test "socket threads times sockets is at most 64, also from nccl.conf" {
    NCCL_SOCKET_NTHREADS=8 NCCL_NSOCKS_PERTHREAD=8 machine
    expect_verdict sockets pass
    NCCL_SOCKET_NTHREADS=8 NCCL_NSOCKS_PERTHREAD=9 machine
    expect_verdict sockets fail
    expect_status 1
    NCCL_SOCKET_NTHREADS=17 machine
    expect_verdict sockets fail
    printf '# site\nNCCL_SOCKET_NTHREADS=16\nNCCL_NSOCKS_PERTHREAD=8\n' >root/etc/nccl.conf
    machine
    expect_verdict sockets fail
    NCCL_NSOCKS_PERTHREAD=4 machine
    expect_verdict sockets pass
}

@test "ports, interfaces, clock" {
    echo '60000 60999' >root/proc/sys/net/ipv4/ip_local_port_range
    echo hpet >root/sys/devices/system/clocksource/clocksource0/current_clocksource
    NCCL_SOCKET_IFNAME=ens machine
    expect_status 1
    expect_verdict ports warn
    expect_verdict clock warn
    expect_verdict interface fail
    NCCL_SOCKET_IFNAME==eth machine
    expect_verdict interface fail
    NCCL_SOCKET_IFNAME=^lo machine
    expect_verdict interface pass
    mkdir root/sys/class/net/eth1 root/sys/class/net/docker0
    echo up >root/sys/class/net/eth1/operstate
    echo down >root/sys/class/net/docker0/operstate
    machine
    expect_verdict interface warn
    rm -r root/sys/class/net/eth?
    echo up >root/sys/class/net/docker0/operstate
    machine
    expect_verdict interface warn
}

@test "a process bound away from its GPU" {
    mkdir -p root/sys/bus/pci/devices/0000:01:00.0
    echo 0x10de >root/sys/bus/pci/devices/0000:01:00.0/vendor
    echo 0x030200 >root/sys/bus/pci/devices/0000:01:00.0/class
    echo 900-1000 >root/sys/bus/pci/devices/0000:01:00.0/local_cpulist
    machine
    expect_verdict affinity warn
    echo 0-1000 >root/sys/bus/pci/devices/0000:01:00.0/local_cpulist
    [ "$(nproc)" -gt 1 ] || skip 'one processor'
    machine
    expect_verdict affinity pass
    run taskset -c "$(taskset -cp $$ | grep -Eo '[0-9]+' | tail -1)" attune doctor --json --root root
    expect_verdict affinity warn
}

@test "what switches attune off is named" {
    ATTUNE_DISABLE=1 machine
    expect_status 1
    expect_verdict switch fail
    ATTUNE_SHM_DIR=/nowhere machine
    expect_status 1
    expect_verdict segment fail
}

@test "pinned variables warn, and take the knob away" {
    needs_parts
    mkdir -p root/usr/lib/python3.9/site-packages/nvidia/nccl/lib
    cp -L "$ATTUNE_BUILD/fabric/libnccl.so.2" root/usr/lib/python3.9/site-packages/nvidia/nccl/lib/
    machine
    jq -e '.capabilities[] | select(.knob == "algorithm") | .available' <<<"$output"
    expect_verdict pinned pass
    NCCL_PROTO='LL,Simple;allreduce:^LL' machine
    expect_verdict pinned warn
    jq -e '(.capabilities[] | select(.knob == "protocol") | .available | not) and
           (.capabilities[] | select(.knob == "algorithm") | .available)' <<<"$output"
}

@test "old versions are told what they lack" {
    needs_parts
    local version want
    for version in 2.21.5:fail 2.24.3:warn 2.27.3:warn 2.28.9:pass; do
        want=${version#*:}
        ATTUNE_FABRIC_VERSION=${version%:*} LD_LIBRARY_PATH=$ATTUNE_BUILD/fabric run --separate-stderr attune doctor --json -- \
            attune bench allreduce -b 1M -e 1M -t 2 -n 1000000
        expect_verdict nccl-version "$want"
    done
    jq -e '.capabilities[] | select(.knob == "chunk") | (.available | not) and .scope == "process"' <<<"$output"
}

@test "a command: the copy that it maps, its version and what can be tuned with it" {
    needs_parts
    LD_LIBRARY_PATH=$ATTUNE_BUILD/fabric run --separate-stderr attune doctor --json -- \
        attune bench allreduce -b 1M -e 1M -t 2 -n 1000000
    expect_verdict command pass
    expect_verdict nccl pass
    jq -e '(.checks[] | select(.id == "nccl") | .what | contains("fabric/libnccl.so.2") and contains("mapped")) and
           (.capabilities[] | select(.knob == "chunk") | .available and .scope == "call")' <<<"$output"
}

@test "a command without NCCL, one that cannot be run, one with a static NCCL" {
    run attune doctor --json --root root -- sleep 0.1
    expect_verdict command warn
    run attune doctor --json --root root -- ./nothing
    expect_status 1
    expect_verdict command fail
    cp "$(command -v sleep)" static
    printf 'NCCL version 2.21.5+cuda12.4' >>static
    run attune doctor --json --root root --seconds 0.5 -- ./static 30
    expect_verdict command pass
    expect_verdict nccl warn
    expect_verdict nccl-version fail
    jq -e '.checks[] | select(.id == "nccl") | .what | contains("2.21.5")' <<<"$output"
}

@test "two NCCLs in one process fail; two on the machine of one version do not" {
    needs_parts
    mkdir a b
    cp -L "$ATTUNE_BUILD/fabric/libnccl.so.2" a/libnccl.so.2
    cp -L "$ATTUNE_BUILD/fabric/libnccl.so.2" b/libnccl2.so
    ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 run --separate-stderr attune doctor --json --root root -- \
        env LD_PRELOAD="$PWD/a/libnccl.so.2:$PWD/b/libnccl2.so" attune bench allreduce -b 1M -e 1M -t 2 -n 1000000
    expect_status 1
    expect_verdict nccl fail
    expect_verdict nccl-copies pass
}

# variants VERSION [option...]: on the host fabric posing as that version
variants() {
    local version=$1
    shift
    ATTUNE_FABRIC_VERSION=$version LD_LIBRARY_PATH=$ATTUNE_BUILD/fabric run --separate-stderr attune doctor --json "$@"
}
capability() { jq -r --arg knob "$1" '.capabilities[] | select(.knob == $knob) | "\(.available) \(.scope)"' <<<"$output"; }

@test "communicator variants: whether they can be made, what they cost, why not" {
    needs_parts
    variants 2.30.7
    expect_verdict variants pass
    expect_output 'not asked for; --variants nt=128,256,512 would make 3 more communicators'
    [ "$(capability threads)" = 'false communicator' ]
    variants 2.30.7 --variants nt=128,256 --variants t=p2p
    expect_verdict variants pass
    expect_output '"5 more communicators for each one of the job'
    [ "$(capability threads)" = 'true communicator' ] && [ "$(capability transport)" = 'true communicator' ]
    ATTUNE_VARIANTS=nt=128 variants 2.29.7
    expect_verdict variants pass
    [ "$(capability chunk)" = 'false communicator' ]
    variants 2.29.7 --variants buffer=512K
    expect_verdict variants pass
    [ "$(capability chunk)" = 'true communicator' ]
    # What this NCCL cannot is no fault until it is asked for.
    variants 2.28.9
    expect_verdict variants skip
    variants 2.28.9 --variants nt=128
    expect_status 1
    expect_verdict variants fail
    expect_output 'NCCL 2.28.9 reads the values once a process; since 2.29.7'
    [ "$(capability threads)" = 'false process' ]
    local fixed
    for fixed in NCCL_NTHREADS=256 NCCL_ENV_PLUGIN=other NCCL_COMM_SPLIT_SHARE_RESOURCES=1; do
        (export "${fixed?}" && variants 2.30.7 --variants nt=128 && expect_verdict variants fail && expect_output "${fixed%%=*}")
    done
    variants 2.30.7 --variants nt=100
    expect_verdict variants fail
    expect_output "nt '100' is not accepted"
    run --separate-stderr attune doctor --variants-memory much
    expect_status 2
    expect_one_line 'variants-memory'
}

@test "what variants cost on a GPU is held against the cap" {
    needs_parts
    # An NCCL that is not the fabric: only its version and names are looked at.
    printf '%s\n' 'int ncclGetVersion(int *v);' 'int ncclGetVersion(int *v) { *v = 23007; return 0; }' \
        'int pncclAllReduce(void);' 'int pncclAllReduce(void) { return 0; }' >nccl.c
    cc -shared -fPIC -Wl,-soname,libnccl.so.2 -o libnccl.so.2 nccl.c || skip 'no compiler'
    export LD_LIBRARY_PATH=$PWD
    run --separate-stderr attune doctor --json --variants nt=128,256
    expect_verdict variants pass
    expect_output '2 more communicators .* of up to 32 channels: up to 2.3 GiB on each GPU'
    NCCL_MAX_CTAS=8 run --separate-stderr attune doctor --json --variants nt=128,256
    expect_output 'of up to 8 channels: up to 0.6 GiB'
    run --separate-stderr attune doctor --json --variants nt=128,256 --variants-memory 1G
    expect_verdict variants fail
    expect_output '2 of up to 32 channels may take 2.3 GiB .* --variants-memory is 1G'
    run --separate-stderr attune doctor --json --variants t=p2p,shm
    expect_verdict variants pass
    NCCL_P2P_LEVEL=SYS run --separate-stderr attune doctor --json --variants t=p2p,shm
    expect_verdict variants fail
    expect_output 'NCCL_P2P_LEVEL fixes the transport: unset it, or leave shm out'
}

@test "wrong usage is one line, exit 2" {
    local words
    for words in --jsn '--seconds never' '--seconds 0' '--' true; do
        # shellcheck disable=SC2086 # words
        run --separate-stderr attune doctor $words
        expect_status 2
        expect_one_line .
    done
    for words in --root --seconds --variants --variants-memory; do
        run --separate-stderr attune doctor $words
        expect_status 2
        expect_one_line "$words needs a value"
    done
    run --separate-stderr attune doctor --root nowhere
    expect_status 2
    expect_one_line '--root nowhere: there is no such folder'
}
