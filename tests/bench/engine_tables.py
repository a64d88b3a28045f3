"""The Markdown tables of tests/bench/engine. A cell is a median over the repetitions, with least and largest."""
import math
import os
import statistics
import subprocess


def cell(values, digits=2):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def speed(values):
    """Images a second: three or four digits that count."""
    return cell(values, 0 if statistics.median(values) >= 200 else 1)


def share(values):
    return f"{100 * statistics.median(values):.0f} %"


def ratios(above, below):
    """Of each repetition."""
    return [a / b for a, b in zip(above, below)]


def geometric_means(columns):
    """Of the networks, in each repetition. @param columns each network's ratios, one a repetition"""
    return [math.exp(statistics.mean(map(math.log, row))) for row in zip(*columns)]


def print_table(heads, rows):
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")


def print_machine(root, repetitions, loads, versions):
    def git(*words):
        try:
            return subprocess.run(("git", *words), cwd=root, capture_output=True, text=True).stdout.strip()
        except OSError:  # none, or a folder of PATH that may not be searched
            return ""

    with open("/proc/cpuinfo") as lines:
        fields = dict(line.split(":", 1) for line in lines if ":" in line)
    model = next((v.strip() for k, v in fields.items() if k.strip() == "model name"), os.uname().machine)
    bf16 = "with" if "avx512_bf16" in str(fields) else "without"
    changed = " and changes" if git("status", "--porcelain", "--untracked-files=no") else ""
    print(f"{model}, {len(os.sched_getaffinity(0))} cores, {bf16} avx512_bf16; load average {loads[0]:.1f} before "
          f"and {loads[1]:.1f} after; commit {git('rev-parse', '--short', 'HEAD') or 'unknown'}{changed}; "
          f"{', '.join(versions)}. {repetitions} repetitions: median (least to largest).\n")


def print_geometric_means(what, rows, key):
    for threads in dict.fromkeys(row["threads"] for row in rows):
        columns = [row[key] for row in rows if row["threads"] == threads and row[key]]
        if columns:
            networks = "network" if len(columns) == 1 else "networks"
            print(f"- {what}, threads {threads}, geometric mean of {len(columns)} {networks}: "
                  f"{cell(geometric_means(columns))}")


def print_against_torch(precision, rows):
    """@param rows network, threads, bpt, fp32 (bpt's, with bf16), torch (by mode), best, ratio, gain: see engine"""
    print(f"### {precision} against PyTorch\n")
    heads = ["network", "batch", "threads", f"bpt {precision} images/s", f"PyTorch {precision} images/s", "its best",
             "bpt / PyTorch"]
    if precision != "fp32":
        heads += ["bpt fp32 images/s", f"bpt {precision} / bpt fp32"]
    lines = []
    for row in rows:
        best = row["torch"].get(row["best"])
        line = [row["network"], row["batch"], row["threads"], speed(row["bpt"]), speed(best) if best else "n/a",
                row["best"] or "none", cell(row["ratio"]) if best else "n/a"]
        lines.append(line + ([speed(row["fp32"]), cell(row["gain"])] if precision != "fp32" else []))
    print_table(heads, lines)
    print()
    print_geometric_means("bpt / PyTorch", rows, "ratio")
    print_geometric_means(f"bpt {precision} / bpt fp32", rows, "gain")
    print("\nPyTorch, images/s of each mode:\n")
    modes = list(dict.fromkeys(mode for row in rows for mode in [*row["torch"], *row["failed"]]))
    print_table(["network", "threads", *modes],
                [[row["network"], row["threads"], *(speed(row["torch"][m]) if m in row["torch"] else "n/a"
                                                    for m in modes)] for row in rows])
    for row in rows:
        for mode, why in row["failed"].items():
            print(f"\n{row['network']}, threads {row['threads']}, {mode}: {why}")
    print()


def torch_step_ms(row, compared):
    """Of PyTorch's best mode in the row of @p compared that is of the same case."""
    for other in compared:
        if other["best"] and all(other[key] == row[key] for key in ("network", "threads", "precision")):
            return cell([1e3 * other["batch"] / per_s for per_s in other["torch"][other["best"]]], 1)
    return "n/a"


def print_splits(rows, compared):
    """@param rows network, threads, precision, splits: of engine_bpt.split(), one a repetition
    @param compared of print_against_torch(), may be empty"""
    print("### What bpt's step spends its time on\n")
    print("Shares are of what the threads have. Primitives: oneDNN's own time, over the number of threads.\n")
    shares = {"convolution": "oneDNN convolution", "matmul": "oneDNN matmul", "other": "oneDNN, other",
              "own": "bpt's own loops", "idle": "idle"}
    lines = []
    for row in rows:
        splits = row["splits"]
        kinds = {kind: [s["kinds"].get(kind, 0) for s in splits] for kind in splits[0]["kinds"]}
        largest = sorted(kinds, key=lambda kind: -statistics.median(kinds[kind]))[:4]
        lines.append([row["network"], row["precision"], row["threads"],
                      cell([s["step_ms"] for s in splits], 1), cell([s["primitives_ms"] for s in splits], 1),
                      torch_step_ms(row, compared),
                      *(share([s["shares"][key] for s in splits]) for key in shares),
                      ", ".join(f"{kind} {share(kinds[kind])}" for kind in largest)])
    print_table(["network", "precision", "threads", "step ms", "primitives ms", "PyTorch step ms", *shares.values(),
                 "largest kinds of task"], lines)
    print()


def print_scaling(rows):
    """@param rows network, threads, one, all (images/s), scaling, conv (scaling of the convolution)"""
    print("### Threads over one thread\n")
    print_table(["network", "threads", "1 thread, images/s", "all, images/s", "all / 1", "oneDNN convolution, all / 1",
                 "step over convolution"],
                [[row["network"], row["threads"], speed(row["one"]), speed(row["all"]), cell(row["scaling"]),
                  cell(row["conv"]), cell(ratios(row["scaling"], row["conv"]))] for row in rows])
    print()
    print_geometric_means("all / 1", rows, "scaling")
    print_geometric_means("oneDNN convolution, all / 1", rows, "conv")
    print()
