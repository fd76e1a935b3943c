# A machine without any network interface, not even a loopback that is up: `unshare --net`, as a job in a
# sandbox sees it.
# bats file_tags=mpi
load setup
load run-setup

user=()
[ "$(id -u)" -eq 0 ] || user=(--user --map-root-user)

@test "a job on one node is tuned without a network" {
    local reason
    needs_parts
    reason=$(unshare "${user[@]}" --net true 2>&1) ||
        skip "this machine gives us no namespaces: $reason"
    run timeout 60 unshare "${user[@]}" --net attune run --fabric model --surface a40-nvlink-8-allgather \
        --strategy random:trials=4 --max-cost 0 --run-dir run -- attune bench allgather -b 80M -e 80M -t 8 -n 500
    expect_status 0
    jq -e '.runs[0] | .mismatches == 0 and .result_errors == 0 and .tasks[0].trials > 0' run/summary.json ||
        fail "$(cat run/summary.json run/attuned.log)"
}
