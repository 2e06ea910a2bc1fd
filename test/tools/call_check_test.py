#!/usr/bin/env python3
"""Calls that make no sense are refused or warned of, and never done in part without a word.

    call_check_test.py path/to/quadrille
"""

import csv
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BINARY = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "build/release/quadrille"
RUN = """model: llama3-8b
cluster: dgx-h100-superpod
parallel: {tensor: 2, pipeline: 4, data: 1}
schedule: {name: 1f1b}
training: {sequence_length: 4096, global_batch: 8}
"""
ORDER = ["--pp", "2", "--microbatches", "2"]


class CallTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.run_file = self.write("run.yaml", RUN)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    def call(self, *arguments, stdout=subprocess.PIPE, cwd=None):
        return subprocess.run([BINARY, *map(str, arguments)], stdout=stdout,
                              stderr=subprocess.PIPE, text=True, check=False, timeout=60,
                              env={**os.environ, "NO_COLOR": "1"}, cwd=cwd or self.folder)

    def exits(self, status, *arguments, says=(), **more):
        done = self.call(*arguments, **more)
        self.assertEqual(done.returncode, status, f"{arguments}\n{done.stderr}")
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(text, done.stderr, arguments)
        return done


class IdleOptions(CallTest):
    def test_options_of_replay_that_would_do_nothing_are_refused_all_at_once(self):
        trace = ["--trace", "t.json"]
        for option in (["--timeline", "--format", "json"], ["--timeline", "--format", "csv"],
                       ["--threads", "2"], [*trace, "--trace-exact"],
                       [*trace, "--trace-layout", "kineto", "--trace-level", "action"],
                       [*trace, "--trace-layout", "kineto", "--trace-microbatches", "1,1"],
                       [*trace, "--trace-level", "kernel", "--trace-microbatches", "1,1"]):
            done = self.exits(2, "replay", self.run_file, *option, says=": no effect with")
            self.assertEqual(done.stdout, "")
        for option in ("--trace-exact", "--trace-ranks=0", "--trace-level=kernel"):
            self.exits(2, "replay", self.run_file, option, says="requires --trace")
        both = self.exits(2, "replay", self.run_file, "--threads", 2, "--timeline", "--format",
                          "csv")
        self.assertEqual(both.stderr.count("no effect"), 2)
        self.assertEqual(sorted(os.listdir(self.folder)), ["run.yaml"])

    def test_the_same_options_work_where_they_do_something(self):
        self.exits(0, "replay", self.run_file, "--trace", "t", "--trace-layout", "kineto",
                   "--trace-exact", "--trace-level", "kernel")
        self.exits(0, "replay", self.run_file, "--timeline", "--format", "table")

    def test_options_of_schedules_that_would_do_nothing_are_refused(self):
        order = self.write("order.txt",
                           self.call("schedules", "print", "1f1b", *ORDER, "--header").stdout)
        self.exits(2, "schedules", "print", "1f1b", *ORDER, "--header", "--timeline",
                   says="--header: no effect with --timeline")
        self.exits(2, "schedules", "check", order, "--format", "json", "--timeline",
                   says="--timeline: no effect with --format json")
        done = self.exits(2, "schedules", "draw", "--file", order, "--pp", 3, "--vp", 2)
        self.assertEqual(done.stderr.count("no effect with --file"), 2)
        self.exits(2, "schedules", "draw", "--file", order, "--timeline", "-o", "x.svg",
                   says="--output: no effect with --timeline")

    def test_costs_that_change_nothing_are_warned_of(self):
        plain = self.call("schedules", "print", "1f1b", *ORDER)
        done = self.exits(0, "schedules", "print", "1f1b", *ORDER, "--costs", "F=2", "--latency", 1)
        self.assertEqual(done.stdout, plain.stdout)
        for option in ("--costs", "--latency"):
            self.assertIn(f"warning: {option}: no effect on the order of 1f1b", done.stderr)
        for arguments in (["zb-auto", *ORDER, "--costs", "F=2"],
                          ["1f1b", *ORDER, "--timeline", "--costs", "F=2"]):
            self.assertEqual(self.exits(0, "schedules", "print", *arguments).stderr, "")
        self.exits(0, "schedules", "draw", "1f1b", *ORDER, "--pair", 2,
                   says="warning: --pair: no effect on an order without fused pairs")

    def test_steps_that_are_all_alike_are_warned_of(self):
        self.exits(0, "replay", self.run_file, "--steps", 2, says="warning: --steps: ")
        jitter = "perturbations=[{kind: kernel_jitter, sigma: 1 %}]"
        self.assertEqual(
            self.exits(0, "replay", self.run_file, "--steps", 2, "--set", jitter).stderr, "")

    def test_a_file_name_of_another_format_is_warned_of(self):
        for arguments in (["replay", self.run_file, "--json", "x.html"],
                          ["replay", self.run_file, "--html", "x.json"],
                          ["replay", self.run_file, "--trace", "x.csv"],
                          ["compare", self.run_file, "--schedules", "1f1b", "--format", "csv",
                           "-o", "x.html"],
                          ["schedules", "draw", "1f1b", *ORDER, "-o", "x.json"],
                          ["topology", self.run_file, "--dot", "x.svg"]):
            self.exits(0, *arguments, says="warning: --")
        for arguments in (["replay", self.run_file, "--json", "x.json", "--trace", "x.json.gz"],
                          ["compare", self.run_file, "--schedules", "1f1b", "-o", "x.txt"]):
            self.assertEqual(self.exits(0, *arguments).stderr, "")

    def test_rows_that_are_not_there_are_not_validated_nor_fitted_to(self):
        steps = self.write("steps.csv", "id,seq_len,gpu,gpus,layers,hidden,heads,vocab,mbs,gbs,"
                           "iter_time_s\nA-1,2048,A100,8,24,2048,16,50257,1,8,1.0\n")
        for command in (["validate", "steps"], ["calibrate"]):
            self.exits(2, *command, steps, "--only", "B-,C-",
                       says="--only B-,C-: no id of the file")

    def test_seeds_and_options_are_not_guessed(self):
        for seed in ("-1", "18446744073709551616", "1.5", ""):
            self.exits(2, "replay", self.run_file, f"--shuffle-ties={seed}")
        self.exits(2, "replay", self.run_file, "--shuffel-ties", 1,
                   says=["did you mean '--shuffle-ties'?", "'quadrille replay --help'"])
        self.exits(2, "schedules", "prnt", "1f1b", says="did you mean 'print'?")


class Texts(CallTest):
    def test_a_run_of_few_tokens_is_told_as_what_it_is(self):
        done = self.exits(0, "replay", self.run_file, "--run-tokens", 5)
        self.assertIn("A run of 5 tokens", done.stdout)
        self.assertIn("of 32,768 tokens, more than the run asks for", done.stdout)
        self.assertNotIn("e-", done.stdout[done.stdout.index("A run of 5"):][:200])
        done = self.exits(0, "replay", self.run_file, "--run-tokens", "15.6T")
        self.assertIn("A run of 15.6 T tokens", done.stdout)
        rows = list(csv.reader(io.StringIO(self.call(
            "replay", self.run_file, "--run-tokens", "1T", "--format", "csv").stdout)))
        self.assertIn(["whole_run", "tokens", "", "1000000000000", "count"], rows)

    def test_strict_says_why(self):
        self.exits(1, "replay", self.run_file, "--strict", "--set",
                   "training.sequence_length=524288",
                   says="--strict: out of memory: the peak of ")

    def test_an_order_file_of_the_command_line_is_beside_the_call(self):
        text = self.call("schedules", "print", "gpipe", "--pp", 4, "--microbatches", 8,
                         "--header").stdout
        here = self.write("here/order.txt", text)
        folder = os.path.dirname(here)
        override = ["--set", "schedule.order_file=order.txt", "--set", "schedule.name="]
        self.exits(0, "replay", self.run_file, *override, cwd=folder)
        self.exits(3, "replay", self.run_file, *override,
                   says="command line: schedule.order_file: order.txt: no such file")
        beside = self.write("here/run.yaml",
                            RUN.replace("{name: 1f1b}", "{order_file: order.txt}"))
        self.exits(0, "replay", beside)
        self.exits(2, "replay", self.run_file, *override, "--set", "training.precison=bf16")

    def test_a_description_that_is_not_there_is_3_by_path_and_2_by_name(self):
        self.exits(3, "replay", self.run_file, "--set", "model={huggingface: none.json}",
                   says="command line: model.huggingface: none.json: no such file")
        self.exits(3, "replay", self.run_file, "--set", "include=none.yaml")
        self.exits(2, "replay", self.run_file, "--set", "model=none")

    def test_a_deadlock_stands_at_the_schedule(self):
        blocked = self.write("blocked.yaml", RUN.replace("1f1b", "zb-h1") +
                             "overlap: {p2p: blocking}\n")
        self.exits(1, "replay", blocked, says="blocked.yaml:4:1: zb-h1 under overlap.p2p")

    def test_a_share_of_nothing_is_one_problem(self):
        done = self.exits(2, "replay", self.run_file, "--set",
                          "perturbations=[{kind: background_traffic, share: 0, links: [a -> b]}]")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


class Comparisons(CallTest):
    def differing(self, *files):
        report = json.loads(self.exits(0, "compare", *files, "--format", "json").stdout)
        labels = [run["label"] for run in report["runs"]]
        return {key["key"]: dict(zip(labels, key["values"])) for key in report["differing_keys"]}

    def test_what_differs_is_told_once_in_the_words_of_the_run_files(self):
        other = self.write("other.yaml", RUN.replace("data: 1", "data: 2").replace(
            "global_batch: 8", "global_batch: 16") + "overlap: {tensor_parallel: "
                           "userbuffers-h100-405b, p2p: blocking}\nseed: 1\n")
        self.assertEqual(self.differing(self.run_file, other), {
            "parallel.data": {"run": "1", "other": "2"},
            "training.global_batch": {"run": "8", "other": "16"},
            "overlap.tensor_parallel": {"run": "none", "other": "userbuffers-h100-405b"}})

    def test_a_model_is_its_name_and_what_the_run_changes_of_it(self):
        larger = self.write("larger.yaml", RUN.replace("llama3-8b", "llama3-70b"))
        self.assertEqual(self.differing(self.run_file, larger),
                         {"model": {"run": "llama3-8b", "larger": "llama3-70b"}})
        short = self.write("short.yaml", RUN.replace(
            "model: llama3-8b", "model: {base: llama3-8b, layers: 16}"))
        self.assertEqual(self.differing(self.run_file, short),
                         {"model.layers": {"run": "32", "short": "16"}})

    def test_warnings_of_no_effect_come_from_every_command_that_simulates(self):
        late = ["--set", "perturbations=[{kind: gpu_speed, factor: 0.9, from: 100 s}]"]
        for command in (["replay"], ["compare"], ["sensitivity"]):
            arguments = [*command, self.run_file, *late]
            if command == ["compare"]:
                arguments += ["--schedules", "1f1b,gpipe"]
            self.exits(0, *arguments, says="perturbations.0 has no effect")

    def test_refused_schedules_give_the_message_without_the_place(self):
        report = json.loads(self.exits(0, "compare", self.run_file, "--schedules", "1f1b,zb-h1",
                                       "--set", "overlap.p2p=blocking", "--format", "json").stdout)
        self.assertEqual([r["schedule"] for r in report["refused"]], ["zb-h1"])
        self.assertTrue(report["refused"][0]["reason"].startswith("zb-h1 under overlap.p2p"))


class Formats(CallTest):
    def commands(self):
        order = self.write("order.txt",
                           self.call("schedules", "print", "1f1b", *ORDER, "--header").stdout)
        kernels = self.write("kernels.csv", "gpu,dtype,m,n,k,time_us\n"
                             "H100-SXM,bfloat16,4096,4096,4096,250\n")
        collectives = self.write("collectives.csv",
                                 "system,gpus,nodes,collective,bytes,time_us\n"
                                 "DGX H100,8,1,all_reduce,1048576,50\n")
        long = self.write("long.yaml", RUN + "reliability: {failures: llama3-405b, duration: 2 d, "
                          "checkpoint: {interval: 1 h, cost: 1 min}, "
                          "detection: 1 min, restart: 5 min}\n")
        return {
            "replay": ["replay", self.run_file, "--run-tokens", "1T"],
            "compare": ["compare", self.run_file, "--schedules", "1f1b,gpipe,hanayo:waves=64"],
            "sweep": ["sweep", self.run_file, "--vary", "parallel.tensor=2,3"],
            "search": ["search", self.run_file, "--tensor", "2", "--pipeline", "4",
                       "--micro-batch", "1", "--virtual-stages", "1"],
            "sensitivity": ["sensitivity", self.run_file],
            "goodput": ["goodput", long, "--runs", "2"],
            "schedules list": ["schedules", "list"],
            "schedules check": ["schedules", "check", order],
            "validate kernels": ["validate", "kernels", kernels],
            "validate collectives": ["validate", "collectives", collectives],
        }

    def test_csv_is_one_table_under_one_line_of_titles(self):
        for name, arguments in self.commands().items():
            text = self.exits(0, *arguments, "--format", "csv").stdout
            rows = list(csv.reader(io.StringIO(text), strict=True))
            self.assertGreater(len(rows), 1, name)
            self.assertEqual({len(row) for row in rows}, {len(rows[0])}, name)
            self.assertEqual(len(set(rows[0])), len(rows[0]), name)
            self.assertTrue(all(title == title.strip() and title for title in rows[0]), name)
            if rows[0][0] == "table":
                self.assertEqual(rows[0], ["table", "row", "column", "value", "unit"])
                keys = [tuple(row[:3]) for row in rows[1:]]
                self.assertEqual(len(set(keys)), len(keys), name)

    def test_json_parses_and_says_its_version(self):
        for name, arguments in self.commands().items():
            report = json.loads(self.exits(0, *arguments, "--format", "json").stdout)
            if name != "schedules list":
                self.assertEqual(report["schema_version"], 1, name)
        self.assertIn("accounts", json.loads(
            self.exits(0, "plan", self.run_file, "--format", "json").stdout))


class DroppedTokens(CallTest):
    def test_mfu_counts_them_and_the_waterfall_says_so(self):
        run = self.write("moe.yaml", """model: mixtral-8x7b
cluster: dgx-h100-superpod
parallel: {tensor: 1, pipeline: 4, expert: 8, data: 8}
schedule: {name: 1f1b}
training: {sequence_length: 4096, global_batch: 64}
experts: {capacity_factor: 0.5}
""")
        report = json.loads(self.exits(0, "replay", run, "--format", "json").stdout)
        dropped = report["mfu_of_dropped_tokens"]
        shares = {step["cause"]: step["share_of_peak"] for step in report["waterfall"]}
        achieved = next(value for cause, value in shares.items() if cause.startswith("achieved"))
        self.assertGreater(dropped, 0.1 * report["mfu"]["causal"])
        self.assertAlmostEqual(achieved, report["mfu"]["causal"] - dropped, places=12)
        self.assertGreater(report["mfu"]["causal"], report["hfu"])
        self.assertGreater(shares["recomputation and masked work"], 0)
        self.assertAlmostEqual(sum(shares.values()), 1, places=9)
        self.assertIn("dropped tokens", self.call("replay", run).stdout)
        whole = json.loads(self.call("replay", run, "--format", "json", "--set",
                                     "experts.capacity_factor=").stdout)
        self.assertEqual(whole["mfu_of_dropped_tokens"], 0)
        self.assertLess(whole["mfu"]["causal"], whole["hfu"])


if __name__ == "__main__":
    unittest.main()
