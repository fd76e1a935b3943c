# The test runner itself: every way to fail is counted as a failure, and named.

load setup

setup() {
    attune_setup
    # A tree of its own with a hand-written ctest file in place of a build.
    mkdir -p tree/tests/system tree/build/tests
    cp "$ATTUNE_ROOT/tests/run" "$ATTUNE_ROOT/tests/tally" tree/tests/
    cp "$ATTUNE_ROOT/tests/system/setup.bash" tree/tests/system/
    mkdir -p tree/build/bin
    ln -s "$(type -P true)" tree/build/bin/attune
    : >tree/build/CTestTestfile.cmake
    unset ATTUNE_TALLY
}

# program NAME BODY: a ctest test that is a shell script, like run-one around a cmocka program.
program() {
    printf '#!/bin/bash\n%s\n' "$2" >"tree/build/$1"
    chmod +x "tree/build/$1"
    printf 'add_test(%s "%s")\nset_tests_properties(%s PROPERTIES LABELS cpu)\n' \
        "$1" "$PWD/tree/build/$1" "$1" >>tree/build/CTestTestfile.cmake
}

xml() { # xml NAME CASES: an XML file as cmocka writes it
    printf 'cat >"$ATTUNE_TEST_RESULTS/%s.tests.xml" <<END\n' "$1"
    printf '<?xml version="1.0" encoding="UTF-8" ?>\n<testsuites>\n<testsuite name="tests" >\n'
    printf '%s\n</testsuite>\n</testsuites>\nEND\n' "$2"
}

# The runner as if it were not started from within bats.
runner() {
    local variable PATH=${PATH//"$BATS_LIBEXEC:"/}
    for variable in $(compgen -v BATS_); do unset "$variable" 2>/dev/null || true; done
    tree/tests/run "$@" 3>&-
}

last_line() { tail -n 1 <<<"$output"; }

@test "cases are counted one by one, with reasons" {
    program good "$(xml good '<testcase name="a" time="0" >
</testcase>
<testcase name="b" time="0" >
</testcase>')"
    program mixed "echo 'skip: no such device'
$(xml mixed '<testcase name="c" time="0" >
</testcase>
<testcase name="d" time="0" >
<failure><![CDATA[0x1 != 0x2 &lt;
file.c:7: error]]></failure>
</testcase>
<testcase name="e" time="0" >
<skipped/>
</testcase>')
exit 1"
    run runner --build tree/build --label cpu unit
    expect_status 1
    [ "$(last_line)" = "3 passed, 1 failed, 1 skipped" ] || fail "wrong count"
    expect_output '^FAILED: mixed/d$'
    expect_output 'file.c:7: error'
    expect_output '^skipped: mixed/e: no such device$'
}

@test "a program that dies is one failure, with its output" {
    program dies 'echo last words; kill -SEGV $$'
    run runner --build tree/build --label cpu unit
    expect_status 1
    [ "$(last_line)" = "0 passed, 1 failed, 0 skipped" ] || fail "wrong count"
    expect_output 'last words'
}

@test "a program that fails after its cases passed is a failure" {
    program late "$(xml late '<testcase name="a" time="0" >
</testcase>')
echo 'LeakSanitizer: detected memory leaks'; exit 23"
    run runner --build tree/build --label cpu unit
    expect_status 1
    [ "$(last_line)" = "1 passed, 1 failed, 0 skipped" ] || fail "wrong count"
    expect_output 'LeakSanitizer'
}

@test "a label without tests fails, unless it is optional" {
    program good true
    run runner --build tree/build --label cpu --label mpi unit
    expect_status 1
    expect_output 'no test with the label mpi ran'
    run runner --build tree/build --label cpu --label 'mpi?' unit
    expect_status 0
    [ "$(last_line)" = "1 passed, 0 failed, 0 skipped" ] || fail "wrong count"
}

@test "a process that outlives its test is a failure and is ended" {
    program leaves 'setsid sleep 300 >/dev/null 2>&1 & exit 0'
    run runner --build tree/build --label cpu unit
    expect_status 1
    expect_output 'left running: sleep 300'
    [ "$(last_line)" = "1 passed, 1 failed, 0 skipped" ] || fail "wrong count"
}

@test "a segment that outlives its test is a failure and is removed" {
    program leaves "echo x >/dev/shm/attune-test-left-$$"
    run runner --build tree/build --label cpu unit
    expect_status 1
    expect_output "left behind: /dev/shm/attune-test-left-$$"
    [ ! -e "/dev/shm/attune-test-left-$$" ]
}

@test "bats files are counted by case and label" {
    # "%" stands for "@": bats would take the lines for cases of this file.
    sed 's/^%/@/' >tree/tests/system/10-some.bats <<'END'
# bats file_tags=mpi
load setup
%test "fine & good" { true; }
%test "wrong" { echo "why it is wrong"; false; }
%test "absent" { skip "needs <a thing>"; }
%test "leaves a process" { setsid sleep 300 >/dev/null 2>&1 3>&- & }
%test "leaves a segment" { echo x >"$ATTUNE_SHM_DIR/attune-0-x"; }
END
    run runner --build tree/build --label mpi system
    expect_status 1
    [ "$(last_line)" = "1 passed, 3 failed, 1 skipped" ] || fail "wrong count"
    expect_output 'why it is wrong'
    expect_output '^skipped: 10-some/absent: needs <a thing>$'
    expect_output 'left running: .*sleep 300'
    expect_output 'left behind: /dev/shm/attune-test-.*attune-0-x'
    run runner --build tree/build --label cpu system
    expect_status 1
    [ "$(last_line)" = "0 passed, 1 failed, 0 skipped" ] || fail "wrong count"
}

@test "a case may have a label of its own" {
    # "%" as above, and so that the tag is not this file's.
    sed 's/^%test/@test/; s/^%bats/# bats/' >tree/tests/system/10-some.bats <<'END'
# bats file_tags=mpi
load setup
%test "short" { true; }
%bats test_tags=long
%test "long" { false; }
END
    run runner --build tree/build --label mpi system
    expect_status 0
    [ "$(last_line)" = "1 passed, 0 failed, 0 skipped" ] || fail "wrong count"
    run runner --build tree/build --label long system
    expect_status 1
    [ "$(last_line)" = "0 passed, 1 failed, 0 skipped" ] || fail "wrong count"
    run runner --build tree/build --label long --label mpi system
    [ "$(last_line)" = "1 passed, 1 failed, 0 skipped" ] || fail "wrong count"
}

@test "a tally adds runs up and closes with one line" {
    program good true
    ATTUNE_TALLY=$PWD/tally run runner --build tree/build --label cpu --name one unit
    expect_status 0
    reject_output ' passed, '
    printf 'two\t4\t0\t2\n' >>tally
    run tree/tests/tally tally
    expect_status 0
    [ "$(last_line)" = "5 passed, 0 failed, 2 skipped" ] || fail "wrong sum"
    [ "$(grep -c ' passed, ' <<<"$output")" -eq 1 ]
    printf 'three\t1\t1\t0\n' >>tally
    run tree/tests/tally tally
    expect_status 1
    : >empty
    run tree/tests/tally empty
    expect_status 1
}

@test "every test that tests/README.md names is there" {
    local file='' word named=0
    # A path holds for the names behind it, up to the next path.
    while IFS= read -r word; do
        case $word in
        unit/* | system/*) file=$ATTUNE_ROOT/tests/$word ;;
        *)
            if [[ $file == *.bats ]]; then
                grep -qF -- "@test \"$word\"" "$file" || fail "$file has no test '$word'"
            else
                grep -qE "cmocka_unit_test(_[a-z]+)*\\($word" "$file" || fail "$file has no test '$word'"
            fi
            named=$((named + 1))
            ;;
        esac
    done < <(sed -n '/^| T/p' "$ATTUNE_ROOT/tests/README.md" | cut -d'|' -f5 |
        grep -oE '(unit|system)/[a-z0-9_/.-]+|`[^`]+`' | tr -d '`')
    [ "$named" -ge 20 ] || fail "only $named tests were named"
}

@test "docs/security.md names every fuzz target, and none that is not there" {
    local file name
    for file in "$ATTUNE_ROOT"/tests/fuzz/fuzz_*.c; do
        name=$(basename "$file" .c)
        grep -qF "\`$name\`" "$ATTUNE_ROOT/docs/security.md" || fail "$name is not named"
    done
    for name in $(sed -n '/^| `fuzz_/p' "$ATTUNE_ROOT/docs/security.md" | grep -o 'fuzz_[a-z0-9_]*'); do
        [ -e "$ATTUNE_ROOT/tests/fuzz/$name.c" ] || fail "there is no $name"
    done
}

@test "too little room in /dev/shm is said before anything is built" {
    mkdir fake
    printf '#!/bin/sh\nprintf "Filesystem 1M Used Available\\nshm 64 0 64\\n"\n' >fake/df
    chmod +x fake/df
    PATH=$PWD/fake:$PATH run --separate-stderr "$ATTUNE_ROOT/tests/check" quick
    expect_status 1
    expect_one_line '/dev/shm has 64 MiB, the tests need 2048 \(docker run --shm-size 2g\)'
}

@test "without a loopback root gets one, others one line" {
    mkdir fake
    printf '#!/bin/sh\n' >fake/ip
    printf '#!/bin/sh\necho 1000\n' >fake/id
    chmod +x fake/*
    PATH=$PWD/fake:$PATH run --separate-stderr "$ATTUNE_ROOT/tests/check" quick
    expect_status 1
    expect_one_line 'the loopback interface is down, the tests need it; as root: ip link set lo up'
    local reason
    [ "$(id -u)" -eq 0 ] || skip 'only root makes a namespace with a loopback here'
    reason=$(unshare --net true 2>&1) || skip "this machine gives us no namespaces: $reason"
    run unshare --net "$ATTUNE_ROOT/tests/check" no-such-suite
    expect_status 2
    expect_output '^usage: tests/check'
}
