#!/usr/bin/env python3
"""Checks Chrome traces (plain or gzip) against the rules that viewers impose.

Usage: check_trace.py FILE...   Prints one line per breach; status 1 if there is any.
"""

import collections
import gzip
import json
import sys


def load(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        return json.load(file, parse_constant=reject)


def reject(constant):
    raise ValueError(f"{constant} is not JSON")


def nanoseconds(event, key):
    return round(event[key] * 1000)


def breaches(trace):
    """Yields every breach in words."""
    slices = collections.defaultdict(list)
    open_begins = collections.defaultdict(list)
    flows = collections.defaultdict(list)
    for event in trace["traceEvents"]:
        where = event["pid"], event.get("tid", 1)
        if min(where) < 1:
            yield f"pid and tid must be at least 1: {event}"
        if event["ph"] == "X":
            begin = nanoseconds(event, "ts")
            slices[where].append((begin, begin + nanoseconds(event, "dur")))
            if event["ts"] + event["dur"] > (begin + nanoseconds(event, "dur")) / 1000:
                yield f"ts + dur, added as doubles, is after the end: {event}"
        elif event["ph"] == "B":
            open_begins[where].append(event)
        elif event["ph"] == "E":
            if not open_begins[where]:
                yield f"an E without a B: {event}"
            else:
                begin = open_begins[where].pop()
                slices[where].append((nanoseconds(begin, "ts"), nanoseconds(event, "ts")))
        elif event["ph"] in "sf":
            flows[event["id"], event["cat"], event["name"]].append(event)
    for where, begins in open_begins.items():
        if begins:
            yield f"{len(begins)} B without an E on {where}"
    for where, spans in slices.items():
        yield from overlaps(where, spans)
    for key, ends in flows.items():
        yield from flow_breaches(key, ends, slices)


def overlaps(where, spans):
    open_ends = []
    for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if end < begin:
            yield f"a slice of negative duration at {begin} ns on {where}"
        while open_ends and open_ends[-1] <= begin:
            open_ends.pop()
        if open_ends and end > open_ends[-1]:
            yield f"slices overlap partially at {begin} ns on {where}"
        open_ends.append(end)


def flow_breaches(key, ends, slices):
    if sorted(end["ph"] for end in ends) != ["f", "s"]:
        yield f"flow {key} has the ends {[end['ph'] for end in ends]}"
        return
    start, finish = sorted(ends, key=lambda end: end["ph"], reverse=True)
    if finish.get("bp") != "e":
        yield f"flow {key} ends without bp e"
    if nanoseconds(start, "ts") > nanoseconds(finish, "ts"):
        yield f"flow {key} goes back in time"
    for end in ends:
        at = nanoseconds(end, "ts")
        if not any(begin <= at < stop for begin, stop in slices[end["pid"], end["tid"]]):
            yield f"flow {key} binds to no slice at {at} ns"


def main(paths):
    failed = False
    for path in paths:
        trace = load(path)
        found = list(breaches(trace))
        failed = failed or bool(found)
        for breach in found[:20]:
            print(f"{path}: {breach}")
        print(f"{path}: {len(trace['traceEvents'])} events, {len(found)} breaches")
    return 1 if failed or not paths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
