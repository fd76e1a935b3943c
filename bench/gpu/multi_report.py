"""multi_report.py FOLDER PAPER: the tables of bench/gpu/multi.sh from its unpacked parts, beside the rows
of data/paper.json, and a verdict a line. Exit status 1 when one FAILED or nothing was measured."""
import csv
import glob
import gzip
import json
import math
import os
import re
import statistics
import sys

import pytorch_report

RATIO = 0.97     # tuned over best, in every task
REPEATS = 30     # samples of each setting that is measured again
NCCL_TESTS = 6   # runs: each collective with NCCL's choice and with the settings found
NOISE = 3        # standard errors of a difference of medians
ORDER = ("allreduce", "allgather", "reducescatter")


def size_text(n):
    for unit in ("", "K", "M", "G"):
        if n < 1024 or n % 1024:
            return f"{n}{unit}"
        n //= 1024
    return f"{n}T"


def mean(ratios):
    return math.exp(sum(math.log(r) for r in ratios) / len(ratios))


def error(samples):
    """Standard error of the median (robust, normal)."""
    middle = statistics.median(samples)
    spread = 1.4826 * statistics.median(abs(s - middle) for s in samples)
    return 1.2533 * spread / math.sqrt(len(samples))


# ---- the table ----

def plan(part):
    tasks = []
    for line in open(os.path.join(part, "plan.txt")):
        collective, size, load = line.split()
        if (collective, int(size), load) not in tasks:
            tasks.append((collective, int(size), load))
    return sorted(tasks, key=lambda t: (t[2] != "none", ORDER.index(t[0]), t[1]))


def sweeps(part, verdict):
    found = {}
    for path in sorted(glob.glob(os.path.join(part, "sweep-*.json"))):
        try:
            for task in json.load(open(path))["tasks"]:
                found[task["collective"], task["bytes"], task["load"]] = task
        except (ValueError, KeyError, TypeError) as error:
            verdict(False, f"{os.path.basename(path)} can be read: {error}")
    return found


def beyond_noise(task):
    """Whether tuned is slower than NCCL's choice by more than the noise of both medians."""
    kinds = {}
    for setting in task["settings"]:
        if setting["default"]:
            kinds["default"] = setting
        if setting["tuned"]:
            kinds["tuned"] = setting
    default, tuned = kinds["default"], kinds["tuned"]
    noise = math.hypot(error(default["samples_us"]), error(tuned["samples_us"]))
    return tuned["median_us"] > default["median_us"] + NOISE * noise


def table(part, paper, verdict):
    wanted, found = plan(part), sweeps(part, verdict)
    print("\nmedians of the second, interleaved measurement, us a call; busbw GB/s; NCCL's choice -> tuned")
    print(f"{'collective':>13} {'size':>5} {'load':>5} {'NCCL':>10} {'tuned':>10} {'best':>10} "
          f"{'NCCL/best':>9} {'tuned/best':>10} {'speedup':>7} {'busbw':>7} {'tuned':>7}  best setting; tuned setting")
    rows, missing, slower, few, wrong = {}, [], [], [], []
    for key in wanted:
        name = f"{key[0]} {size_text(key[1])}" + ("" if key[2] == "none" else " beside a GEMM")
        task = found.get(key)
        if task is None or task["tuned_us"] is None:
            missing.append(name)
            continue
        best, default, tuned = task["best_us"], task["default_us"], task["tuned_us"]
        mine = next(s for s in task["settings"] if s["tuned"])
        native = next(s for s in task["settings"] if s["default"])
        rows[key] = (best / tuned, default / tuned)
        if beyond_noise(task):
            slower.append(name)
        if min(s["repeats"] for s in task["settings"]) < REPEATS:
            few.append(name)
        if task["nwrong"]:
            wrong.append(name)
        print(f"{key[0]:>13} {size_text(key[1]):>5} {key[2]:>5} {default:>10.2f} {tuned:>10.2f} {best:>10.2f} "
              f"{best / default:>9.3f} {best / tuned:>10.3f} {default / tuned:>7.3f} {native['bus_bw']:>7.1f} "
              f"{mine['bus_bw']:>7.1f}  {task['settings'][0]['setting']['text']}; {mine['setting']['text']}")
    if rows:
        published(rows, paper)
        least = min(rows, key=lambda k: rows[k][0])
        print(f"\ntuned / best: geometric mean {mean([r[0] for r in rows.values()]):.3f}; "
              f"tuned over NCCL's choice: {mean([r[1] for r in rows.values()]):.3f}; {len(rows)} tasks")
        verdict(rows[least][0] >= RATIO, f"tuned at least {RATIO} of the best everywhere "
                f"(least {rows[least][0]:.3f}: {least[0]} {size_text(least[1])} {least[2]})")
        verdict(not slower, "tuned never below NCCL's choice beyond noise" + listed(slower))
        verdict(not few, f"every setting measured again has {REPEATS} samples or more" + listed(few))
        verdict(not wrong, "results of the best settings right" + listed(wrong))
    verdict(not missing, f"all {len(wanted)} tasks tuned and swept" + listed(missing))
    tests = os.path.join(part, "tests.txt")
    pytorch_report.nccl_tests(tests, verdict)
    ended = sum(line.split()[2:3] == ["wrong"] for line in open(tests)) if os.path.exists(tests) else 0
    verdict(ended == NCCL_TESTS, f"nccl-tests: {NCCL_TESTS} runs ended ({ended})")


def listed(names):
    return ": not " + ", ".join(names) if names else ""


def published(rows, paper):
    """Ours beside the paper's rows of the same collective, size and load; its machine is another one."""
    print("\nspeedup of tuned over NCCL's choice: AutoCCL as published, and here")
    print(f"{'collective':>13} {'sizes':>9} {'load':>5} {'published':>11} {'here':>7} {'here/published':>14}  "
          "published on, where")
    for row in paper["rows"]:
        if row["collective"] not in ORDER or row["load"] not in ("none", "gemm"):
            continue
        low, high = row["bytes_from"] or row["bytes"], row["bytes_to"] or row["bytes"]
        ours = [s for (c, b, load), (_, s) in rows.items()
                if c == row["collective"] and load == row["load"] and low <= b <= high]
        published_as, ratio = row["autoccl_speedup"], "-"
        if not ours or (published_as is None and row["autoccl_speedup_low"] is None):
            continue
        here = mean(ours)
        if published_as is None:
            text = f"{row['autoccl_speedup_low']:.2f}-{row['autoccl_speedup_high']:.2f}"
        else:
            text, ratio = f"{published_as:.2f}", f"{here / published_as:.2f}"
        sizes = size_text(low) if low == high else f"{size_text(low)}-{size_text(high)}"
        print(f"{row['collective']:>13} {sizes:>9} {row['load']:>5} {text:>11} {here:>7.3f} {ratio:>14}  "
              f"{row['setup']}, {row['source']}" + (f" (mean of {len(ours)} here)" if len(ours) > 1 else ""))


# ---- variants ----

def communicators(paths):
    """Per process, in the order of their creation: which transports NCCL's log names for each
    communicator, with counts. The lines say no communicator; they come before its "Init COMPLETE", from
    the thread that makes it."""
    found, pending = {}, {}
    for path in sorted(paths):
        for line in open(path, errors="replace"):
            thread = re.match(r"(\S+?:\d+:\d+ \[\d+\]|fabric\[\d+\]) NCCL INFO ", line)
            if not thread:
                continue
            thread = thread.group(1)
            process = re.search(r":(\d+):|\[(\d+)\]", thread)
            process = process.group(1) or process.group(2)
            via = re.search(r"\[\w+\] via (\w+)/", line)
            if via:
                counts = pending.setdefault(thread, {})
                counts[via.group(1)] = counts.get(via.group(1), 0) + 1
            elif "Init START" in line:
                pending[thread] = {}
            elif re.search(r"comm 0x\w+ rank \d+ nranks \d+ .*Init COMPLETE", line):
                found.setdefault(process, []).append(pending.pop(thread, {}))
    return found


def counted(communicator):
    return ", ".join(f"{n} via {via}" for via, n in sorted(communicator.items())) or "none named"


def bandwidth(path):
    """bytes -> bus bandwidth, of what attune bench wrote."""
    if not os.path.exists(path):
        return {}
    return {row["size"]: row["out_of_place"]["bus_bw"] for row in json.load(open(path))["results"]}


def transports(part, verdict):
    print("\ntransport: connections that NCCL's log names")
    for kind in ("p2p", "shm"):
        logs = glob.glob(os.path.join(part, f"nccl-process-{kind}.*")) + [os.path.join(part, f"process-{kind}.txt")]
        made = communicators(p for p in logs if os.path.exists(p))
        for process, list_of in sorted(made.items()):
            print(f"  whole process, {kind}, {process}: {counted(list_of[0])}")
        verdict(bool(made) and all(set(c[0]) == {kind.upper()} for c in made.values()),
                f"transport: a process told to use {kind.upper()} alone does")
    run = os.path.join(part, "t-search.txt")
    logs = glob.glob(os.path.join(part, "nccl-t-search.*")) + [run]
    made = communicators(p for p in logs if os.path.exists(p))
    for process, list_of in sorted(made.items()):
        for i, communicator in enumerate(list_of):
            print(f"  variants, {process}, {'parent' if i == 0 else f'twin {i}'}: {counted(communicator)}")
    for line in open(run, errors="replace") if os.path.exists(run) else []:
        if "has no variants" in line:
            print("  " + line.strip())
    verdict(bool(made) and all([set(c) for c in list_of[1:]] == [{"P2P"}, {"SHM"}] for list_of in made.values()),
            "transport: every rank has a twin over P2P alone and one over SHM alone")
    rows = {name: bandwidth(os.path.join(part, f"{name}.json"))
            for name in ("process-p2p", "process-shm", "t-p2p", "t-shm")}
    sizes = sorted({size for row in rows.values() for size in row})
    print(f"\ntransport: bus bandwidth, GB/s\n{'bytes':>10} {'P2P process':>12} {'SHM process':>12} "
          f"{'P2P twin':>12} {'SHM twin':>12}")
    for size in sizes:
        print(f"{size:>10} " + " ".join(f"{row[size]:>12.2f}" if size in row else f"{'-':>12}"
                                        for row in rows.values()))
    for kind in ("p2p", "shm"):
        verdict(all(setting["transport"] == kind for setting in in_force(part, f"t-{kind}")),
                f"transport: the run over {kind.upper()} ended with that setting (what it did: the lines above)")


def in_force(part, run):
    """What the tasks of an applied run ended with; one that is nothing when there is no such run."""
    path = os.path.join(part, f"run-{run}", "tasks.json")
    tasks = json.load(open(path))["tasks"] if os.path.exists(path) else []
    return [task["tuned"]["setting"] for task in tasks if not task["kept_default"]] or [{"transport": None}]


def second(result):
    """Median of the second measurement of a result of a surface, us; None without one."""
    for measurement in result["measurements"]:
        if measurement["name"] == "again" and measurement["value"]:
            return statistics.median(measurement["value"])
    return None


def knobs(part, verdict):
    """Best setting with threads and best one without, of one interleaved measurement."""
    for path in glob.glob(os.path.join(part, "six-knobs*.json.gz")):
        four, six = [], []
        for result in json.load(gzip.open(path))["results"]:
            if result["invalidity"] != "correct" or (us := second(result)) is None:
                continue
            entry = (us, str({k: v for k, v in result["configuration"].items() if v not in ("keep", 0)}))
            six.append(entry)
            if result["configuration"]["threads"] in ("keep", 0):
                four.append(entry)
        if four and six:
            print(f"\n{os.path.basename(path)}: measured again side by side, us")
            print(f"  four knobs: {min(four)[0]:.2f} {min(four)[1]}\n   six knobs: {min(six)[0]:.2f} {min(six)[1]}")
            print(f"  the best of six over the best of four, which are among them: {min(four)[0] / min(six)[0]:.3f}")
        verdict(bool(four) and bool(six), "threads: settings with and without were measured side by side")
    for name in ("four", "six"):
        path = os.path.join(part, f"run-{name}", "tasks.json")
        if os.path.exists(path):
            for task in json.load(open(path))["tasks"]:
                tuned, default = task["tuned"], task["default"]
                text = {k: v for k, v in tuned["setting"].items() if v not in ("keep", 0)}
                print(f"  online, {name} knobs: NCCL's choice {default['median_us']:.2f} us, "
                      f"tuned {tuned['median_us']:.2f} us {text or 'kept'}")


def warps(part, verdict):
    for threads in (128, 256, 512):
        path = os.path.join(part, f"nt-{threads}.csv.gz")
        seen = {}
        if os.path.exists(path):
            lines = (line for line in gzip.open(path, "rt") if not line.startswith("#"))
            for row in csv.DictReader(lines):
                if row["in_force"] != "default":
                    seen[int(row["threads"])] = seen.get(int(row["threads"]), 0) + 1
        most = max(seen, key=seen.get) if seen else 0
        print(f"  nt={threads}: warps of calls with the setting in force: "
              + (", ".join(f"{t // 32} ({n} calls)" for t, n in sorted(seen.items())) or "none seen"))
        # Ring and Simple have one more warp that waits (NCCL enqueue.cc, 2.30); the call that tells the
        # hook its task, and calls in a check, stay with the parent.
        verdict(most == threads + 32 and seen[most] >= 0.9 * sum(seen.values()),
                f"threads: with nt={threads} the profiler sees {threads // 32 + 1} warps")


# ---- all ----

def training(part, verdict):
    verdict(pytorch_report.training(os.path.join(part, "runs.jsonl"), verdict), "training: launches were measured")


def record(part, verdict):
    whole = 0
    print()
    for path in sorted(glob.glob(os.path.join(part, "*.json.gz"))):
        surface = json.load(gzip.open(path))
        print(f"  {os.path.basename(path)}: {len(surface['results'])} settings, {surface['metadata']['state']}")
        whole += surface["metadata"]["state"] == "complete"
    verdict(whole == 9, f"record: whole surfaces of three collectives and sizes ({whole} of 9)")


def main(folder, paper_path):
    verdict = pytorch_report.Verdicts()
    parts = {"table": [lambda part, verdict: table(part, json.load(open(paper_path)), verdict)],
             "variants": [transports, knobs, warps], "training": [training], "record": [record]}
    found = [name for name in parts if os.path.isdir(os.path.join(folder, name))]
    for name in found:
        for tell in parts[name]:
            try:  # one part's damage must not hide the others: this runs once, far away
                tell(os.path.join(folder, name), verdict)
            except Exception as error:
                verdict(False, f"{name}: what was measured can be read: {type(error).__name__}: {error}")
    if not found:
        print("nothing was measured yet")
        return 1
    return 1 if verdict.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
