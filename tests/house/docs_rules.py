#!/usr/bin/env python3
"""Checks that README.md, docs/*.md and the manual pages say what is true of the tree and the programs:
  - every relative link leads to a file, and its anchor to a heading
  - every path of a source file named in `code` exists
  - every option that a bpt program is shown with is in its --help, and `--options` named in the text
    are some program's
  - a program's manual page has the options of its --help with their defaults, and no others

usage: docs_rules.py ROOT PROGRAMS     exit status: 0 all is true, 1 something is not (printed)
"""
import re
import subprocess
import sys
from pathlib import Path

FOLDERS = ("base", "scheduler", "storage", "inner", "outer", "tools", "tests", "docs")
PROGRAMS = {"bpt-train": (), "bpt-eval": (), "bpt-tune": (), "bpt-plan": (),
            "bpt-ingest": ("folder", "list", "webdataset", "caffe", "idx", "cifar", "glyphs", "info", "verify",
                           "montage", "merge", "split", "export")}
# Options of other programs that the documents speak of: mpirun, Slurm, cmake, tools/*.
FOREIGN = {"--bind-to", "--map-by", "--hostfile", "--oversubscribe", "--mca", "--prtemca", "--install", "--prefix",
           "--preset", "--no-setup", "--kill-on-bad-exit", "--signal", "--wait"}

problems = []


def broken(where, what):
    problems.append(f"{where}: {what}")


def ask_help(programs, *command):
    """@return {option: default or None} of one --help, with short options as keys too"""
    text = subprocess.run([programs / command[0], *command[1:], "--help"], check=True,
                          capture_output=True, text=True).stdout
    options, name = {}, None
    for line in text.splitlines():
        row = re.match(r"^ {2,6}(?:(-\w), )?(--[a-z][a-z0-9-]*)(?=\s|$)", line)
        if row:
            name = row[2]
            options[name] = None
            if row[1]:
                options[row[1]] = None
        default = re.search(r"\(default: (.*)\)$", line)
        if name and default:
            options[name] = default[1]
        if not line.strip():
            name = None
    return options


def known_options(programs):
    known = {}
    for program, commands in PROGRAMS.items():
        known[program] = ask_help(programs, program) if not commands else {"--help": None, "--version": None}
        for command in commands:
            known[program, command] = ask_help(programs, program, command)
            known[program].update(known[program, command])
    return known


def bench_options(root):
    """@return what the scripts of tests/bench say that they take, in the comment at their head"""
    scripts = [path for path in (root / "tests" / "bench").iterdir() if not path.suffix]
    heads = [path.read_text().split("\n\n")[:2] for path in scripts]
    return {option for head in heads for option in re.findall(r"--[a-z][a-z0-9-]*", "".join(head))}


# ---- documents ----


def heading_anchors(text):
    return {re.sub(r"[^\w -]", "", h.lower()).strip().replace(" ", "-")
            for h in re.findall(r"^#+ +(.*)$", text, re.M)}


def check_links(root, doc, text):
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = doc.parent / path if path else doc
        if not target.exists():
            broken(doc.relative_to(root), f"link to {link}: no such file")
        elif anchor and anchor not in heading_anchors(target.read_text()):
            broken(doc.relative_to(root), f"link to {link}: no such heading")


def check_paths(root, doc, text):
    for path in re.findall(r"`([^`\n]+)`", text):
        if re.fullmatch(rf"({'|'.join(FOLDERS)})/[\w./-]*", path) and not (root / path).exists():
            broken(doc.relative_to(root), f"`{path}`: no such file")


def check_command(where, command, known):
    """One command line: the options behind the name of a bpt program are that program's."""
    words = re.sub(r"\s#.*$", "", command).split()
    for i, word in enumerate(words):
        program = word.rsplit("/", 1)[-1]
        if program not in PROGRAMS:
            continue
        rest, key = words[i + 1:], program
        if PROGRAMS[program] and rest and not rest[0].startswith("-"):
            key = program, rest[0]
            if key not in known:
                broken(where, f"{program} has no command {rest[0]}")
                return
        for option in rest:
            if option in ("|", ">", "&&", ";"):
                return
            option = option.partition("=")[0].rstrip(",.:;)")
            if re.match(r"--?[a-z]", option) and option not in known[key]:
                broken(where, f"{program} has no option {option}: {command.strip()}")
        return


def check_options(root, doc, text, known):
    where = doc.relative_to(root)
    all_options = set().union(FOREIGN, bench_options(root), *known.values())
    blocks = re.findall(r"^```(?:sh)?\n(.*?)^```", text, re.M | re.S)
    for block in blocks:
        for command in block.replace("\\\n", " ").splitlines():
            check_command(where, command, known)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    for code in re.findall(r"`([^`\n]+)`", prose):
        if code.startswith("-"):
            option = code.split()[0].partition("=")[0]
            if re.match(r"--[a-z]", option) and option not in all_options:
                broken(where, f"`{option}`: no program has this option")
        else:
            check_command(where, code, known)


# ---- manual pages ----


def page_items(text):
    """@return {option: its item's text} of an mdoc page"""
    items = {}
    for item in re.split(r"^(?=\.It )", text, flags=re.M)[1:]:
        item = re.split(r"^\.(?:El|Sh|Ss)", item, flags=re.M)[0]
        for option in re.findall(r"\bFl (-?[a-z][a-z0-9-]*)", item.splitlines()[0]):
            items["-" + option] = item
    return items


def check_page(root, program, options):
    page = root / "docs" / "man" / f"{program}.1"
    where = page.relative_to(root)
    if not page.exists():
        broken(where, "missing")
        return
    text = page.read_text()
    items = page_items(text)
    for option, default in options.items():
        if option not in items:
            broken(where, f"{option} of --help is missing")
        elif default and f"\nDefault: {default}.\n" not in items[option]:
            broken(where, f"{option}: --help has the default {default}")
    for option in {"-" + o for o in re.findall(r"\bFl (-[a-z][a-z0-9-]*)", text)} - set(options):
        if option not in FOREIGN:
            broken(where, f"{option}: the program has no such option")


def main():
    root, programs = Path(sys.argv[1]), Path(sys.argv[2])
    known = known_options(programs)
    docs = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    for doc in docs:
        text = doc.read_text()
        check_links(root, doc, text)
        check_paths(root, doc, text)
        check_options(root, doc, text, known)
    for program in PROGRAMS:
        check_page(root, program, known[program])
    for problem in problems:
        print(problem)
    if problems:
        sys.exit(f"docs_rules: {len(problems)} found")
    print(f"docs_rules: {len(docs)} documents and {len(PROGRAMS)} manual pages are true")


if __name__ == "__main__":
    main()
