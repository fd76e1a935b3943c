"""pytorch_report.py FOLDER: the tables of bench/gpu/pytorch.sh, and a verdict a line. Exit status 1 when
one FAILED. Medians over launches; the interval holds the median of the ratio over launches of the same
number with 95 % (order statistics)."""
import json
import math
import os
import statistics
import sys


def interval(ratios):
    ratios, below, k = sorted(ratios), 0.0, 0
    n = len(ratios)
    while k < n:
        below += math.comb(n, k) / 2**n
        if below > 0.025:
            break
        k += 1
    return (ratios[k - 1], ratios[n - k]) if k > 0 else (float("nan"), float("nan"))


def times(run):
    """All iterations but the first three (tuning included), and the last third (settled), seconds."""
    s = run["seconds"][3:] or run["seconds"]
    return sum(s) / len(s), statistics.median(s[-max(1, len(s) // 3):])


def loss_difference(run, other):
    pairs = list(zip(run["loss"], other["loss"]))[:50]
    return max(abs(a - b) / max(abs(b), 1e-30) for a, b in pairs)


class Verdicts:
    """Prints a line each; `failed` once one was bad."""

    def __init__(self):
        self.failed = False

    def __call__(self, good, text):
        self.failed |= not good
        print(f"{'PASSED' if good else 'FAILED'}  {text}")


def nccl_tests(path, verdict):
    """The table of a tests.txt (name, kind, bytes or "wrong", value a line); False when there is none."""
    rows = {}
    for line in open(path) if os.path.exists(path) else []:
        name, kind, size, value = line.split()
        rows.setdefault((name, size), {})[kind] = value
    if rows:
        print(f"\nnccl-tests: algorithm bandwidth, GB/s\n{'':>15} {'bytes':>10} {'NCCL':>9} {'tuned':>9}")
    for (name, size), kinds in rows.items():
        if size != "wrong":
            print(f"{name:>15} {size:>10} {kinds.get('default', '-'):>9} {kinds.get('tuned', '-'):>9}")
    for (name, size), kinds in rows.items():
        if size == "wrong":
            verdict(set(kinds.values()) == {"0"} and len(kinds) == 2, f"nccl-tests: {name}: data right")
    return bool(rows)


def training(path, verdict):
    """The tables of a runs.jsonl; False when there is none."""
    settled, cases = [], {}
    for line in open(path) if os.path.exists(path) else []:
        run = json.loads(line)
        cases.setdefault(run["case"], {}).setdefault(run["kind"], {})[run["launch"]] = run
    for case, kinds in cases.items():
        if "none" not in kinds:
            continue
        plain = kinds["none"]
        print(f"\n{case}: seconds an iteration; speed against none with its 95 % interval")
        print(f"{'kind':>13} {'launches':>8} {'all':>9} {'speed':>7} {'settled':>9} {'speed':>7}  interval")
        for kind, launches in kinds.items():
            both = [n for n in launches if n in plain]
            if not both:
                print(f"{kind:>13} {0:>8}  no launch beside one without attune")
                continue
            mine = [times(launches[n]) for n in both]
            base = [times(plain[n]) for n in both]
            every = statistics.median(m[0] for m in mine), statistics.median(b[0] for b in base)
            last = statistics.median(m[1] for m in mine), statistics.median(b[1] for b in base)
            low, high = interval([b[1] / m[1] for m, b in zip(mine, base)])
            print(f"{kind:>13} {len(both):>8} {every[0]:>9.5f} {every[1] / every[0]:>7.4f} "
                  f"{last[0]:>9.5f} {last[1] / last[0]:>7.4f}  {low:.4f}-{high:.4f}")
            if kind == "tuned" and case in ("ddp25", "ddp4", "fsdp"):
                settled.append(last[1] / last[0])
            if kind in ("idle", "tuned"):
                verdict(last[1] / last[0] >= 0.995, f"{case}: {kind} settled at least 0.995")
        for kind, launches in kinds.items():
            if kind == "none":
                continue
            both = [n for n in launches if n in plain]
            if not both:
                verdict(False, f"{case}: {kind}: no launch beside one without attune")
                continue
            worst = max(loss_difference(launches[n], plain[n]) for n in both)
            if kind == "reproducible":
                verdict(worst == 0, f"{case}: losses of 50 steps equal bit by bit")
            else:
                verdict(worst <= 1e-3, f"{case}: {kind} loss within 1e-3 for 50 steps ({worst:.1e})")
            covered = [r["coverage"] for r in launches.values() if r.get("coverage", {}).get("called")]
            if covered:
                share = min(c["answered"] / c["called"] for c in covered)
                verdict(share >= 0.9, f"{case}: {kind} coverage {100 * share:.1f} % of collectives")
    if settled:
        print()
        verdict(max(settled) > 1.05, f"one of DDP and FSDP settles above 1.05 ({max(settled):.4f})")
    return bool(cases)


def main(folder):
    verdict = Verdicts()
    found = training(os.path.join(folder, "runs.jsonl"), verdict)
    found |= nccl_tests(os.path.join(folder, "tests.txt"), verdict)
    if not found:
        print("nothing was measured yet")
        return 1
    return 1 if verdict.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
