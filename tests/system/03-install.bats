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

@test "the man pages are whole: a formatter has nothing to say about them" {
    command -v groff >/dev/null || skip 'no groff'
    local page width
    [ "$(ls moved/share/man/man1 | wc -l)" -ge 15 ]
    cd moved/share/man
    for page in man?/*; do
        for width in 78 80; do
            run --separate-stderr groff -ww -man -Tutf8 -rLL=${width}n "$page"
            [ -z "$stderr" ] || fail "$page: $stderr"
        done
    done
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

@test "the installed headers are C++, too, and a strategy in it is one" {
    command -v g++ >/dev/null || skip 'no g++'
    local standard
    export PKG_CONFIG_PATH=$LIBDIR/pkgconfig
    cat >first.cpp <<'END'
#include <attune/knob.h>
#include <attune/mark.h>
#include <attune/record.h>
#include <attune/words.h>

static int create(const att_space_t *, const att_options_t *, void **state)
{
    *state = new bool(false);
    return 0;
}
static int ask(void *state, att_setting_t *settings, uint32_t, uint32_t *count)
{
    bool *asked = static_cast<bool *>(state);
    *count = *asked ? 0 : 1;
    settings[0] = ATT_SETTING_KEEP;
    *asked = true;
    return 0;
}
static int tell(void *, const att_setting_t *, const att_result_t *)
{
    return 0;
}
static int best(void *, att_setting_t *setting)
{
    *setting = ATT_SETTING_KEEP;
    return 0;
}
static void destroy(void *state)
{
    delete static_cast<bool *>(state);
}
static att_strategy_t first()
{
    att_strategy_t s = {};
    s.abi = ATT_STRATEGY_ABI;
    s.size = sizeof s;
    s.name = "first";
    s.version = "1";
    s.description = "NCCL's choice, once";
    s.create = create;
    s.ask = ask;
    s.tell = tell;
    s.best = best;
    s.destroy = destroy;
    return s;
}
extern "C" ATT_STRATEGY_EXPORT const att_strategy_t attune_strategy = first();
END
    for standard in 11 17 20; do
        # shellcheck disable=SC2046 # flags
        g++ -std=c++$standard -Wall -Wextra -Wpedantic -Werror -shared -fPIC $(pkg-config --cflags attune) \
            -o libattune-strategy-first.so first.cpp
    done
    run attune plugins --plugin-path "$PWD"
    expect_status 0
    expect_output '^first|[ /]first'
}

@test "the data are its own, wherever the sources are" {
    mv moved/share/attune/surfaces/a40-pcie-8-allgather.json mine.json
    run attune surfaces --json
    expect_status 0
    [[ $output != *a40-pcie-8-allgather* ]] || fail "surfaces of the source tree"
    run attune run --fabric model --surface a40-pcie-8-allgather --run-dir gone -- \
        attune bench allgather -b 80M -e 80M -t 8 -n 2
    expect_output "no surface 'a40-pcie-8-allgather'"
    [[ $output != *"$ATTUNE_ROOT/data"* ]] || fail "the source tree is looked into: $output"
    # One folder for all of them: as it is installed, or surfaces alone.
    mkdir chosen
    cp -r moved/share/attune/surfaces moved/share/attune/knobs.json chosen
    cp mine.json chosen/surfaces/mine.json
    ATTUNE_DATA_DIR=$PWD/chosen run attune surfaces mine
    expect_status 0
    expect_output a40-pcie-8-allgather
    ATTUNE_DATA_DIR=$PWD/chosen/surfaces run attune surfaces mine
    expect_output a40-pcie-8-allgather
}

@test "the installed tree tunes" {
    run attune run --fabric model --surface a40-nvlink-8-allgather --max-cost 0 --run-dir run \
        --strategy random:trials=4 -- attune bench allgather -b 80M -e 80M -t 8 -n 500
    expect_status 0
    [ "$(jq '.runs[0].mismatches' run/summary.json)" = 0 ]
}
