# bats file_tags=mpi
# The sidecar dies or stops at a chosen step of a switch. The job must end well, ranks must never
# differ (the host fabric compares every call), and the incumbent must be back.
load setup

# faulted STEP:N:kill|stop SEED: one tuned job on the modelled fabric with this fault.
faulted() {
    rm -rf run steps
    export ATTUNE_FAULT=$1
    run timeout -k 5 90 attune run --run-dir run --fabric model \
        --surface a40-nvlink-8-allgather --seed "$2" --strategy coordinate_descent --max-cost 0 \
        --wait-ms 200 --debug-steps "$CASE_DIR/steps" -- \
        attune bench allgather -b 80M -e 80M -t 8 -w 5 -n 600
    unset ATTUNE_FAULT
    expect_status 0
    grep -q "step=${1%%:*}" steps || fail "the sidecar never came to step ${1%%:*}"
    # Nothing follows the fatal step. A stopped sidecar is woken up to end: it may go on with that
    # transaction or begin another, and finds its commit refused by the ranks that did not wait for it.
    last=$(tail -n 1 steps)
    case $1 in
    *:stop)
        local at=${1#*:}
        last=$(grep "step=${1%%:*} " steps | sed -n "${at%%:*}p")
        [ -z "$(sed "1,/^$last\$/d" steps | grep 'step=committed ')" ] || fail "it committed after the wait"
        ;;
    esac
    [[ $last == *"step=${1%%:*} "* ]] || fail "the log goes on after the fault: $last"
    no_rank_differed
}

# Every rank's report of the fabric says 0 mismatches, and the same last setting.
no_rank_differed() {
    local file
    ls run/fabric-*.json >/dev/null 2>&1 || fail "the fabric left no report"
    for file in run/fabric-*.json; do
        grep -Eq '"mismatches": ?0[,}]' "$file" || fail "$file: $(cat "$file")"
    done
    for file in run/bench-*.json; do
        grep -Eq '"result_errors": ?0[,}]' "$file" || fail "$file: $(cat "$file")"
    done
}

# pending: at the fault there was a transaction between OPENED and its outcome.
pending() { [[ $last =~ step=(opened|prepared|voted)\  ]]; }

@test "a sidecar killed at any step costs the job nothing but the search" {
    for step in planned opened prepared voted committed played; do
        faulted "$step:5:kill" 1
    done
}

@test "a sidecar stopped with a switch pending costs the job at most one wait a task" {
    faulted prepared:7:stop 2
    pending || fail "no switch was pending"
    faulted voted:3:stop 3
    pending || fail "no switch was pending"
}

# bats test_tags=long
@test "20 kills and 10 stops spread over the search: 30 good ends" {
    local n=0 open=0 step
    for step in opened prepared voted committed played; do
        for at in 1 4 12 25; do
            faulted "$step:$at:kill" "$((++n))"
            if pending; then open=$((open + 1)); fi
        done
    done
    for step in opened prepared voted committed played; do
        for at in 2 18; do
            faulted "$step:$at:stop" "$((++n))"
            if pending; then open=$((open + 1)); fi
        done
    done
    [ "$n" -eq 30 ] || fail "only $n faults"
    [ "$open" -ge 15 ] || fail "a switch was pending in only $open of $n"
    echo "# $n good ends, a switch pending in $open" >&3
}
