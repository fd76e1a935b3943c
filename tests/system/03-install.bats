# An installed tree works by itself, wherever it is moved.
# bats file_tags=cpu

load setup

setup() {
    attune_setup
    DESTDIR=$PWD/stage cmake --install "$ATTUNE_BUILD" --prefix /opt/attune >install.log ||
        fail "$(tail -n 5 install.log)"
    # Moved after the installation: nothing may depend on the prefix.
    mv stage/opt/attune moved
    export PATH=$PWD/moved/bin:${PATH#"$ATTUNE_BUILD/bin:"}
    LIBDIR=$(dirname "$(dirname "$(find "$PWD/moved" -name attune.pc)")")
}

@test "everything is there" {
    local file
    for file in bin/attune include/attune/strategy.h share/attune/surfaces share/attune/jobs/companion.sh \
        share/man/man7/attune.7 share/doc/attune/LICENSE; do
        [ -e "moved/$file" ] || fail "$file is missing"
    done
    for file in libattune-nccl.so libnccl-tuner-attune.so libnccl-profiler-attune.so \
        attune/fabric/libnccl.so.2 attune/libattune-strategy-random.so pkgconfig/attune.pc; do
        [ -e "$LIBDIR/$file" ] || fail "$file is missing"
    done
    [ "$(readlink "$LIBDIR/libnccl-tuner-attune.so")" = libattune-nccl.so ]
}

# links FILE...: each relative link of these pages leads to a file.
links() {
    local page link
    for page; do
        while IFS= read -r link; do
            [ -e "$(dirname "$page")/$link" ] || fail "$page: $link is not there"
        done < <(grep -oE '\]\([^)#]+' "$page" | sed 's/^](//' | grep -vE '^[a-z]+:')
    done
}

@test "links of the pages lead somewhere, in the tree and as far as installed" {
    [ "$(grep -coE '\]\([^)#]+' "$ATTUNE_ROOT/README.md")" -ge 5 ] || fail 'no links are found'
    # shellcheck disable=SC2046 # no blanks in the names
    links $(find "$ATTUNE_ROOT"/*.md "$ATTUNE_ROOT"/{docs,examples,tests,bench} -name '*.md')
    links moved/share/doc/attune/README.md moved/share/doc/attune/examples/*/*.md
}

@test "the command runs from there and finds its strategies" {
    [ "$(command -v attune)" = "$PWD/moved/bin/attune" ]
    run attune --version
    expect_status 0
    expect_output "$(cat "$ATTUNE_ROOT/VERSION")"
    run attune slurm --jobs
    [ "$output" = "$PWD/moved/share/attune/jobs" ] || fail "not the installed scripts"
    run attune plugins
    expect_status 0
    expect_output "$PWD/moved|random"
    expect_output 'coordinate_descent'
    expect_output 'exhaustive'
}

# newest FILE: the newest glibc that FILE asks for.
newest() {
    objdump -T "$1" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1
}

@test "the plugin loads with an older C library: a container may have one" {
    ! hook_is_sanitized || skip 'the hook is built with a sanitizer'
    local most=GLIBC_2.28
    # Its headers give sscanf and strtol another name.
    ! printf '%s\n' 2.38 "$(getconf GNU_LIBC_VERSION | cut -d' ' -f2)" | sort -CV || most=GLIBC_2.38
    [ "$(printf '%s\n' $most "$(newest "$LIBDIR/libattune-nccl.so")" | sort -V | tail -n 1)" = $most ] ||
        fail "it asks for $(newest "$LIBDIR/libattune-nccl.so"), more than $most"
    # The libraries that stand for older ones when it is linked must not be looked for.
    run readelf -d "$LIBDIR/libattune-nccl.so" "$ATTUNE_BUILD/lib/libattune-nccl.so"
    expect_output 'libdl.so.2'
    [[ $output != *PATH* ]] || fail "$output"
}

@test "a strategy compiles against the installed headers alone and is found" {
    export PKG_CONFIG_PATH=$LIBDIR/pkgconfig
    [ "$(pkg-config --modversion attune)" = "$(cat "$ATTUNE_ROOT/VERSION")" ]
    sed 's/\.name *= *"random"/.name = "mine"/' "$ATTUNE_ROOT"/plugins/random/random.c >mine.c
    cc -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -shared -fPIC \
        $(pkg-config --cflags attune) -o libattune-strategy-mine.so mine.c
    run attune plugins --plugin-path "$PWD"
    expect_status 0
    expect_output '^mine|[ /]mine'
}

@test "the installed tree tunes" {
    run attune run --fabric model --surface a40-nvlink-8-allgather --max-cost 0 --run-dir run \
        --strategy random:trials=4 -- attune bench allgather -b 80M -e 80M -t 8 -n 500
    expect_status 0
    [ "$(jq '.runs[0].mismatches' run/summary.json)" = 0 ]
}
