# attune knobs: the catalogue as text and JSON, and answers with the rule.
# bats file_tags=cpu

load setup

@test "an illegal combination is answered with the rule, exit 1" {
    run attune knobs --check nccl=2.28.9 collective=allreduce protocol=simple threads=480
    expect_status 1
    expect_output '^illegal: .*power of two.*NVIDIA/nccl#698'
    run attune knobs --check nccl=2.28.9 collective=allreduce protocol=simple threads=480 --json
    expect_status 1
    jq -e '.version == 1 and .legal == false and .knob == "threads" and .pairs == [] and
           (.rule | contains("power of two")) and (.source | contains("#698"))' <<<"$output"
}

@test "a legal one says with what, exit 0" {
    run attune knobs --check nccl=2.28.9 collective=allreduce protocol=simple threads=512
    expect_status 0
    expect_output '^legal: .*; with ring/simple$'
    run attune knobs --check nccl=2.30.3 algorithm=ring protocol=simple collective=allgather chunk=2M channels=64
    expect_status 0
    run attune knobs --check protocol=ll128 buffer=122880
    expect_status 0
    run attune knobs --check nccl=2.30.3 algorithm=nvls collective=allreduce chunk=64K --json
    expect_status 1
}

@test "wrong questions are one line, exit 2" {
    local words
    for words in 'threads=many' 'nccl=two' 'collective=alltoall' 'colour=red' 'threads' 'chunk=-4' \
        'protocol=ll256' 'transport=pigeon' 'channels=4K'; do
        run --separate-stderr attune knobs --check "$words"
        expect_status 2
        expect_one_line "$words|${words#*=}"
    done
    run --separate-stderr attune knobs --check
    expect_status 2
    expect_one_line 'what'
    run --separate-stderr attune knobs --chekc
    expect_status 2
    expect_one_line '--chekc'
}

@test "the catalogue is printed, for all versions and for one" {
    run attune knobs
    expect_status 0
    expect_output '^threads: '
    expect_output '^  set +call +since 2.30.3: tuner getChunkSize'
    expect_output 'll128-forced'
    run attune knobs --nccl 2.28.9
    expect_status 0
    reject_output 'tuner getChunkSize \(ABI 6\)'
    run attune knobs --json
    expect_status 0
    jq -e '.version == 1 and ([.knobs[].name] | length == 7) and (.unsafe | length > 5)' <<<"$output"
}

@test "a catalogue that is no catalogue is one line" {
    echo '{"version":1}' >knobs.json
    ATTUNE_DATA_DIR=$PWD run --separate-stderr attune knobs
    [ "$status" -ne 0 ]
    expect_one_line 'knobs.json: knobs: pairs'
}

@test "the page of the documentation has the catalogue's tables" {
    local line lines=0
    jq -rf "$ATTUNE_ROOT/docs/knobs.jq" "$ATTUNE_ROOT/data/knobs.json" >tables
    while IFS= read -r line; do
        [ -z "$line" ] || grep -qxF -- "$line" "$ATTUNE_ROOT/docs/knobs.md" ||
            fail "docs/knobs.md lacks: $line"
        lines=$((lines + 1))
    done <tables
    [ "$lines" -eq 14 ] || fail "$lines lines: $(cat tables)"
    [ "$(grep -c '^|' "$ATTUNE_ROOT/docs/knobs.md")" -eq 13 ] || fail "docs/knobs.md has other rows too"
}
