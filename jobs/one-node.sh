#!/bin/bash
#SBATCH --nodes=1
# One node, with or without Slurm: attune run starts the sidecar, the command, and stops the sidecar.
#     one-node.sh ./train ARGUMENT...
#     one-node.sh torchrun --nproc-per-node=8 train.py
#     sbatch -N 1 --gpus-per-node=8 one-node.sh mpirun -n 8 ./train
# Options of attune run by environment: ATTUNE_MAX_COST=2% one-node.sh ./train
exec attune run -- "$@"
