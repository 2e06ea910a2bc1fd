#!/usr/bin/env python3
"""Opens report pages in headless Chromium and uses them as a reader would.

    browser_test.py QUADRILLE RUN.yaml [--screenshots DIR]

Makes the pages with QUADRILLE from RUN.yaml, cut to a small batch. Skipped (exit status 77) with a
message when Chromium, its driver or python3-selenium is missing; tools/setup --test installs them.
With --screenshots, pictures of the pages in both colour schemes and at phone width are kept in DIR.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
SMALL = ["--set", "training.global_batch=128", "--set", "training.microbatches=16"]
SCHEDULES = "interleaved,1f1b,zb-h1,zbv,dualpipe,gpipe"
LARGE = "interleaved,breadth-first,depth-first,interleaved-zb"
HOSTILE = "</script><script>window.hostile = 1</script><b>&amp;"

try:
    from selenium import webdriver
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    webdriver = None


class Pages:
    """The pages under test and the reports that they must show."""

    def __init__(self, quadrille, run, directory):
        self.quadrille = quadrille
        self.directory = directory
        hostile = directory / "hostile" / pathlib.Path(run).name
        hostile.parent.mkdir()
        text = pathlib.Path(run).read_text()
        hostile.write_text(f"{text}\n# {HOSTILE}\n")
        self.replay = directory / "replay.html"
        self.replay_json = json.loads(
            self.output("replay", hostile, *SMALL, "--format", "json", "--html", self.replay))
        self.compare = directory / "compare.html"
        listed = ["compare", run, *SMALL, "--schedules", SCHEDULES]
        self.output(*listed, "--format", "html", "--output", self.compare)
        self.compare_json = json.loads(self.output(*listed, "--format", "json"))
        self.large = directory / "large.html"
        self.output("compare", run, "--schedules", LARGE, "--format", "html",
                    "--output", self.large)

    def output(self, *arguments):
        command = [self.quadrille, *map(str, arguments)]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def start_browser(profile):
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--hide-scrollbars", "--window-size=1400,1000", f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.chrome.service.Service(shutil.which("chromedriver"))
    return webdriver.Chrome(service=service, options=options)


class BrowserTest(unittest.TestCase):
    pages = None
    browser = None
    screenshots = None

    def open(self, page, width=1400, height=1000, dark=False):
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self.browser.get(page.as_uri())
        WebDriverWait(self.browser, 60).until(
            lambda b: self.script("return document.documentElement.dataset.ready") == "true")
        self.settle()

    def script(self, text, *arguments):
        return self.browser.execute_script(text, *arguments)

    def settle(self):
        """Waits until the timeline is painted."""
        self.browser.execute_async_script(
            "const done = arguments[0];"
            "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0)));")

    def view(self):
        self.settle()
        return self.script("const v = quadrille.timeline.view; return [v.begin, v.end];")

    def press(self, keys):
        self.browser.find_element(By.ID, "plot").send_keys(keys)

    def text_of(self, identifier):
        return self.script("return document.getElementById(arguments[0]).textContent", identifier)

    def keep(self, name, whole=True):
        if self.screenshots is None:
            return
        if whole:
            height = self.script("return document.documentElement.scrollHeight")
            width = self.script("return window.innerWidth")
            self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
                "width": width, "height": min(height, 4000), "deviceScaleFactor": 1,
                "mobile": width < 600})
            self.settle()
        self.browser.save_screenshot(str(self.screenshots / f"{name}.png"))

    def tearDown(self):
        errors = [entry for entry in self.browser.get_log("browser")
                  if entry["level"] in ("SEVERE", "WARNING")]
        self.assertEqual(errors, [], "the page complained on the console")

    def test_replay_shows_the_figures_of_its_json(self):
        self.open(self.pages.replay)
        report = self.pages.replay_json
        cards = self.text_of("cards")
        self.assertIn(f"{report['step_time_s']:.4g} s", cards)
        self.assertIn(f"{report['mfu']['causal'] * 100:.2f} %", cards)
        self.assertIn(f"{report['hfu'] * 100:.2f} %", cards)
        self.assertIn(f"{report['bubble']['of_makespan'] * 100:.2f} %", cards)
        self.assertIn(f"{report['tokens_per_second_per_gpu']:.1f}", cards)
        self.assertIn(report["fingerprint"], self.text_of("identity"))
        embedded = self.script("return quadrille.report.runs[0].step_time_s")
        self.assertEqual(embedded, report["step_time_s"])
        self.assertEqual(self.script("return quadrille.runs[0].end") / 1e12, report["step_time_s"])

    def test_actions_on_the_page_are_those_of_the_schedule(self):
        self.open(self.pages.replay)
        kinds = self.script("const k = [...quadrille.runs[0].a_kind];"
                            "return [0, 1, 4, 6].map((x) => k.filter((y) => y === x).length)")
        pipeline = self.pages.replay_json["scenario"]["parallel"]
        ranks, chunks = pipeline["pipeline"], pipeline["virtual_stages"]
        passes = ranks * chunks * self.pages.replay_json["microbatches"]
        self.assertEqual(kinds, [passes, passes, ranks, ranks])

    def test_compare_shows_the_figures_of_its_json(self):
        self.open(self.pages.compare)
        shown = self.text_of("comparison") + self.text_of("tables")
        for run in self.pages.compare_json["runs"]:
            self.assertIn(run["label"], shown)
            self.assertIn(f"{run['mfu']['causal'] * 100:.2f} %", shown)
            self.assertIn(run["trade"], shown)
        for refused in self.pages.compare_json["refused"]:
            self.assertIn(refused["reason"], shown)

    def test_wheel_zooms_about_the_pointer_and_drag_pans(self):
        self.open(self.pages.replay)
        plot = self.browser.find_element(By.ID, "plot")
        whole = self.view()
        self.script("arguments[0].scrollIntoView({block: 'center'})", plot)
        origin = webdriver.common.actions.wheel_input.ScrollOrigin.from_element(plot, 200, 0)
        ActionChains(self.browser).scroll_from_origin(origin, 0, -800).perform()
        begin, end = self.view()
        self.assertLess(end - begin, (whole[1] - whole[0]) / 2)
        pivot = self.script("return quadrille.timeline.timeAt("
                            "document.getElementById('plot').clientWidth / 2 + 200)")
        self.assertTrue(begin < pivot < end)
        ActionChains(self.browser).move_to_element(plot).click_and_hold().move_by_offset(
            -150, 0).release().perform()
        panned = self.view()
        self.assertGreater(panned[0], begin)
        self.assertAlmostEqual(panned[1] - panned[0], end - begin, delta=(end - begin) * 1e-6)

    def test_keyboard_zooms_pans_walks_and_finds_kernels(self):
        self.open(self.pages.replay)
        whole = self.view()
        self.press("++")
        zoomed = self.view()
        self.assertLess(zoomed[1] - zoomed[0], whole[1] - whole[0])
        self.press(Keys.ARROW_RIGHT)
        self.assertGreater(self.view()[0], zoomed[0])
        self.press("0")
        self.assertEqual(self.view(), whole)
        self.press("k")
        self.settle()
        self.assertTrue(self.script(
            "const t = quadrille.timeline; return t.kernelStrip(quadrille.runs[0], 0)"))
        self.press("0")
        # The prologue, then F 0, then F 1.
        self.press(Keys.SHIFT + Keys.ARROW_RIGHT)
        self.press(Keys.SHIFT + Keys.ARROW_RIGHT)
        self.press(Keys.SHIFT + Keys.ARROW_RIGHT)
        self.press(Keys.NULL)
        self.assertIn("stage 0: F 1 (forward, microbatch 1", self.text_of("detail"))
        self.assertEqual(self.script("return document.activeElement.id"), "plot")

    def test_pointer_says_what_an_action_waited_for(self):
        self.open(self.pages.replay)
        detail = self.script(
            "const run = quadrille.runs[0], row = run.rows.length - 1;"
            "return quadrille.actionDetail(run, row, run.a_row[row] + 1)")
        self.assertIn("bubble: warm-up", detail)
        self.assertIn("It needed F 0 (forward, microbatch 0", detail)
        self.assertIn("of stage 6", detail)

    def test_waiting_for_the_norm_of_others_is_the_barrier_and_not_the_optimizer(self):
        self.open(self.pages.replay)
        rows = self.script("""
            const run = quadrille.runs[0];
            return run.rows.map((_, row) => {
              const step = run.a_row[row + 1] - 1;
              const idle = run.a_start[step] - run.a_end[step - 1];
              return {kinds: [run.a_kind[step - 1], run.a_kind[step]],
                      phase: quadrille.states[run.a_phase[step]].name,
                      barrier: idle - run.a_exposed[step],
                      text: quadrille.actionDetail(run, row, step)};
            });""")
        for row in rows:
            self.assertEqual(row["kinds"], [6, 4])
            self.assertEqual(row["phase"], "bubble: barrier")
        # The last rank of all to be done waits for nobody; the first waits longest.
        waits = [row["barrier"] for row in rows]
        self.assertEqual(min(waits), 0)
        longest = rows[waits.index(max(waits))]
        self.assertGreater(longest["barrier"], 0)
        self.assertIn("bubble: barrier", longest["text"])
        # As the accounts say, which count the wait before the norm, too.
        barrier = self.script("""
            const run = quadrille.runs[0];
            let sum = 0;
            run.rows.forEach((_, row) => {
              const end = run.a_row[row + 1];
              for (let i = end - 2; i < end; ++i)
                sum += run.a_start[i] - run.a_end[i - 1] - run.a_exposed[i];
            });
            return sum / run.rows.length / 1e12;""")
        self.assertAlmostEqual(
            barrier, self.pages.replay_json["states_s"]["bubble_barrier"], delta=1e-9)

    def test_a_wide_table_fits_or_shows_that_it_scrolls(self):
        marks = "return document.querySelector('.scroller').className"
        self.open(self.pages.compare, width=1300)
        self.assertEqual(self.script(marks), "scroller")
        self.open(self.pages.compare, width=390, height=844)
        self.assertEqual(self.script(marks), "scroller more-right")
        scroll = "document.querySelector('.scroll').scrollLeft = arguments[0]"
        self.script(scroll, 100)
        self.settle()
        self.assertEqual(self.script(marks), "scroller more-right more-left")
        self.script(scroll, 10000)
        self.settle()
        self.assertEqual(self.script(marks), "scroller more-left")

    def test_kernels_are_found_from_the_begin_and_have_a_legend(self):
        self.open(self.pages.replay)
        self.press("k")
        begin, end = self.view()
        first = self.script("return quadrille.runs[0].windows[0]")
        self.assertTrue(first[0] <= begin < end <= first[1])
        legend = self.text_of("kernel-legend")
        for word in ("GEMM", "attention", "tensor parallel transfer", "data parallel transfer"):
            self.assertIn(word, legend)

    def test_streams_and_ranks_can_be_chosen(self):
        self.open(self.pages.replay)
        rows = "return quadrille.timeline.items.length"
        before = self.script(rows)
        self.script("document.querySelector('#choose-streams input').click()")
        self.assertEqual(self.script(rows), 2 * before)
        self.script("document.querySelector('#choose-ranks input').click()")
        self.assertEqual(self.script(rows), 2 * before - 2)

    def test_nothing_that_is_embedded_becomes_markup(self):
        self.open(self.pages.replay)
        self.assertIsNone(self.script("return window.hostile || null"))
        self.assertIn(HOSTILE, self.text_of("scenario-texts"))

    def test_phone_width_does_not_scroll_sideways(self):
        for page in (self.pages.replay, self.pages.compare):
            self.open(page, width=390, height=844)
            width = self.script("return document.documentElement.scrollWidth")
            self.assertLessEqual(width, 390, page.name)
            self.keep(f"{page.stem}-phone")

    def test_names_of_the_waterfall_are_whole_at_every_width(self):
        for width in (390, 1300):
            self.open(self.pages.replay, width=width, height=844)
            axis, names = self.script("""
                const chart = quadrille.charts[0], y = chart.scales.y;
                const pen = chart.ctx;
                pen.font = `${y.options.ticks.font.size}px Helvetica, Arial, sans-serif`;
                const lines = chart.data.labels.flat();
                return [y.width, Math.max(...lines.map((line) => pen.measureText(line).width))];""")
            self.assertLess(names, axis, f"at {width}")

    def test_no_two_reasons_to_wait_look_alike(self):
        self.open(self.pages.replay)
        looks = self.script(
            "return Object.values(quadrille.states).map((s) => [s.light, s.dark, s.hatch].join())")
        self.assertEqual(len(set(looks)), len(looks))

    def test_follows_the_colour_scheme_and_the_switch(self):
        for page in (self.pages.replay, self.pages.compare):
            for dark in (False, True):
                self.open(page, dark=dark)
                theme = "return document.documentElement.dataset.theme"
                self.assertEqual(self.script(theme), "dark" if dark else "light")
                self.keep(f"{page.stem}-{'dark' if dark else 'light'}")
        self.browser.find_element(By.ID, "theme").click()
        self.assertEqual(self.script(theme), "light")

    def test_a_hundred_thousand_rectangles_paint(self):
        self.open(self.pages.large)
        self.assertGreaterEqual(self.script("return quadrille.actionCount"), 100_000)
        # The best of several, since other programs share the machine.
        for share in (1, 0.1):
            fastest = self.script("""
                const t = quadrille.timeline, times = [];
                t.view = {begin: 0, end: t.end * arguments[0]};
                for (let i = 0; i < 5; ++i) {
                  t.paint();
                  times.push(t.lastPaint);
                }
                return Math.min(...times);""", share)
            self.assertLess(fastest, 1000, f"{share} of the step")

    def test_zoomed_pictures(self):
        for dark in (False, True):
            self.open(self.pages.replay, dark=dark)
            self.script("for (const i of document.querySelectorAll('#choose-streams input'))"
                        " i.click(); quadrille.timeline.toKernels();")
            self.view()
            self.script("document.getElementById('timeline').scrollIntoView()")
            self.settle()
            self.assertGreater(self.script("return quadrille.timeline.painted"), 0)
            self.keep(f"kernels-{'dark' if dark else 'light'}", whole=False)


def missing():
    if webdriver is None:
        return "python3-selenium"
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return program
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("quadrille")
    parser.add_argument("run")
    parser.add_argument("--screenshots", type=pathlib.Path)
    parser.add_argument("-k", dest="only", help="only tests whose name holds this")
    arguments = parser.parse_args()
    if missing():
        print(f"skipped: {missing()} is missing; tools/setup --test installs it")
        return SKIPPED
    if arguments.screenshots:
        arguments.screenshots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        BrowserTest.pages = Pages(arguments.quadrille, arguments.run, directory)
        BrowserTest.screenshots = arguments.screenshots
        BrowserTest.browser = start_browser(directory / "profile")
        try:
            loader = unittest.TestLoader()
            if arguments.only:
                loader.testNamePatterns = [f"*{arguments.only}*"]
            suite = loader.loadTestsFromTestCase(BrowserTest)
            return 0 if unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful() else 1
        finally:
            BrowserTest.browser.quit()


if __name__ == "__main__":
    sys.exit(main())
