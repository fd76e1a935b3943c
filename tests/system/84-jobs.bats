# bats file_tags=slurm
# The ready scripts of jobs/, each on a real Slurm.
load cluster

setup_file() { lab_up 2; }
teardown_file() { lab_down; }
setup() { attune_setup && lab_setup; }
teardown() { lab_teardown; }

@test "companion.sbatch, submitted" {
    id=$(submit -N2 --ntasks-per-node=2 "$jobs/companion.sbatch" --mpi=pmix "$app" --beside --seconds 1)
    job_ends "$id" 40
    [ "$(job_field "$id" JobState)" = COMPLETED ] || fail "$(cat job.log)"
    expect_report 2 4
}

@test "companion.salloc, at the terminal" {
    run lab exec timeout 60 "$jobs/companion.salloc" -Q -N2 --ntasks-per-node=2 -- --mpi=pmix "$app" \
        --beside --seconds 1 --end abort:3@1
    expect_status 3
    expect_report 2 4
    run --separate-stderr "$jobs/companion.salloc" -N2
    expect_status 2
    expect_one_line '^usage: companion.salloc'
}

@test "torchrun.sbatch: one torchrun a node" {
    mkdir bin store
    ln -s "$ATTUNE_ROOT/tests/cluster/torchrun" bin/torchrun
    export TORCHRUN_STORE=$PWD/store PATH=$PWD/bin:$PATH
    id=$(PROCESSES_PER_NODE=3 submit -N2 --cpus-per-task=4 "$jobs/torchrun.sbatch" "$app" \
        --file "$PWD/store" --beside --seconds 1)
    job_ends "$id" 40
    [ "$(job_field "$id" JobState)" = COMPLETED ] || fail "$(cat job.log)"
    [ "$(grep -c ' of 6 on n' job.log)" -eq 6 ] || fail "$(cat job.log)"
    expect_report 2 6
}

@test "torchrun.sbatch: the workers' status is the job's" {
    mkdir bin store
    ln -s "$ATTUNE_ROOT/tests/cluster/torchrun" bin/torchrun
    export TORCHRUN_STORE=$PWD/store PATH=$PWD/bin:$PATH
    id=$(submit -N2 --cpus-per-task=4 --gpus-per-node=2 "$jobs/torchrun.sbatch" "$app" \
        --file "$PWD/store" --beside --seconds 2 --end exit:4)
    job_ends "$id" 40
    # -K ends the other node's torchrun with SIGTERM, or its ranks see before that that their peers are
    # gone and end with 255; srun's status is the largest.
    [[ $(job_field "$id" ExitCode) =~ ^(4|143|255):0$ ]] || fail "$(job_field "$id" ExitCode) $(cat job.log)"
    [ "$(job_field "$id" JobState)" = FAILED ]
    # One process a GPU: two on each node.
    expect_report 2 4
}

@test "steps.sbatch: several steps, one sidecar" {
    id=$(submit -N2 --ntasks-per-node=2 "$jobs/steps.sbatch" --mpi=pmix "$app" --beside --seconds 3)
    job_ends "$id" 60
    [ "$(job_field "$id" JobState)" = COMPLETED ] || fail "$(cat job.log)"
    [ "$(grep -c ' of 2 on n1: ' job.log)" -eq 2 ]
    [ "$(grep -c ' of 2 on n2: ' job.log)" -eq 2 ]
    [ "$(grep -c ' of 4 on n' job.log)" -eq 4 ]
    expect_report 1 2
    expect_report 2 4
}

@test "late.sbatch: the sidecar comes when the application is under way" {
    id=$(ATTUNE_LATE_SECONDS=2 submit -N2 --ntasks-per-node=2 "$jobs/late.sbatch" --mpi=pmix "$app" \
        --seconds 6)
    up() { [ -n "$(lab node 1 pgrep -x test_app)" ]; }
    wait_for 15 up
    [ -z "$(lab node 1 pgrep -x attuned)" ] || fail "the sidecar was there from the start"
    job_ends "$id" 40
    [ "$(job_field "$id" JobState)" = COMPLETED ] || fail "$(cat job.log)"
    expect_report 2 4
}

@test "a sidecar joins a running job from outside, as attune slurm late prints it" {
    cat >job <<'END'
#!/bin/bash
. "$(attune slurm --jobs)/companion.sh" || exit
attune_run "${attune_step[@]}" --mpi=pmix "$@"
END
    id=$(submit -N2 --ntasks-per-node=2 job "$app" --seconds 9)
    up() { [ -n "$(lab node 2 pgrep -x test_app)" ]; }
    wait_for 15 up
    lab exec attune slurm late | sed -n '/^# later/,/^# to stop/p' | sed "s/JOB/$id/; s/=N$/=2/" |
        sed "s|--run-dir \"[^\"]*\"|--run-dir $ATTUNE_RUN_DIR|; s/JOB/$id/" >join
    sed -i "s/--jobid=JOB/--jobid=$id/" join
    echo 'joined=$!; sleep 3; kill -USR1 $joined; wait $joined' >>join
    run lab exec bash join
    [ "$status" -eq 0 ] || fail "$(cat join)"
    expect_report 2 4
    job_ends "$id" 30
    [ "$(job_field "$id" JobState)" = COMPLETED ] || fail "$(cat job.log)"
}

@test "earlier.sh: the sidecar in a job of its own" {
    cat >train.sbatch <<'END'
#!/bin/bash
srun --mpi=pmix --ntasks-per-node=2 "$@"
END
    export POLL_SECONDS=0.2 APPLICATION_OPTIONS="--ntasks-per-node=2 -o $PWD/job.log"
    run lab exec timeout 100 "$jobs/earlier.sh" 2 train.sbatch "$app" --seconds 2 --end abort:6@3
    expect_status 6
    quiet() { [ -z "$(lab exec squeue -h)" ]; }
    wait_for 20 quiet
    expect_report 2 4
    [ "$(job_field "$(lab exec scontrol -o show job | grep -o 'JobId=[0-9]* JobName=attuned' | tail -n 1 | grep -o '[0-9]*')" JobState)" = COMPLETED ]
    run --separate-stderr "$jobs/earlier.sh" two train.sbatch
    expect_status 2
    expect_one_line '^usage: earlier.sh'
}

@test "one-node.sh, as a batch job" {
    id=$(submit -N1 -n 2 "$jobs/one-node.sh" srun --mpi=pmix -n 2 "$app" --seconds 1)
    job_ends "$id" 40
    [ "$(job_field "$id" JobState)" = COMPLETED ] || fail "$(cat job.log)"
    expect_output=$(cat job.log)
    grep -q 'allreduce' job.log || fail "no table: $(cat job.log)"
}

@test "companion.sh outside of an allocation says what is missing" {
    run --separate-stderr lab exec env -u SLURM_JOB_ID bash "$jobs/companion.sbatch" true
    expect_status 2
    expect_one_line 'companion.sh is for a Slurm allocation'
}
