# `attune slurm`: the lines follow the Slurm that is found. Stand-ins for srun, scontrol and attuned
# play versions that are not installed.
load setup
load run-setup

setup() {
    attune_setup
    attune_with_fake
    mkdir there
    export PATH=$PWD/there:$PATH
    export SRUN_VERSION='slurm 22.05.8' SRUN_MPI='none pmi2 pmix' CONFIG=
    cat >there/srun <<'END'
#!/bin/bash
case $1 in
--version) [ -z "${SRUN_FAILS:-}" ] || { echo "srun: error: no configuration" >&2 && exit 1; }
    echo "$SRUN_VERSION" ;;
--mpi=list)
    echo "MPI plugin types are..."
    printf '\t%s\n' $SRUN_MPI ;;
esac
END
    printf '#!/bin/bash\n[ -n "$CONFIG" ] || exit 1\nprintf "%%b" "$CONFIG"\n' >there/scontrol
    printf '#!/bin/bash\necho "attuned 0.1.0 (${ATTUNED_MPI:-Open MPI 4.1.4})"\n' >tree/bin/attuned
    chmod +x there/* tree/bin/attuned
}

# The shell parts as bash takes them.
shell_parts() {
    unset attune_sidecar attune_step
    eval "$(attune slurm --shell)"
    unset LD_PRELOAD
}

@test "22.05: the sidecar overlaps, asks for nothing, and the fence is a ring" {
    run attune slurm companion
    expect_status 0
    expect_output '^# Slurm 22\.05\.8; attuned is built with Open MPI 4\.1\.4 and started by srun --mpi=pmix$'
    expect_output '^export SLURM_PMIX_FENCE=ring$'
    expect_output '^export NCCL_TUNER_PLUGIN=.*/libattune-nccl\.so$'
    expect_output '^export LD_PRELOAD=.*/libattune-nccl\.so\$\{LD_PRELOAD:\+:\$LD_PRELOAD\}$'
    shell_parts
    [[ " ${attune_sidecar[*]} " == *" --overlap -K -N "* ]]
    [[ " ${attune_sidecar[*]} " == *" --gres=none --mem=0 --cpu-bind=none --mpi=pmix " ]]
    [[ " ${attune_sidecar[*]} " == *" -u SLURM_GPUS_PER_NODE "* ]]
    [ "${attune_step[*]}" = 'srun -J application -K' ]
}

@test "21.08: both steps must ask for the overlap" {
    SRUN_VERSION='slurm 21.08.6'
    shell_parts
    [ "${attune_step[*]}" = 'srun -J application --overlap -K' ]
}

@test "20.02: there is no --overlap, and none is needed" {
    SRUN_VERSION='slurm 20.02.7'
    shell_parts
    [[ " ${attune_sidecar[*]} ${attune_step[*]} " != *--overlap* ]]
    [ -z "$attune_overlap" ]
    run attune slurm
    expect_status 0
    expect_output '^# Slurm 20\.02\.7;'
    reject_output --overlap
}

@test "20.11 has it" {
    SRUN_VERSION='slurm 20.11.0'
    shell_parts
    [[ " ${attune_sidecar[*]} " == *" --overlap "* ]]
}

@test "old list of MPI types, without pmix: mpirun starts the agents" {
    sed -i 's/printf .*SRUN_MPI/printf "srun: %s\\n" $SRUN_MPI/' there/srun
    SRUN_MPI='pmix_v3 none' shell_parts
    [[ " ${attune_sidecar[*]} " == *" --mpi=pmix " ]]
    SRUN_MPI='none pmi2' shell_parts
    [ "${attune_sidecar[*]}" = 'env SLURM_STEP_GRES=none SLURM_OVERLAP=1 mpirun --map-by ppr:1:node --bind-to none' ]
    SRUN_MPI='none pmi2' run attune slurm companion
    expect_output 'started by mpirun: srun has no fitting --mpi$'
    reject_output SLURM_PMIX_FENCE
}

@test "built with MPICH: pmi2, no fence" {
    export ATTUNED_MPI='MPICH 4.0.2'
    shell_parts
    [[ " ${attune_sidecar[*]} " == *" --mpi=pmi2 " ]]
    run attune slurm mpirun
    expect_output '^mpiexec -f hosts -ppn 1 '
    run attune slurm companion
    reject_output SLURM_PMIX_FENCE
}

@test "what scontrol tells is used and shown" {
    export CONFIG='KillWait                = 30 sec\nSlurmdTimeout           = 300 sec\nTaskPlugin              = task/none\nMPI Plugins Configuration:\nPMIxCollFence           = ring\n'
    run attune slurm companion
    expect_status 0
    expect_output '30 s to end \(KillWait\); a dead node is noticed after 300 s'
    expect_output 'mpi.conf has PMIxCollFence=ring already'
    reject_output cpu-bind
    CONFIG='KillWait = 2 sec\nTaskPlugin = task/affinity\n' run attune slurm companion
    expect_output 'warning: KillWait is short'
    expect_output cpu-bind=none
}

@test "every pattern prints lines that bash can read" {
    local pattern
    for pattern in companion torchrun steps late earlier mpirun one-node; do
        run attune slurm $pattern
        expect_status 0
        expect_output "^# $pattern: "
        bash -n <<<"$output" || fail "$pattern"
    done
    run attune slurm
    bash -n <<<"$output"
    [ "$(grep -cE '^# (companion|torchrun|steps|late|earlier|mpirun|one-node): ' <<<"$output")" -eq 7 ]
}

@test "the companion's lines as printed: the application's status, and the sidecar is told to go" {
    needs_plain_hook
    export SLURM_JOB_NUM_NODES=2 SLURM_JOB_ID=77
    # This srun runs what it is asked to, without the options.
    cat >there/srun <<'END'
#!/bin/bash
case $1 in --version) echo slurm 22.05.8 && exit ;; --mpi=list) printf '\tpmix\n' && exit ;; esac
echo "$*" >>calls
while [[ ${1:-} == -* ]]; do
    case $1 in -J | -N | -n) shift ;; esac
    shift
done
exec "$@"
END
    cat >tree/bin/attuned <<'END'
#!/bin/bash
[ "$1" != --version ] || { echo "attuned 0.1.0 (Open MPI 4.1.4)" && exit; }
trap 'echo "agent told to go" >>calls; exit 0' USR1
echo "agent up" >>calls
while :; do sleep 0.05; done
END
    printf '#!/bin/bash\nuntil grep -q "agent up" calls; do sleep 0.05; done\nexit 7\n' >train
    chmod +x train
    run bash <<<"$(attune slurm companion)"
    expect_status 7
    grep -q '^-J attuned --overlap -K -N 2 -n 2 --ntasks-per-node=1 ' calls
    grep -q '^agent told to go$' calls
}

@test "for a Slurm that is elsewhere" {
    rm there/*
    run attune slurm --for 20.02 companion
    expect_status 0
    expect_output '^# Slurm 20\.02;'
    reject_output --overlap
    run attune slurm --for=23.11.4 companion
    expect_output ' --overlap '
}

@test "no srun, a broken srun, nonsense: one line, and what to do" {
    mv there/srun there/none
    run --separate-stderr env PATH="$PWD/tree/bin:/bin" attune slurm
    if [ ! -x /bin/srun ]; then
        expect_status 6
        expect_one_line 'there is no srun in PATH; attune slurm --for 22.05'
    fi
    run --separate-stderr env PATH="$PWD/tree/bin:/bin" attune slurm one-node
    expect_status 0
    mv there/none there/srun
    SRUN_FAILS=1 run --separate-stderr attune slurm
    expect_status 4
    expect_one_line 'srun --version fails with status 1: srun: error: no configuration'
    SRUN_VERSION=unknown run --separate-stderr attune slurm
    expect_status 3
    expect_one_line "'unknown' is no version of Slurm"
    for wrong in --nonsense 'nowhere' '--for' '--for x' 'companion late'; do
        run --separate-stderr attune slurm $wrong
        expect_status 2
        expect_one_line '(no option|no pattern|needs a value|expected a version|one pattern)'
    done
}

@test "help, and the folder of the ready scripts" {
    run attune slurm --help
    expect_status 0
    expect_output '^Usage: attune slurm'
    run "$ATTUNE_BUILD/bin/attune" slurm --jobs
    expect_status 0
    [ -s "$output/companion.sh" ]
    local script
    for script in "$output"/*; do bash -n "$script" || fail "$script"; done
    # Every script that the patterns name is there.
    for script in $(attune slurm --help | grep -Eo '[a-z-]+\.(sbatch|salloc|sh)' | sort -u); do
        [ -s "$output/$script" ] || fail "$script is not in $output"
    done
}
