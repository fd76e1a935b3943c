# The layout's rules (tests/unit/arrows) notice each way to break them.

load setup

setup() {
    attune_setup
    mkdir -p tree/src/base tree/src/search tree/src/hook/abi tree/plugins/one tree/include tree/bench tree/tests
    echo '#include "base/status.h"' >tree/src/search/space.c
    echo '#include "attune/strategy.h"' >tree/plugins/one/one.c
    echo '#include <stdio.h>' >tree/src/base/log.c
    printf '#include "abi/v6.h"\n#include "hook/hook.h"\n' >tree/src/hook/hook.c
    : >tree/src/hook/abi/v6.h
}

arrows() { ATTUNE_ARROWS_TREE=$PWD/tree "$ATTUNE_ROOT/tests/unit/arrows/arrows" "$@"; }

@test "allowed includes pass" {
    arrows includes search base
    arrows includes base
    arrows includes hook base
    arrows includes plugins
    arrows headers src plugins -- 'mpi\.h'
    arrows lines 600
    arrows shell
}

@test "an include against the arrows is named" {
    echo '#include "control/agent.h"' >>tree/src/search/space.c
    run arrows includes search base
    expect_status 1
    expect_output 'src/search/space.c:2:.*search -> control'
    echo '#  include "../control/agent.h"' >tree/src/base/log.c
    run arrows includes base
    expect_status 1
    expect_output 'a path upwards'
    echo '#include "base/status.h"' >>tree/plugins/one/one.c
    run arrows includes plugins
    expect_status 1
    expect_output 'plugins -> base'
}

@test "a vendor's header is named" {
    echo '#include <mpi.h>' >>tree/src/base/log.c
    run arrows headers src/base -- 'mpi\.h'
    expect_status 1
    expect_output 'src/base/log.c:2'
}

@test "a long file and a shell are named" {
    seq 601 >tree/src/base/long.c
    run arrows lines 600
    expect_status 1
    expect_output 'src/base/long.c'
    echo 'int f(void) { return system("ls"); }' >tree/src/base/shell.c
    run arrows shell
    expect_status 1
    expect_output 'src/base/shell.c:1'
}

@test "a library that was not agreed on is named" {
    run arrows needed "$(type -P bash)" 'libc\.so.*'
    expect_status 1
    expect_output 'needs .*tinfo'
    run arrows needed /nothing 'libc\.so.*'
    expect_status 1
}
