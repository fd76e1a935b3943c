# bats file_tags=slurm
# The lab itself: nodes of their own kind, two labs side by side, without root, nothing left.
load setup

lab() { "$ATTUNE_ROOT/tests/cluster/lab" "$@"; }
setup() {
    attune_setup
    unset ATTUNE_SHM_DIR TMPDIR
    LAB=$(mktemp -d /tmp/attlab-XXXXXX)
    OTHER=$(mktemp -d /tmp/attlab-XXXXXX)
    chmod 755 "$LAB" "$OTHER"
    export LAB LAB_OWNER=$$
    reason=$(lab can) || skip "$reason"
}
teardown() {
    lab down
    LAB=$OTHER lab down
    rm -rf "$LAB" "$OTHER"
    attune_teardown
}

@test "every node has a network, a name, process ids and a /dev/shm of its own" {
    lab up 2 3>&-
    [ "$(lab node 1 hostname) $(lab node 2 hostname) $(lab exec hostname)" = 'n1 n2 ctl' ]
    [ "$(lab node 2 ip -4 -o addr show eth0 | grep -o '10\.77\.0\.[0-9]*/')" = 10.77.0.2/ ]
    lab node 1 sh -c 'echo x >/dev/shm/here'
    lab node 2 test ! -e /dev/shm/here
    [ ! -e /dev/shm/here ]
    # ps there sees its own node alone.
    lab node 1 sh -c 'ps -e -o args= | grep -q "slurmd -D -N n1"'
    run lab node 1 ps -e -o args=
    reject_output 'slurmd -D -N n2|munged'
    run lab left 0
    expect_status 1
    expect_output '^n1: left in /dev/shm: here$'
    run lab left 0
    expect_status 0
}

@test "a process that a job leaves is found and ended" {
    lab up 1 3>&-
    lab node 1 setsid sh -c 'sleep 300 >/dev/null 2>&1 </dev/null 3>&- & exit 0'
    run lab left 0
    expect_status 1
    expect_output '^n1: left running: [0-9]+ sleep 300'
    lab left 2
}

@test "two labs do not see each other, and each takes its processes with it" {
    lab up 2 3>&- &
    LAB=$OTHER lab up 2 3>&-
    wait $!
    lab node 1 sh -c 'echo x >/dev/shm/mine'
    LAB=$OTHER lab node 1 test ! -e /dev/shm/mine
    [ "$(lab exec srun -N2 hostname | sort | tr '\n' ' ')" = 'n1 n2 ' ]
    lab exec sbatch -o /dev/null -J waits --wrap 'sleep 300' >/dev/null
    [ -z "$(LAB=$OTHER lab exec squeue -h)" ]
    lab down
    [ "$(LAB=$OTHER lab exec srun -N2 hostname | sort | tr '\n' ' ')" = 'n1 n2 ' ]
    [ ! -e "$LAB/run/outer" ]
    LAB=$OTHER lab down
    gone() { ! grep -qzxF -- "LAB=$1" /proc/[0-9]*/environ 2>/dev/null; }
    # This test has it in its own environment.
    (unset LAB && wait_for 5 eval '[ "$(grep -lzxF -- "LAB='"$OTHER"'" /proc/[0-9]*/environ 2>/dev/null | wc -l)" -eq 0 ]')
}

@test "it goes down with its owner" {
    sleep 300 3>&- &
    local owner=$!
    LAB_OWNER=$owner lab up 1 3>&-
    kill $owner
    wait_for 10 test ! -e "$LAB/run/outer"
    wait_for 5 eval '! pgrep -f "slurmd -D -N n1" >/dev/null || [ -n "$(pgrep -f "attlab")" ]'
}

@test "without root" {
    [ "$(id -u)" -eq 0 ] || skip "this is not root: the other cases show it"
    command -v setpriv >/dev/null || skip "setpriv is not installed"
    chown 65534:65534 "$LAB"
    nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$ATTUNE_ROOT/tests/cluster/lab" "$@"; }
    export LAB_PRELOAD=$LAB/nogroups.so
    cp "$ATTUNE_BUILD/tests/test_nogroups.so" "$LAB_PRELOAD"
    chmod 755 "$LAB_PRELOAD"
    cd /
    reason=$(nobody can) || skip "$reason"
    nobody up 2 3>&-
    [ "$(nobody exec srun -N2 hostname | sort | tr '\n' ' ')" = 'n1 n2 ' ]
    nobody down
    [ ! -e "$LAB/run/outer" ]
}

@test "where it cannot be made, one line says why" {
    mkdir only
    for program in bash env id readlink dirname; do ln -s "$(type -P $program)" only/; done
    run env PATH="$PWD/only" "$ATTUNE_ROOT/tests/cluster/lab" can
    expect_status 77
    expect_output '^unshare is not installed$'
    # unshare is refused, as in a container without rights.
    printf '#!/bin/sh\necho "unshare: unshare failed: Operation not permitted" >&2\nexit 1\n' >only/unshare
    chmod +x only/unshare
    run env PATH="$PWD/only:$PATH" "$ATTUNE_ROOT/tests/cluster/lab" can
    expect_status 77
    expect_output '^this machine gives us no namespaces: unshare: unshare failed: Operation not permitted$'
    run env PATH="$PWD/only:$PATH" "$ATTUNE_ROOT/tests/cluster/lab" up 2
    expect_status 77
}

@test "the barrier of the MPI start is one: nobody goes on before the last has come" {
    [ -x "$ATTUNE_BUILD/tests/test_barrier" ] || skip "pmix.h is not installed: no test program"
    lab up 3 3>&-
    run lab exec srun -N3 --mpi=pmix "$ATTUNE_BUILD/tests/test_barrier"
    expect_status 0
    [ "$(grep -c 'waited [1-9]' <<<"$output")" -eq 2 ] || fail "the others did not wait for rank 0"
    # Slurm's own default lets them go: if that changes, the ring is not needed any more.
    sed -i '/PMIxCollFence/d' "$LAB/mpi.conf"
    lab exec scontrol reconfigure
    run lab exec env SLURM_PMIX_FENCE=ring srun -N3 --mpi=pmix "$ATTUNE_BUILD/tests/test_barrier"
    [ "$(grep -c 'waited [1-9]' <<<"$output")" -eq 2 ] || fail "SLURM_PMIX_FENCE=ring has no effect"
}
