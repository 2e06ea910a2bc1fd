#!/usr/bin/env python3
"""Shows that each rule of check_trace.py can fail."""

import copy
import unittest

import check_trace


def slice_event(begin, duration, tid=1):
    return {"ph": "X", "name": "F 0", "pid": 1, "tid": tid, "ts": begin, "dur": duration}


def flow(phase, at, **more):
    return {"ph": phase, "id": 1, "cat": "p2p", "name": "a", "pid": 1, "tid": 1, "ts": at, **more}


GOOD = [slice_event(0, 10), slice_event(2, 3), slice_event(10, 5), slice_event(1, 20, tid=2),
        flow("s", 9.999), flow("f", 10, bp="e")]


class CheckTraceTest(unittest.TestCase):
    def found(self, events):
        return list(check_trace.breaches({"traceEvents": events}))

    def test_nested_and_adjacent_slices_are_fine(self):
        self.assertEqual(self.found(GOOD), [])

    def test_each_breach_is_found(self):
        def change(index, **keys):
            events = copy.deepcopy(GOOD)
            events[index].update(keys)
            return events

        cases = {
            "overlap partially": GOOD + [slice_event(8, 4)],
            "at least 1": change(0, tid=0),
            "negative duration": change(2, dur=-1),
            "added as doubles": GOOD + [slice_event(188363.921, 9163.795, tid=4)],
            "has the ends": GOOD[:-1],
            "without bp e": change(5, bp="x"),
            "back in time": change(4, ts=12),
            "binds to no slice": change(4, ts=-1),
            "E without a B": GOOD + [{"ph": "E", "pid": 1, "tid": 1, "ts": 1}],
            "B without an E": GOOD + [{"ph": "B", "pid": 1, "tid": 3, "ts": 1}],
        }
        for words, events in cases.items():
            with self.subTest(words):
                self.assertTrue(any(words in breach for breach in self.found(events)))


if __name__ == "__main__":
    unittest.main()
