"""The program as a shell sees it: what it exits with, what goes where, what it leaves behind.

    command_line_test.py path/to/quadrille
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

BINARY = sys.argv.pop(1) if len(sys.argv) > 1 else "build/release/quadrille"
RUN = "llama3-405b-1024xh100-bf16"
# The same recipe on 64 GPUs with 14 layers: a run that takes no time.
SMALL = [RUN, "--set", "nodes=8", "--set", "model.layers=14", "--set", "parallel.data=1",
         "--set", "parallel.context=1", "--set", "parallel.virtual_stages=2",
         "--set", "training.global_batch=16"]
COMMANDS = ["calibrate", "compare", "goodput", "import", "plan", "replay", "schedules", "search",
            "sensitivity", "sweep", "topology", "validate"]


def quadrille(*arguments, stdout=subprocess.PIPE):
    environment = {**os.environ, "NO_COLOR": "1"}
    return subprocess.run([BINARY, *arguments], stdout=stdout, stderr=subprocess.PIPE, text=True,
                          env=environment, timeout=120, check=False)


class Statuses(unittest.TestCase):
    def exits(self, status, *arguments):
        ran = quadrille(*arguments)
        self.assertEqual(ran.returncode, status, f"{arguments}\n{ran.stdout[:400]}\n{ran.stderr}")
        return ran

    def test_every_command_explains_itself(self):
        for command in COMMANDS:
            self.assertIn("--help", self.exits(0, command, "--help").stdout)
        self.assertIn("quadrille 0.", self.exits(0, "--version").stdout)

    def test_a_wrong_call_is_2_and_names_what_was_meant(self):
        self.assertIn("did you mean 'replay'?", self.exits(2, "reply").stderr)
        self.exits(2)
        self.exits(2, "replay")
        self.exits(2, "replay", RUN, "--format", "xml")

    def test_wrong_input_is_2_with_its_place_and_all_problems(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "run.yaml")
            path.write_text("model: llama3-405b\nclutser: dgx-h100-superpod\nnodes: 128\n"
                            "parallel: {tensor: 8, pipelin: 8}\n", encoding="utf-8")
            ran = self.exits(2, "replay", str(path))
        self.assertIn("run.yaml:2:1: ", ran.stderr)
        self.assertIn("'cluster'", ran.stderr)
        self.assertIn("run.yaml:4:23: ", ran.stderr)
        self.assertEqual(ran.stdout, "")

    def test_a_product_that_does_not_match_is_2_and_names_the_factors(self):
        ran = self.exits(2, "replay", "nemo-llama3-405b-576xh100-fp8", "--set", "nodes=64")
        self.assertIn("576", ran.stderr)
        self.assertIn("512", ran.stderr)

    def test_a_missing_file_is_3(self):
        for command in ("replay", "plan", "compare", "topology", "sensitivity", "goodput",
                        "search"):
            self.exits(3, command, "nowhere/run.yaml")
        self.exits(3, "sweep", "nowhere/run.yaml", "--vary", "seed=1,2")
        self.exits(3, "validate", "steps", "nowhere.csv")
        self.exits(3, "schedules", "check", "nowhere.txt")

    def test_memory_that_does_not_fit_is_1_under_strict_alone(self):
        large = [*SMALL, "--set", "training.sequence_length=262144"]
        self.exits(0, "replay", *large)
        self.exits(1, "replay", *large, "--strict")

    def test_goodput_of_a_run_without_reliability_says_what_it_assumes(self):
        ran = self.exits(0, "goodput", *SMALL, "--runs", "2")
        self.assertIn("warning: the run has no reliability section; assumed is --set 'reliability=",
                      ran.stderr)
        self.assertIn("2 runs of 54 d", ran.stdout)

    def test_a_full_disk_is_3(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.assertEqual(quadrille("schedules", stdout=full).returncode, 3)
            self.assertEqual(quadrille("replay", *SMALL, stdout=full).returncode, 3)

    def test_an_empty_name_of_a_file_is_2(self):
        for option in ("--json", "--trace", "--html"):
            self.exits(2, "replay", *SMALL, option, "")
        self.exits(2, "compare", *SMALL, "-o", "")

    def test_no_file_is_left_by_a_run_that_was_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            for option in ("--json", "--trace", "--html"):
                out = pathlib.Path(folder, "out" + option)
                self.exits(2, "replay", *SMALL, "--set", "parallel.tensor=3", option, str(out))
            self.assertEqual(os.listdir(folder), [])

    def test_a_file_that_cannot_be_written_is_3(self):
        for option in ("--json", "--trace", "--html"):
            self.exits(3, "replay", *SMALL, option, "/nowhere/out")

    def test_validations_take_the_same_options_and_end_alike(self):
        tables = {
            "steps": "id,model,seq_len,gpu,gpus,tp,mbs,gbs,iter_time_s\n"
                     "own-1,Llama3-8B,8192,h100,8,1,1,128,12\n"
                     "other,Llama3-8B,8192,h100,8,1,1,8,1\n",
            "kernels": "gpu,dtype,m,n,k,time_us\nown H100,bfloat16,64,64,64,9\n"
                       "H100,bfloat16,4096,4096,4096,200\n",
            "collectives": "system,gpus,nodes,collective,bytes,time_us\n"
                           "own DGX H100,8,1,all_reduce,1048576,30\n"
                           "H100,8,1,all_reduce,1048576,30\n"}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "rows.csv")
            for kind, text in tables.items():
                path.write_text(text, encoding="utf-8")
                for form in ("table", "json", "csv", "html"):
                    self.exits(0, "validate", kind, str(path), "--format", form, "--threads", "1")
                name = {"steps": "other", "kernels": "H100", "collectives": "H100"}[kind]
                rows = json.loads(self.exits(0, "validate", kind, str(path), "--only", name,
                                             "--format", "json").stdout)["rows"]
                self.assertEqual(len(rows), 1, kind)
                self.assertIn("of the file begins so",
                              self.exits(2, "validate", kind, str(path), "--only",
                                         "nothing").stderr)
                self.exits(2, "validate", kind, str(path), "--format", "xml")
                self.exits(3, "validate", kind, "nowhere.csv")

    def test_calibration_refuses_names_that_are_none_and_blanks_what_one_source_cannot_tell(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "rows.csv")
            rows = [f"r{i},llama3-8b,8192,H100,8,1,1,{8 * i},{0.9 * i}" for i in range(1, 6)]
            path.write_text("id,model,seq_len,gpu,gpus,tp,mbs,gbs,iter_time_s\n" + "\n".join(rows),
                            encoding="utf-8")
            ran = self.exits(2, "calibrate", str(path), "--of", "h100-sxn,megatron-2026")
            self.assertIn("--of: no GPU or software stack is named 'h100-sxn'; nearest: 'h100-sxm'",
                          ran.stderr)
            self.assertEqual(ran.stdout, "")
            ran = self.exits(0, "calibrate", str(path), "--of", "H100", "--constants", "derate")
        self.assertIn("leave one source out: all rows are of one", ran.stdout)
        self.assertIn("leave one generation out: all rows are of one", ran.stdout)

    def test_calibration_to_kernels_writes_an_overlay_and_says_what_it_cannot_do(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "gemms.csv")
            head = "gpu,dtype,m,n,k,time_us\n"
            rows = [f"H100-SXM,bfloat16,{m},{n},{k},{5 + m * n * k / 3e8:.2f}"
                    for m in (1024, 2048, 8192) for n in (2048, 5120, 8192) for k in (1024, 4096)]
            path.write_text(head + "\n".join(rows), encoding="utf-8")
            overlay = pathlib.Path(folder, "own.yaml")
            ran = self.exits(0, "calibrate", "kernels", str(path), "--output", str(overlay))
            self.assertIn("h100-sxm gemm_16bit: cross-validated", ran.stdout)
            self.assertIn("gemm_16bit: {kind: fitted", overlay.read_text(encoding="utf-8"))
            self.exits(0, "replay", *SMALL, "--set", "cluster.gpu=h100-sxm",
                       "--set", f"include={overlay}")
            ran = self.exits(1, "calibrate", "kernels", str(path), "--only", "H100",
                             "--constants", "memory")
            self.assertIn("no row of the files can be fitted to", ran.stderr)
            self.assertIn("nearest: 'h100-sxm'", self.exits(
                2, "calibrate", "kernels", str(path), "--of", "h100-sxn").stderr)
            self.exits(2, "calibrate", "kernels", str(path), "--hold", "peak")
            shadow = pathlib.Path(folder, "h100-sxm.yaml")
            self.assertIn("--output: an overlay named 'h100-sxm'", self.exits(
                2, "calibrate", "kernels", str(path), "--output", str(shadow)).stderr)
            self.assertFalse(shadow.exists())
            self.assertIn("no group of the files begins so", self.exits(
                2, "calibrate", "kernels", str(path), "--only", "A100").stderr)
            path.write_text(head + "\n".join(rows[:3]), encoding="utf-8")
            self.assertIn("too few rows", self.exits(1, "calibrate", "kernels", str(path)).stderr)
            path.write_text(head + "H100-SXM,bfloat16,x,1,1,1", encoding="utf-8")
            self.exits(2, "calibrate", "kernels", str(path))
            self.exits(3, "calibrate", "kernels", "nowhere.csv")

    def test_collectives_are_fitted_to_tables_and_to_what_nccl_tests_print(self):
        header = "#  size  count  type  redop  root  time  algbw  busbw #wrong\n"
        ranks = "".join(f"#  Rank {i} Group 0 Pid 1 on a device {i} [0x1b] NVIDIA H100 80GB HBM3\n"
                        for i in range(8))
        # As the shipped law, and 15 us more.
        law = [(x, 39 + x / 0.479 + 6.9 * min(x, 200) ** 0.5)
               for x in (1.75 * (1 << 20) * 4 ** i / 1e6 for i in range(6))]
        rows = "".join(f"{x / 1.75e-6:.0f} 1 float sum -1 {us:.2f} 2.0 3.5 0\n" for x, us in law)
        run = ("model: llama3-8b\ncluster: dgx-h100-superpod\ngpus: 8\ninclude: fit.yaml\n"
               "parallel: {tensor: 8}\ntraining: {sequence_length: 8192, global_batch: 1}\n")
        with tempfile.TemporaryDirectory() as folder:
            output = pathlib.Path(folder, "all_reduce.txt")
            output.write_text(ranks + header + rows, encoding="utf-8")
            overlay = pathlib.Path(folder, "fit.yaml")
            ran = self.exits(0, "calibrate", "collectives", str(output), "-o", str(overlay))
            self.assertIn("cluster dgx-h100-superpod: 6 rows", ran.stdout)
            self.assertRegex(ran.stdout, r"nvlink_all_reduce.alpha +6 +24 us +(39|38\.9)[0-9]* us")
            self.assertIn("leave one size out", ran.stdout)
            self.assertIn("leave one system out: all rows are of one", ran.stdout)
            pathlib.Path(folder, "run.yaml").write_text(run, encoding="utf-8")
            self.assertEqual(self.exits(0, "plan", str(pathlib.Path(folder, "run.yaml"))).stderr,
                             "")
            self.exits(0, "validate", "collectives", str(output), "--cluster", "meta-roce-24k")
            ran = self.exits(2, "calibrate", "collectives", str(output), "--of", "h101,h100",
                             "--constants", "nvlink_all_reduc", "--cluster", "dgx-h100-superpd")
            for says in ("named 'h101'; nearest: 'h100'", "nearest: 'nvlink_all_reduce'",
                         "nearest: 'dgx-h100-superpod'"):
                self.assertIn(says, ran.stderr)
            ran = self.exits(1, "calibrate", "collectives", str(output), "--from", "1 GB")
            self.assertIn("1 constants need 3 rows, there are 1", ran.stdout)
            self.exits(2, "calibrate", "collectives", str(output), "--only", "A100")
            output.write_text(header, encoding="utf-8")
            self.exits(2, "calibrate", "collectives", str(output))
            self.exits(3, "calibrate", "collectives", "nowhere.csv")


class Outputs(unittest.TestCase):
    def test_json_goes_to_standard_output_alone_and_is_the_same_twice(self):
        first = quadrille("replay", *SMALL, "--format", "json")
        report = json.loads(first.stdout)
        for key in ("schema_version", "step_time_s", "mfu", "bubble", "communication", "memory",
                    "fingerprint"):
            self.assertIn(key, report)
        self.assertEqual(first.stdout, quadrille("replay", *SMALL, "--format", "json").stdout)

    def test_a_sweep_has_a_row_per_combination_in_the_order_of_the_call(self):
        networks = "network={fidelity: ideal},{fidelity: endpoint, interference: true}"
        ran = quadrille("sweep", *SMALL, "--vary", "training.global_batch=16,32",
                        "--vary", networks, "--format", "csv")
        rows = list(csv.DictReader(io.StringIO(ran.stdout)))
        self.assertEqual([row["training.global_batch"] for row in rows], ["16", "16", "32", "32"])
        self.assertEqual(rows[1]["network"], "{fidelity: endpoint, interference: true}")
        for row in rows:
            alone = json.loads(quadrille(
                "replay", *SMALL, "--format", "json",
                "--set", "training.global_batch=" + row["training.global_batch"],
                "--set", "network=" + row["network"]).stdout)
            self.assertEqual(float(row["step_time_s"]), alone["step_time_s"])

    def test_a_sweep_refuses_what_is_no_variation(self):
        self.assertEqual(quadrille("sweep", *SMALL, "--vary", "seed").returncode, 2)
        twice = quadrille("sweep", *SMALL, "--vary", "seed=1", "--vary", "seed=2")
        self.assertEqual(twice.returncode, 2)
        self.assertIn("given twice", twice.stderr)
        wrong = quadrille("sweep", *SMALL, "--vary", "training.micro_btach=1,2")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("'micro_batch'", wrong.stderr)

    def test_a_search_finds_the_runs_own_layout_no_faster_than_its_best(self):
        ran = quadrille("search", *SMALL, "--top", "3", "--micro-batch", "1", "--format", "json")
        found = json.loads(ran.stdout)
        times = [run["step_time_s"] for run in found["runs"]]
        self.assertEqual(times, sorted(times))
        self.assertEqual(
            found["slower"] + len(times) + len(found["refused"]) + len(found["too_large"]),
            len(json.loads(quadrille("search", *SMALL, "--top", "9999", "--micro-batch", "1",
                                     "--format", "json").stdout)["runs"])
            + len(found["refused"]) + len(found["too_large"]))
        own = [run for run in found["runs"] if run["own"]]
        self.assertEqual(len(own), 1)
        alone = json.loads(quadrille("replay", *SMALL, "--format", "json").stdout)
        self.assertEqual(own[0]["fingerprint"], alone["fingerprint"])

    def test_a_search_refuses_to_vary_what_it_sets_or_what_changes_the_work(self):
        for vary in ("parallel.tensor=4,8", "schedule.name=1f1b,zbv", "training.global_batch=8,16",
                     "training.recomputes=none"):
            ran = quadrille("search", *SMALL, "--vary", vary)
            self.assertEqual(ran.returncode, 2, vary + ran.stderr)

    def test_a_row_with_a_blank_size_is_skipped_with_its_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "rows.csv")
            for kind, header, row, blank in (
                    ("kernels", "gpu,impl,pass,seqlen,heads,time_us",
                     "H100-SXM,FlashAttention-3,fwd,,32,500", "seqlen"),
                    ("kernels", "gpu,dtype,m,n,k,time_us", "H100-SXM,bfloat16,4096,4096,,500", "k"),
                    ("kernels", "gpu,op,bytes,time_us", "H100-SXM,vllm_rmsnorm,,500", "bytes"),
                    ("collectives", "system,gpus,nodes,collective,bytes,time_us",
                     "DGX H100,8,1,all_reduce,,500", "bytes")):
                path.write_text(f"{header}\n{row}\n", encoding="utf-8")
                ran = quadrille("validate", kind, str(path), "--format", "csv")
                self.assertEqual(ran.returncode, 1, ran.stderr)
                self.assertIn("skipped", ran.stdout)
                self.assertIn(f"{blank} is not stated", ran.stdout)
                self.assertIn("no row counts", ran.stderr)

    def test_a_search_of_impossible_degrees_is_1(self):
        ran = quadrille("search", *SMALL, "--tensor", "3", "--pipeline", "1048576")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("no layout of these degrees", ran.stderr)

    def test_a_search_varies_keys_beside_the_layout(self):
        ran = quadrille("search", *SMALL, "--tensor", "8", "--pipeline", "4,8",
                        "--micro-batch", "1",
                        "--vary", "training.recompute=none,full", "--format", "json")
        values = {run["values"]["training.recompute"] for run in json.loads(ran.stdout)["runs"]}
        self.assertEqual(values, {"none", "full", "own"})


if __name__ == "__main__":
    unittest.main()
