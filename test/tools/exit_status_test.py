#!/usr/bin/env python3
"""Calls the program as a script would and looks at how it ends: tools/README.md says what each
status means.

    exit_status_test.py QUADRILLE
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SMALL = """model: llama3-8b
cluster: dgx-h100-superpod
parallel: {tensor: 2, pipeline: 4, data: 1}
schedule: {name: NAME}
training: {sequence_length: 4096, global_batch: 8}
overlap: {p2p: SENDS}
"""
ENDLESS = """model: llama3-405b
cluster: dgx-h100-superpod
parallel: {tensor: 8, data: 1}
training: {sequence_length: 8192, global_batch: 2600, recompute: full}
perturbations: [{kind: link_latency, delay: 1 s}]
"""


class ExitStatusTest(unittest.TestCase):
    quadrille = None
    directory = None

    def call(self, *arguments):
        return subprocess.run([self.quadrille, *map(str, arguments)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False, timeout=60)

    def write(self, name, text):
        path = self.directory / name
        path.write_text(text)
        return path

    def run_file(self, schedule="1f1b", sends="posted-ahead"):
        return self.write("run.yaml", SMALL.replace("NAME", schedule).replace("SENDS", sends))

    def expect(self, status, *arguments):
        done = self.call(*arguments)
        self.assertEqual(done.returncode, status, f"{arguments}\n{done.stderr}")
        return done

    def test_0_is_done(self):
        self.assertEqual(self.expect(0, "replay", self.run_file()).stderr, "")

    def test_1_is_well_formed_and_cannot_run(self):
        refused = self.expect(1, "replay", self.run_file("zb-h1", "blocking"))
        self.assertIn("zb-h1 under overlap.p2p: blocking: deadlock with one blocking call per "
                      "message: rank 2 sends the output of F1.0 to rank 3, which sends the output "
                      "of I0.0 to rank 2", refused.stderr)
        self.assertIn("eager and posted-ahead sends run it", refused.stderr)
        order = self.write("order.txt", "# schedule=x P=2 M=2 v=1 placement=loop\n"
                           "F0.0 B0.0 F1.0 B1.0\nF1.0 F0.0 B0.0 B1.0\n")
        self.assertIn("deadlock", self.expect(1, "schedules", "check", order).stderr)

    def test_2_is_wrong_input(self):
        run = self.run_file()
        self.expect(2, "replay", run, "--set", "training.precisoin=bf16")
        self.expect(2, "replay", "no-such-run")
        self.expect(2, "replay", run, "--no-such-option")
        self.expect(2, "no-such-command")
        self.expect(2, "schedules", "check", "--costs", "F=-1", run)
        long = self.expect(2, "replay", self.write("endless.yaml", ENDLESS))
        self.assertIn("the step takes more than 13 days", long.stderr)

    def test_2_where_the_costs_of_a_sound_order_are_out_of_range(self):
        order = self.write("order.txt", "# schedule=x P=1 M=1 v=1 placement=loop\nF0.0 B0.0\n")
        self.expect(0, "schedules", "check", order)
        self.expect(2, "schedules", "check", order, "--costs", "F=1000000,B=1000000")

    def test_3_is_a_file_that_cannot_be_read_or_written(self):
        run = self.run_file()
        for path in (self.directory, self.directory / "missing.yaml", "/dev/null"):
            self.expect(3, "replay", path)
            self.expect(3, "plan", path)
            self.expect(3, "compare", path)
            self.expect(3, "import", "megatron", path)
        for path in (self.directory, self.directory / "missing.txt"):
            self.expect(3, "schedules", "check", path)
        for key in ("schedule.order_file", "model.huggingface", "kernels.gemm_table"):
            self.expect(3, "replay", run, "--set", f"{key}={self.directory}/missing.json")
        self.expect(3, "replay", run, "--set", f"include={self.directory}/missing.yaml")
        self.expect(2, "replay", run, "--set", f"kernels.gemm_table={self.directory}/missing.csv",
                    "--set", "training.precision=bf17")
        self.expect(3, "replay", run, "--json", self.directory / "missing" / "report.json")
        self.expect(3, "schedules", "draw", "1f1b", "--pp", 2, "--microbatches", 2,
                    "--output", self.directory)

    def test_schedules_that_can_run_under_blocking_calls_do(self):
        for schedule in ("1f1b", "gpipe", "gpipe-lifo"):
            self.expect(0, "replay", self.run_file(schedule, "blocking"))

    def test_warnings_say_that_they_are(self):
        run = self.run_file()
        done = self.expect(0, "replay", run, "--set",
                           "overlap.parameter_gather_with_optimizer_step=true")
        self.assertEqual(done.stderr, "command line: warning: "
                         "overlap.parameter_gather_with_optimizer_step: Megatron allows it with "
                         "virtual stages only\n")


if __name__ == "__main__":
    ExitStatusTest.quadrille = sys.argv.pop(1)
    with tempfile.TemporaryDirectory() as name:
        ExitStatusTest.directory = pathlib.Path(name)
        unittest.main()
