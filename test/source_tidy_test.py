#!/usr/bin/env python3
"""Reads the sources and enforces the rules that no compiler checks.

Prints one `path:line: message` per breach and exits with status 1 if there is any. Each rule is a
function from a source tree (path -> text) to breaches, so that source_tidy_self_test.py can feed
each a small tree that breaks it.
"""

import os
import pathlib
import re
import subprocess
import sys
from typing import Iterable, NamedTuple

# A module includes only itself and modules of lower rank.
RANKS = {
    "sim/base": 0,
    "schedules": 1,
    "topology": 1,
    "sim/engine": 1,
    "sim/reliability": 1,
    "sim/model": 1,
    "sim/parallel": 2,
    "sim/compute": 2,
    "sim/network": 3,
    "sim/program": 4,
    "sim/runtime": 5,
    "sim/metrics": 5,
    "sim/scenario": 6,
    "sim/report": 6,
    "sim/simulate": 7,
    "tools": 8,
}
MAX_COLUMNS = 100
MAX_FILE_LINES = 600
LONG_FUNCTION_LINES = 75
MAX_FUNCTION_LINES = 90

# Modules whose results reach a reader: an order that depends on hashing must not get there.
OUTPUT_MODULES = {"sim/metrics", "sim/report", "sim/simulate", "tools"}
# Modules none of whose numbers feed simulated time; the others avoid functions of libm that are
# not correctly rounded, so that all machines agree bit for bit.
MODULES_AFTER_TIME = {"sim/metrics", "sim/report", "tools"}


class Breach(NamedTuple):
    path: str
    line: int
    message: str
    fails: bool = True

    def __str__(self):
        note = "" if self.fails else "note: "
        return f"{self.path}:{self.line}: {note}{self.message}"


class Source:
    """A file, and for C++ its text with comments, and with comments and literals, blanked out.

    Blanking keeps every newline, so that line numbers stay true.
    """

    def __init__(self, path: str, text: str):
        self.path = path
        self.text = text
        self.is_cpp = path.endswith((".h", ".cc"))
        self.module = module_of(path)
        if self.is_cpp:
            self.without_comments = blank(text, literals=False)
            self.code = blank(text, literals=True)


def module_of(path: str):
    """The module that holds `path`, or None (tests, benchmarks and the rest)."""
    for module in RANKS:
        if path.startswith(module + "/"):
            return module
    return None


TOKENS = re.compile(
    r'//(?:\\\n|[^\n])*'
    r'|/\*.*?\*/'
    r'|R"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)


def blank(text: str, literals: bool) -> str:
    def replace(match):
        token = match.group()
        if token.startswith("/"):
            return re.sub(r"[^\n]", " ", token)
        if not literals:
            return token
        quote = token[-1]
        return quote + re.sub(r"[^\n]", " ", token)[1:-1] + quote

    return TOKENS.sub(replace, text)


def line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def includes_point_downwards(sources: dict) -> Iterable[Breach]:
    for source in sources.values():
        if not source.is_cpp:
            continue
        for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', source.without_comments,
                                 re.MULTILINE):
            target, line = match.group(1), line_of(source.text, match.start())
            if source.module is None and f"{os.path.dirname(source.path)}/{target}" in sources:
                continue  # a test's helper beside it
            if target not in sources:
                yield Breach(source.path, line, f'"{target}" is not a file of the project; '
                             "paths are written from the top")
                continue
            if source.module is None:
                continue
            other = module_of(target)
            if other is None:
                yield Breach(source.path, line, f'a module must not include "{target}"')
            elif other != source.module and RANKS[other] >= RANKS[source.module]:
                yield Breach(source.path, line,
                             f"{source.module} has rank {RANKS[source.module]} and must not "
                             f"include {other}, which has rank {RANKS[other]}")


def headers_have_pragma_once(sources: dict) -> Iterable[Breach]:
    for source in sources.values():
        if source.path.endswith(".h") and "#pragma once" not in source.text:
            yield Breach(source.path, 1, "a header needs #pragma once")


def lines_fit(sources: dict) -> Iterable[Breach]:
    for source in sources.values():
        script = source.path.endswith(".py") or source.text.startswith("#!")
        if not (source.is_cpp or script):
            continue
        for number, line in enumerate(source.text.splitlines(), 1):
            if len(line) > MAX_COLUMNS:
                yield Breach(source.path, number, f"{len(line)} columns, more than {MAX_COLUMNS}")


def files_are_short(sources: dict) -> Iterable[Breach]:
    for source in sources.values():
        lines = source.text.count("\n")
        if source.is_cpp and lines > MAX_FILE_LINES:
            yield Breach(source.path, 1, f"{lines} lines, more than {MAX_FILE_LINES}; split it")


class Ban(NamedTuple):
    pattern: str
    message: str
    applies: object = lambda source: True  # Source -> bool


BANS = [
    Ban(r"\bassert\s*\(", "no assert: QUADRILLE_CHECK is on in every build"),
    Ban(r"\b(?:_?exit|_Exit|quick_exit)\s*\(", "only main ends the process: return a Result",
        lambda source: source.path != "tools/main.cc"),
    Ban(r"\b(?:s?rand|[delmn]rand48)\s*\(|\brandom_device\b",
        "randomness is a hash of seed and purpose: sim/base/counter_rng.h"),
    Ban(r"#\s*include\s*<random>",
        "randomness is a hash of seed and purpose: sim/base/counter_rng.h",
        lambda source: source.module is not None),
    Ban(r"\bunordered_(?:multi)?(?:map|set)\b",
        "hash order must not reach output: use std::map, std::set or a sorted vector",
        lambda source: source.module in OUTPUT_MODULES),
    Ban(r"#\s*include\s*<iostream>", "a library writes to no global stream: return text or log",
        lambda source: source.module not in (None, "tools")),
    Ban(r"#\s*include\s*<yaml-cpp/", "sim/scenario is the only user of yaml-cpp",
        lambda source: source.module not in (None, "sim/scenario")),
    Ban(r"\b(?:std::|(?<![\w.>:]))(?:exp|exp2|expm1|log|log2|log10|log1p|pow|sin|cos|tan|tanh|"
        r"sinh|cosh|atan|atan2|cbrt|erf|hypot|tgamma|lgamma)f?\s*\(",
        "libm differs between machines and this may feed simulated time: use sqrt, rational "
        "forms, or std::bit_width for the log of an integer",
        lambda source: source.module is not None and source.module not in MODULES_AFTER_TIME),
]


def banned_words_are_absent(sources: dict) -> Iterable[Breach]:
    for source in sources.values():
        if not source.is_cpp:
            continue
        for ban in BANS:
            if not ban.applies(source):
                continue
            for match in re.finditer(ban.pattern, source.code):
                yield Breach(source.path, line_of(source.code, match.start()), ban.message)


CONSTANT = r"(?![^=({;]*\b(?:const|constexpr|consteval)\b)"
LOCAL_STATIC = re.compile(r"\b(?:static|thread_local)\b" + CONSTANT)
GLOBAL_STATICS = [
    # static or thread_local in a class or namespace, declaring an object: no ( before = ; or {
    re.compile(r"^[ \t]*(?:inline[ \t]+)?(?:static|thread_local)\b" + CONSTANT +
               r"[^=({;]*?\w[ \t]*(?:\[[^\]]*\][ \t]*)*(?:[=;{])", re.MULTILINE),
    # an object at namespace scope, which this code base does not indent
    re.compile(r"^(?!(?:using|typedef|return|namespace|class|struct|enum|union|template|friend|"
               r"extern|static|case|default|public|private|protected|else|goto)\b)" + CONSTANT +
               r"(?:inline[ \t]+)?[A-Za-z_][\w:]*(?:<[^;=(){}]*>)?[ \t&*]+\w+[ \t]*"
               r"(?:\[[^\]]*\][ \t]*)*(?:=[^=]|;|\{)", re.MULTILINE),
]


def there_is_no_global_state(sources: dict) -> Iterable[Breach]:
    for source in sources.values():
        if not source.is_cpp or source.module is None:
            continue
        offsets = {match.start() for pattern in GLOBAL_STATICS
                   for match in pattern.finditer(source.code)}
        for function in functions(source):
            offsets |= {match.start() for match in
                        LOCAL_STATIC.finditer(source.code, function.opens, function.closes)}
        for line in sorted({line_of(source.code, skip_space(source.code, offset))
                            for offset in offsets}):
            yield Breach(source.path, line,
                         "all mutable state lives in a run: no mutable static or global")


UNFINISHED = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")


def nothing_is_left_for_later(sources: dict) -> Iterable[Breach]:
    for source in sources.values():
        for match in UNFINISHED.finditer(source.text):
            yield Breach(source.path, line_of(source.text, match.start()),
                         f"{match.group()}: do it or file it")


# A path of somebody's machine, but not one inside a longer path (owner/repository/work/...).
MACHINE_PATHS = re.compile(r"(?<![\w.})\]*-])/(?:work|tmp|root|home|Users)/[\w.]")
REGISTRY_HOSTS = re.compile(
    r"\b(?:(?:deb|security)\.debian\.org|registry\.npmjs\.org|registry\.yarnpkg\.com|pypi\.org|"
    r"files\.pythonhosted\.org|crates\.io|proxy\.golang\.org|repo1?\.maven\.(?:apache\.)?org)\b")


def nothing_names_a_machine(sources: dict) -> Iterable[Breach]:
    for source in sources.values():
        for match in MACHINE_PATHS.finditer(source.text):
            yield Breach(source.path, line_of(source.text, match.start()),
                         "a path that exists on one machine only")
        for match in REGISTRY_HOSTS.finditer(source.text):
            yield Breach(source.path, line_of(source.text, match.start()),
                         "packages come from where the machine is set up to get them")


def modules_have_readmes(sources: dict) -> Iterable[Breach]:
    used = {source.module for source in sources.values() if source.is_cpp and source.module}
    for module in sorted(used):
        readme = sources.get(f"{module}/README.md")
        if readme is None:
            yield Breach(f"{module}/README.md", 1, "every module says what it is for; missing")
        elif len(readme.text.split()) < 40:
            yield Breach(readme.path, 1, "says too little: purpose, main types, how to add one")


class Function(NamedTuple):
    """Offsets of a function's first character, its opening and its closing brace."""

    starts: int
    opens: int
    closes: int


def skip_space(text: str, offset: int) -> int:
    """The offset of the first declaration at or after `offset`."""
    return re.compile(r"(?:\s|\b(?:public|private|protected)\s*:)*").match(text, offset).end()


NOT_A_FUNCTION = re.compile(
    r"(?:inline\s+)?(?:namespace|enum|union)\b"
    r"|(?:template\s*<.*>\s*)?(?:class|struct)\b"
    r"|.*(?<![=!<>+*/&|^-])=\s*(?:[\w:<>, ]+)?$",  # an initialiser
    re.DOTALL)


def functions(source: Source) -> Iterable[Function]:
    """The outermost function bodies.

    A brace opens one if, outside any other, what stands between the last ; { or } and it has a
    parameter list and is neither a type nor a namespace nor an initialiser.
    """
    code = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", lambda match: re.sub(r"[^\n]", " ", match.group()),
                  source.code, flags=re.MULTILINE)
    opened = []  # per open brace: where its function starts and opens, or None
    depth = 0  # of functions: 0 or more
    head = 0  # just after the last ; { or }
    parentheses = 0
    for match in re.finditer(r"[(){};]", code):
        character, offset = match.group(), match.start()
        if character in "()":
            parentheses += 1 if character == "(" else -1
            continue
        if parentheses and not depth:
            continue  # a default argument
        if character == "{":
            text = code[head:offset].strip()
            is_function = not depth and "(" in text and not NOT_A_FUNCTION.match(text)
            opened.append((skip_space(code, head), offset) if is_function else None)
            depth += is_function
        elif character == "}" and opened:
            function = opened.pop()
            if function:
                depth -= 1
                yield Function(*function, offset)
        head = offset + 1


def functions_are_short(sources: dict) -> Iterable[Breach]:
    for source in sources.values():
        if not source.is_cpp:
            continue
        for function in functions(source):
            first = line_of(source.code, function.starts)
            lines = line_of(source.code, function.closes) - first + 1
            if lines > MAX_FUNCTION_LINES:
                yield Breach(source.path, first,
                             f"a function of {lines} lines, more than {MAX_FUNCTION_LINES}")
            elif lines > LONG_FUNCTION_LINES:
                yield Breach(source.path, first, f"a function of {lines} lines is long",
                             fails=False)


RULES = [
    includes_point_downwards,
    headers_have_pragma_once,
    lines_fit,
    files_are_short,
    banned_words_are_absent,
    there_is_no_global_state,
    nothing_is_left_for_later,
    nothing_names_a_machine,
    modules_have_readmes,
    functions_are_short,
]


def read_tree(top: pathlib.Path) -> dict:
    """All text files of the project: those that git tracks, or without git all but output."""
    try:
        names = subprocess.run(["git", "-C", str(top), "ls-files", "-z"], check=True,
                               capture_output=True, text=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        names = []
        for folder, folders, files in os.walk(top):
            folders[:] = [name for name in folders if name not in (".git", "build", "out")]
            names += [str(pathlib.Path(folder, name).relative_to(top)) for name in files]
    sources = {}
    for name in sorted(filter(None, names)):
        try:
            sources[name] = Source(name, (top / name).read_text(encoding="utf-8"))
        except (UnicodeDecodeError, FileNotFoundError):
            pass  # a picture; or a file that is tracked and was just removed
    return sources


def breaches_of(sources: dict) -> list:
    return [breach for rule in RULES for breach in rule(sources)]


def main() -> int:
    top = pathlib.Path(__file__).resolve().parent.parent
    sources = read_tree(top)
    if not any(source.is_cpp for source in sources.values()):
        print(f"no sources found under {top}")
        return 1
    breaches = breaches_of(sources)
    for breach in breaches:
        print(breach)
    failures = sum(breach.fails for breach in breaches)
    print(f"{len(sources)} files read, {failures} breaches")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
