# packages/install: asks for what is missing, and for nothing else.

load setup

setup() {
    attune_setup
    # dpkg-query knows the packages in ./there; apt-get writes down what it is asked for.
    mkdir -p fake packages
    cp "$ATTUNE_ROOT/packages/install" packages/
    printf '# a comment\none\ntwo # why\n' >packages/a.txt
    printf 'three\n' >packages/b.txt
    : >there
    cat >fake/dpkg-query <<END
#!/bin/bash
for package in "\$@"; do :; done
grep -qx "\$package" $PWD/there && printf installed || exit 1
END
    cat >fake/apt-get <<END
#!/bin/bash
echo "\$*" >>$PWD/asked
[ -e $PWD/offline ] && { echo "E: no network" >&2; exit 100; }
exit 0
END
    printf '#!/bin/bash\necho "${FAKE_UID:-0}"\n' >fake/id
    chmod +x fake/*
    export PATH=$PWD/fake:$PATH
}

@test "nothing is said or done when all is there" {
    printf 'one\ntwo\nthree\n' >there
    touch offline
    run packages/install a b
    expect_status 0
    [ -z "$output" ]
    [ ! -e asked ]
}

@test "only what is missing is installed, after one update" {
    echo one >there
    run packages/install a b
    expect_status 0
    [ "$(cat asked)" = "-q update
-q install -y --no-install-recommends two three" ] || fail "$(cat asked)"
}

@test "no network is said in clear" {
    touch offline
    run packages/install a
    expect_status 1
    expect_output 'E: no network'
    expect_output 'could not install: one two'
}

@test "neither root nor sudo is one line" {
    echo one >there
    # A path with no sudo in it.
    mkdir only
    for program in bash dirname sed grep env; do ln -s "$(type -P $program)" only/; done
    run --separate-stderr env FAKE_UID=1000 "PATH=$PWD/fake:$PWD/only" packages/install a </dev/null
    expect_status 1
    expect_one_line 'neither root nor sudo; as root: apt-get install two$'
    [ ! -e asked ]
}
