# bench/gpu/launches.sh on the host fabric, and its report on what machines with GPUs write.
# bats file_tags=cpu
load setup
load run-setup

setup() {
    attune_setup
    report=$ATTUNE_ROOT/bench/gpu/launches_report.py
}

# rows PATH FACTOR: 40 launches of two kinds, three rounds each, the first of them slow
rows() {
    awk -v factor="$2" 'BEGIN {
        print "# kind launch bytes us host_us"
        for (i = 1; i <= 40; i++)
            for (round = 0; round < 3; round++) {
                base = (round == 0 ? 50 : 10 + i % 5)
                print "unhooked", i, 8, base, 5
                print "settled", i, 8, base * factor, 6
            }
    }' >"$1"
}

@test "the launches of two files are taken together, each against its own median" {
    rows one.txt 1.25
    rows two.txt 0.5
    gzip two.txt
    run python3 "$report" one.txt 1 unhooked settled
    [ "$status" -eq 0 ]
    expect_output '8  unhooked      12.00  1.0000   1.0000-1.0000         40    5.000'
    expect_output '8   settled      15.00  0.8000   0\.[78][0-9]*-0\.8[0-9]*  *40    6.000'
    run python3 "$report" one.txt,two.txt.gz 1 unhooked settled
    expect_output '8   settled .* 80    6.000'
    # A launch that ends before DROP is left out, and few launches have no interval.
    head -16 one.txt >few.txt
    run python3 "$report" few.txt 1 unhooked settled
    expect_output '8   settled .* nan-nan  *2'
    run python3 "$report" one.txt
    [ "$status" -ne 0 ]
    run python3 "$report" one.txt 1 unhooked idle
    [ "$status" -eq 1 ]
    expect_output "^launches_report.py: no launch is of kind 'idle', of these: settled unhooked$"
    run python3 "$report" none.txt 1 unhooked settled
    [ "$status" -eq 1 ]
    expect_output "^launches_report.py: .*No such file or directory: 'none.txt'$"
}

@test "alternating launches on the host fabric, within a limit" {
    needs_parts
    needs_plain_hook
    export OUT=$PWD/out KINDS="unhooked idle settled" SIZES=4K ITERATIONS=50 ROUNDS=3 TUNE_SECONDS=2
    LAUNCHES=2 run timeout 100 "$ATTUNE_ROOT/bench/gpu/launches.sh" --fabric
    [ "$status" -eq 0 ]
    for kind in unhooked idle settled; do
        expect_output "4096 +$kind .* nan-nan +2 "
    done
    LAUNCHES=1000000 LIMIT_SECONDS=6 run timeout 100 "$ATTUNE_ROOT/bench/gpu/launches.sh" --fabric
    [ "$status" -eq 0 ]
    [ "$(grep -c '^settled' out/launches.txt)" -ge 3 ] || fail "$(cat out/launches.txt)"
}
