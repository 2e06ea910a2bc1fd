#!/usr/bin/env python3
"""Shows of every rule in source_tidy_test.py that it passes what is right and fails what is not."""

import sys
import unittest

sys.dont_write_bytecode = True
import source_tidy_test as tidy  # noqa: E402

README = "word " * 40


def breaches(files: dict) -> list:
    """Failing breaches of a tree of headers and sources that is otherwise in order."""
    files = {path: "#pragma once\n" + text if path.endswith(".h") else text
             for path, text in files.items()}
    for path in list(files):
        module = tidy.module_of(path)
        if module:
            files.setdefault(module + "/README.md", README)
    sources = {path: tidy.Source(path, text) for path, text in files.items()}
    return [breach for breach in tidy.breaches_of(sources) if breach.fails]


class SourceTidyTest(unittest.TestCase):
    def passes(self, text, path="sim/runtime/a.cc"):
        self.assertEqual(breaches({path: text}), [])

    def fails(self, text, message, path="sim/runtime/a.cc", line=1):
        found = breaches({path: text})
        self.assertEqual([breach.line for breach in found], [line], found)
        self.assertIn(message, found[0].message)

    def include(self, module, other):
        return breaches({f"{module}/a.cc": f'#include "{other}/b.h"\n', f"{other}/b.h": ""})

    def test_a_module_includes_itself_and_lower_ranks(self):
        self.assertEqual(self.include("sim/runtime", "sim/runtime"), [])
        self.assertEqual(self.include("sim/runtime", "sim/base"), [])
        self.assertEqual(self.include("sim/scenario", "sim/runtime"), [])
        self.assertEqual(self.include("tools", "sim/simulate"), [])
        self.assertEqual(self.include("test/runtime", "sim/simulate"), [])

    def test_a_module_includes_no_higher_rank(self):
        self.assertIn("rank 0", self.include("sim/base", "sim/engine")[0].message)
        self.assertEqual(len(self.include("sim/runtime", "sim/scenario")), 1)

    def test_a_module_includes_no_equal_rank(self):
        self.assertEqual(len(self.include("sim/metrics", "sim/runtime")), 1)
        self.assertEqual(len(self.include("schedules", "topology")), 1)

    def test_a_module_includes_no_test_and_nothing_that_is_absent(self):
        self.assertEqual(len(self.include("sim/runtime", "test/support")), 1)
        self.fails('\n#include "sim/base/absent.h"\n', "not a file", line=2)
        self.passes('// #include "sim/base/absent.h"\n')

    def test_only_a_test_includes_what_stands_beside_it(self):
        self.assertEqual(breaches({"test/runtime/a.cc": '#include "b.h"\n',
                                   "test/runtime/b.h": ""}), [])
        self.assertEqual(len(breaches({"sim/runtime/a.cc": '#include "b.h"\n',
                                       "sim/runtime/b.h": ""})), 1)

    def test_every_pair_of_modules_is_decided_by_rank(self):
        for module, rank in tidy.RANKS.items():
            for other, other_rank in tidy.RANKS.items():
                allowed = module == other or other_rank < rank
                self.assertEqual(not self.include(module, other), allowed, (module, other))

    def test_headers_need_pragma_once(self):
        source = tidy.Source("sim/base/a.h", "int F();\n")
        self.assertEqual(len(list(tidy.headers_have_pragma_once({"a": source}))), 1)

    def test_lines_have_at_most_100_columns(self):
        self.passes("//" + "x" * 98 + "\n")
        self.passes("//" + "\u00d7" * 98 + "\n")
        self.fails("//" + "x" * 99 + "\n", "101 columns")
        self.fails("#!/bin/bash\n#" + "x" * 100 + "\n", "101 columns", path="tools/run", line=2)

    def test_files_have_at_most_600_lines(self):
        self.passes("\n" * 600)
        self.fails("\n" * 601, "split")

    def test_banned_calls_are_found(self):
        self.fails("void F() { assert(true); }\n", "QUADRILLE_CHECK")
        self.fails("void F() { std::exit(1); }\n", "main")
        self.fails("int F() { return rand(); }\n", "counter_rng")
        self.fails("#include <random>\n", "counter_rng")
        self.fails("#include <iostream>\n", "global stream")
        self.fails("#include <yaml-cpp/yaml.h>\n", "only user")
        self.fails("double F() { return std::exp(1.0); }\n", "libm")
        self.fails("double F() { return pow(2.0, 3.0); }\n", "libm")
        self.fails("std::unordered_map<int, int> F();\n", "hash order", path="sim/report/a.cc")

    def test_what_only_looks_banned_passes(self):
        self.passes("static_assert(sizeof(int) == 4);\n")
        self.passes('// assert(x), exit(1)\nconst char* F() { return "rand()"; }\n')
        self.passes("double F() { return std::sqrt(2.0) + operand(1) + table.log(2); }\n")
        self.passes("std::unordered_map<int, int> F();\n")

    def test_bans_end_where_their_reason_ends(self):
        self.passes("int main() { exit(1); }\n", path="tools/main.cc")
        self.passes("#include <random>\n", path="test/runtime/a.cc")
        self.passes("#include <yaml-cpp/yaml.h>\n", path="sim/scenario/a.cc")
        self.passes("double F() { return std::log10(2.0); }\n", path="sim/report/a.cc")

    def test_mutable_globals_are_found(self):
        for text in ("int counter = 0;\n", "std::vector<int> cache;\n", "inline int counter{0};\n",
                     "int table[4];\n", "const char* F() {\n  static int calls = 0;\n}\n",
                     "void F() {\n  static std::string name(3, 'x');\n}\n",
                     "void F() {\n  thread_local int depth;\n}\n",
                     "class A {\n  static int instances_;\n};\n"):
            with self.subTest(text):
                self.assertEqual(len(breaches({"sim/runtime/a.cc": text})), 1)

    def test_constants_and_functions_are_no_globals(self):
        self.passes("constexpr int kLanes = 4;\nconst int kTable[] = {1, 2};\n"
                    "static int F(int x);\nint G(int x = 3);\nstatic int H() { return 1; }\n"
                    "using Key = int;\nenum class E : int { kA = 1 };\nstruct S {\n  int x = 0;\n"
                    "  static S Make(int x);\n  static constexpr int kOne = 1;\n};\n"
                    "int F(int x) {\n  static const int kTwo = 2;\n  int y = x;\n  return y;\n}\n"
                    "bool operator==(const S& a, const S& b) = default;\n"
                    "template <typename T>\nS Convert(T t) {\n  return S{t};\n}\n")

    def test_unfinished_work_is_found(self):
        self.fails("\n// TO" + "DO: the rest\n", "do it", line=2)
        self.fails("# FIX" + "ME\n", "do it", path="scenarios/a.yaml")
        self.passes("// This is todo with nothing.\n")

    def test_machine_paths_are_found(self):
        self.fails("a: /wo" + "rk/shared/x\n", "one machine", path="scenarios/a.yaml")
        self.fails('auto f = "/tm' + 'p/x";\n'.replace("auto", "const auto"), "one machine",
                   path="test/runtime/a.cc")
        self.fails("see https://deb.debian" + ".org/x\n", "packages", path="README.md")
        self.passes("NVIDIA/Megatron-LM:megatron/core/work/a.py, /usr/bin, ${X}/tmp/y\n",
                    path="README.md")

    def test_modules_need_readmes(self):
        tree = {"sim/base/a.h": tidy.Source("sim/base/a.h", "#pragma once\n")}
        self.assertIn("missing", tidy.breaches_of(tree)[0].message)
        tree["sim/base/README.md"] = tidy.Source("sim/base/README.md", "Base.\n")
        self.assertIn("too little", tidy.breaches_of(tree)[0].message)
        tree["sim/base/README.md"] = tidy.Source("sim/base/README.md", README)
        self.assertEqual(tidy.breaches_of(tree), [])

    def function_lengths(self, text):
        source = tidy.Source("sim/base/a.cc", text)
        return [tidy.line_of(text, f.closes) - tidy.line_of(text, f.starts) + 1
                for f in tidy.functions(source)]

    def test_functions_have_at_most_90_lines(self):
        body = "  Call();\n"
        self.passes("void F() {\n" + body * 88 + "}\n")
        self.fails("\nvoid F() {\n" + body * 89 + "}\n", "91 lines", line=2)

    def test_function_bodies_are_told_from_other_braces(self):
        self.assertEqual(self.function_lengths(
            "namespace a::b {\n"
            "constexpr Row kRows[] = {\n  {F(1), 2},\n};\n"
            "enum class E { kA };\n"
            "class C : public D<int(int)> {\n"
            " public:\n"
            "  C(int x)\n      : x_(x) {\n  }\n"
            "  int Get() const { return x_; }\n"
            "};\n"
            "template <typename T>\nauto F(T t, S s = {}) {\n"
            "  if (t) {\n    return [&] { return 1; };\n  }\n}\n"
            "}\n"), [3, 1, 6])


if __name__ == "__main__":
    unittest.main()
