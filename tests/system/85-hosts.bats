# bats file_tags=slurm
# Several nodes without Slurm: mpirun over the nodes of a lab.
load cluster

setup_file() { LAB_SLURM=0 lab_up 3; }
teardown_file() { lab_down; }
setup() { attune_setup && lab_setup; }
teardown() { lab_teardown; }

over() { # over HOSTS MPIRUN-ARGUMENT... -- COMMAND...: jobs/mpirun.sh on ctl
    printf '#!/bin/sh\nLAB=%s exec %s _remote "$@"\n' "$LAB_DIR" "$ATTUNE_ROOT/tests/cluster/lab" \
        >"$CASE_DIR/remote"
    chmod +x "$CASE_DIR/remote"
    OMPI_MCA_orte_tmpdir_base=$LAB_DIR/tmp OMPI_MCA_plm=rsh \
        OMPI_MCA_plm_rsh_agent=$CASE_DIR/remote lab exec timeout 100 "$jobs/mpirun.sh" "$@"
}

@test "mpirun.sh on three nodes" {
    run over n1:2,n2:2,n3:2 -n 6 -x ATTUNE_FABRIC_SHM_DIR -- "$app" --beside --seconds 2
    expect_status 0
    [ "$(grep -c ' of 6 on n[123]: ' <<<"$output")" -eq 6 ]
    expect_reports 6
    expect_report 3 6
}

@test "mpirun.sh: the application's status is the script's" {
    run over n1:2,n2:2 -n 4 -x ATTUNE_FABRIC_SHM_DIR -- "$app" --beside --seconds 1 --end abort:5@2
    expect_status 5
    expect_report 2 4
}

@test "mpirun.sh: wrong usage is one line" {
    run --separate-stderr "$jobs/mpirun.sh"
    expect_status 2
    expect_one_line '^usage: mpirun.sh'
}

@test "one-node.sh on one of them" {
    run lab node 2 "$jobs/one-node.sh" mpirun -n 2 "$app" --seconds 1
    expect_status 0
    [ "$(grep -c ' of 2 on n2: ' <<<"$output")" -eq 2 ]
}
