"""hta_tables.py FOLDER: Holistic Trace Analysis on the per-rank traces in FOLDER.

Prints the kernel breakdown and the overlap table; exit status 0 when both have rows and the
communication kernels were recognised, 77 when HTA is not installed.
"""
import sys

try:
    from hta.trace_analysis import TraceAnalysis
except ImportError as missing:
    print(f"skip: Holistic Trace Analysis cannot be imported: {missing}")
    sys.exit(77)

analyzer = TraceAnalysis(trace_dir=sys.argv[1])
kinds, kernels = analyzer.get_gpu_kernel_breakdown(visualize=False)
print(kinds)
print(kernels)
overlap = analyzer.get_comm_comp_overlap(visualize=False)
print(overlap)
good = len(kinds) > 0 and len(kernels) > 0 and len(overlap) > 0
good = good and kinds["kernel_type"].str.contains("COMMUNICATION").any()
good = good and kernels["name"].str.startswith("ncclDevKernel_").any()
sys.exit(0 if good else 1)
