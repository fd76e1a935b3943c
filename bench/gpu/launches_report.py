#!/usr/bin/env python3
"""What launches.sh measured: a line a size and kind.

    bench/gpu/launches_report.py launches.txt[.gz][,...] DROP KIND...

Of each launch the median of its rounds but the first DROP counts; launches of several files are
taken together, each relative to its file's median of the first kind. "speed" is the ratio of the
medians of the first kind and of this one. Its interval is the percentile bootstrap's (4,000
samples, fixed seed) of just that number; launches are drawn with their neighbours of the other
kinds, which matters little: neighbours hardly resemble each other.
"""
import collections
import gzip
import math
import random
import statistics
import sys

SAMPLES = 4000


def read(path, drop):
    """{(bytes, kind): {launch: (us, host us)}}; launches that end before `drop` are left out."""
    rounds = collections.defaultdict(list)
    with gzip.open(path, "rt") if path.endswith(".gz") else open(path) as file:
        for line in file:
            if not line.startswith("#"):
                kind, launch, size, us, *host = line.split()
                rounds[int(size), kind, int(launch)].append(
                    (float(us), float(host[0]) if host else math.nan))
    launches = collections.defaultdict(dict)
    for (size, kind, launch), values in rounds.items():
        if values[drop:]:
            us, host = zip(*values[drop:])
            launches[size, kind][launch] = (statistics.median(us), statistics.median(host))
    return launches


def interval(files):
    """Of the ratio of medians; files: [(launches of the first kind, launches of this one)]. Few
    launches say nothing: NaN."""
    if sum(len(a) for a, _ in files) < 6:
        return math.nan, math.nan
    draw = random.Random(1)
    ratios = []
    for _ in range(SAMPLES):
        first, mine = [], []
        for a, b in files:
            middle = statistics.median(a)
            for i in draw.choices(range(len(a)), k=len(a)):
                first.append(a[i] / middle)
                mine.append(b[i] / middle)
        ratios.append(statistics.median(first) / statistics.median(mine))
    ratios.sort()
    return ratios[SAMPLES * 25 // 1000], ratios[SAMPLES * 975 // 1000 - 1]


def main(paths, drop, kinds):
    try:
        runs = [read(path, drop) for path in paths]
    except (OSError, ValueError) as error:
        sys.exit(f"launches_report.py: {error}")
    there = {kind for run in runs for _, kind in run}
    for kind in kinds:
        if kind not in there:
            sys.exit(f"launches_report.py: no launch is of kind '{kind}', of these: "
                     f"{' '.join(sorted(there))}")
    print(f"{'bytes':>10} {'kind':>9} {'median us':>10} {'speed':>7} {'95 % interval':>17} "
          f"{'launches':>8} {'host us':>8}")
    for size in sorted({size for run in runs for size, _ in run}):
        for kind in kinds:
            both = [(run[size, kinds[0]], run[size, kind]) for run in runs if (size, kind) in run]
            pairs = [[(a[i], b[i]) for i in b if i in a] for a, b in both]
            pairs = [pair for pair in pairs if pair]
            if not pairs:
                continue
            us = [([a[0] for a, _ in pair], [b[0] for _, b in pair]) for pair in pairs]
            middles = [statistics.median(a) for a, _ in us]
            speed = (statistics.median(x / m for (a, _), m in zip(us, middles) for x in a) /
                     statistics.median(x / m for (_, b), m in zip(us, middles) for x in b))
            low, high = interval(us)
            mine = [b for pair in pairs for _, b in pair]
            print(f"{size:>10} {kind:>9} {statistics.median(b[0] for b in mine):>10.2f} "
                  f"{speed:>7.4f} {low:>8.4f}-{high:<8.4f} {len(mine):>8} "
                  f"{statistics.median(b[1] for b in mine):>8.3f}")


if __name__ == "__main__":
    if len(sys.argv) < 5 or not sys.argv[2].isdigit():
        sys.exit(__doc__.strip())
    main(sys.argv[1].split(","), int(sys.argv[2]), sys.argv[3:])
