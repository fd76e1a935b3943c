# Standard streams that are closed, full or left by their reader: no file of attune's takes their place, and
# a result that cannot be written is no success.
# bats file_tags=cpu
load setup
load run-setup

@test "a program with closed standard streams: its output goes into no file of attune's" {
    export ATTUNE_NCCL_LIB=$ATTUNE_BUILD/fabric/libnccl.so.2
    [ -e "$ATTUNE_NCCL_LIB" ] || skip 'the host fabric is not built'
    # Three at a time, and every table is longer than a buffer of standard output. It is lost, which is an
    # error, and the file is whole all the same.
    run -4 bash -c 'attune bench all -b 4K -e 64K -f 2 -t 2 -n 2 -J all.json <&- >&- 2>&-'
    run -4 bash -c 'attune bench all -b 4K -e 64K -f 2 -t 2 -n 2 -J out.json >&-'
    for file in all out; do
        jq -e '[.results[] | .out_of_place.nwrong, .in_place.nwrong | select(. != null)] | length > 0 and add == 0' \
            $file.json >/dev/null || fail "$(cat $file.json)"
    done
}

@test "a job with closed standard streams: its output goes into no segment" {
    needs_parts
    needs_plain_hook
    # The hook and the fabric lie in a program that is not ours, and does nothing about its streams.
    cat >noisy.py <<'END'
import ctypes, os
for fd in (0, 1, 2):
    os.close(fd)
nccl = ctypes.CDLL("libnccl.so.2")
class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]
comm, unique = ctypes.c_void_p(), Id()
assert nccl.ncclGetUniqueId(ctypes.byref(unique)) == 0
assert nccl.ncclCommInitRank(ctypes.byref(comm), 1, unique, 0) == 0
taken = [fd for fd in (0, 1, 2) if os.path.exists("/proc/self/fd/%d" % fd)]
nccl.ncclCommDestroy(comm)
os._exit(len(taken))
END
    command -v python3 >/dev/null || skip 'no Python'
    run timeout 60 attune run --fabric real --run-dir out --quiet -- python3 noisy.py
    expect_status 0
}

@test "attune run with closed standard streams: the whole run folder" {
    attune_with_fake two-tasks.json
    attune run --run-dir all -- sh -c '
        [ ! -e /proc/$$/fd/0 ] && [ ! -e /proc/$$/fd/1 ] && [ ! -e /proc/$$/fd/2 ] && : >closed' <&- >&- 2>&-
    [ -s all/summary.json ] && [ -s all/summary.txt ] && [ -s all/attuned.log ] || fail "$(ls -l all)"
    [ -e closed ] || fail 'the command does not get what attune got'
}

@test "a full standard output is said, and is no success" {
    attune_with_fake
    local words
    for words in 'plugins' 'knobs' 'info' 'surfaces' 'help' 'version' 'run --help'; do
        run --separate-stderr sh -c "attune $words >/dev/full"
        expect_status 4
        expect_one_line 'attune: error: cannot write to standard output: No space left on device'
    done
}

@test "a command that ends because its reader left is not put down to a setting on trial" {
    attune_with_fake
    sed 's/"phase": *"[a-z]*"/"phase": "search"/' "$ATTUNE_ROOT/tests/data/tasks/two-tasks.json" >tasks.json
    export FAKE_TASKS=$PWD/tasks.json
    run attune run --run-dir out -- sh -c 'sleep 0.3; kill -PIPE $$'
    expect_status 141
    reject_output quarantine
    run attune run --run-dir again -- sh -c 'sleep 0.3; kill -SEGV $$'
    expect_status 139
    expect_output 'attune run --quarantine'
}
