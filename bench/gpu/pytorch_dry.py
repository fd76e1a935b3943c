"""Stands in for torchrun and a training script where there is no GPU: `--ranks` processes that call
AllReduce on an NCCL for CPU memory, the buckets of a step one after the other, and print what
examples/pytorch prints. The loss is the sum that came out, so that it shows a wrong result.

    pytorch_dry.py --library libnccl.so.2 --ranks 2 --steps 60 --buckets 262144,65536
"""
import argparse
import ctypes
import json
import multiprocessing
import time


class Id(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


def check(result, what):
    if result != 0:
        raise SystemExit(f"pytorch_dry: {what} gives {result}")


def run(options, rank, uid):
    ctypes.CDLL(options.library, ctypes.RTLD_GLOBAL)
    nccl = ctypes.CDLL(None)  # what stands in front of NCCL comes first, as for a linked program
    comm = ctypes.c_void_p()
    unique = Id.from_buffer_copy(uid)
    nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, Id, ctypes.c_int]
    check(nccl.ncclCommInitRank(ctypes.byref(comm), options.ranks, unique, rank), "ncclCommInitRank")
    sizes = [int(n) for n in options.buckets.split(",")]
    data = [(ctypes.c_float * (n // 4))() for n in sizes]
    cases = options.cases.split() or [""]
    for i in range(options.steps * len(cases)):
        step = i % options.steps
        if rank == 0 and options.cases and step == 0:
            print(json.dumps({"case": cases[i // options.steps]}), flush=True)
        for bucket in data:
            bucket[0] = bucket[len(bucket) - 1] = rank + 1 + step
        began = time.perf_counter()
        for bucket in data:
            check(nccl.ncclAllReduce(bucket, bucket, ctypes.c_size_t(len(bucket)), 7, 0, comm, None),
                  "ncclAllReduce")
        seconds = time.perf_counter() - began
        if rank == 0:
            loss = sum(bucket[0] + bucket[len(bucket) - 1] for bucket in data)
            print(json.dumps({"iteration": step, "seconds": seconds, "loss": loss}), flush=True)
    check(nccl.ncclCommDestroy(comm), "ncclCommDestroy")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--library", required=True)
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--buckets", default="262144,65536")
    p.add_argument("--cases", default="", help="so many times the steps, with these names")
    options = p.parse_args()
    unique = Id()
    check(ctypes.CDLL(options.library).ncclGetUniqueId(ctypes.byref(unique)), "ncclGetUniqueId")
    context = multiprocessing.get_context("spawn")
    ranks = [context.Process(target=run, args=(options, r, bytes(unique))) for r in range(options.ranks)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    raise SystemExit(max(abs(process.exitcode) for process in ranks))


if __name__ == "__main__":
    main()
