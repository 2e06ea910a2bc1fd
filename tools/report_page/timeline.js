// The timeline: which rows are shown, where they lie, what is under the pointer.
(function() {
'use strict';
const Q = window.quadrille;

const AXIS = 22, HEAD = 22, LANE = 13, GAP = 2;

class Timeline {
  constructor() {
    this.plot = document.getElementById('plot');
    this.spacer = document.getElementById('spacer');
    this.painter = new Q.Painter(document.getElementById('canvas'));
    this.shownRuns = new Set();
    this.hiddenRanks = new Set();
    this.streams = new Set();
    this.end = 1;
    Q.runs.forEach((run, r) => {
      if (!run) return;
      this.shownRuns.add(r);
      this.end = Math.max(this.end, run.end);
      run.chunks = run.a_chunk.reduce((most, c) => Math.max(most, c), 0) + 1;
    });
    this.view = {begin: 0, end: this.end};
    this.selected = null;
    this.paints = 0;
    this.layout();
  }

  get left() {
    if (this.painter.width < 560) return 46;
    return this.streams.size > 0 ? 168 : 92;
  }

  // Places every row; call after what is shown or the size has changed.
  layout() {
    const shown = [...this.shownRuns];
    const rows = shown.reduce((n, r) => n + Q.runs[r].rows.length, 0);
    const height = rows <= 16 ? 26 : rows <= 64 ? 18 : 13;
    this.items = [];
    let y = AXIS;
    for (const r of shown) {
      const run = Q.runs[r];
      if (Q.runs.length > 1 || run.rows_left_out > 0) {
        this.items.push({type: 'head', run: r, y, h: HEAD});
        y += HEAD;
      } else {
        y += 4;
      }
      run.rows.forEach((info, row) => {
        if (this.hiddenRanks.has(info.rank)) return;
        this.items.push({type: 'row', run: r, row, y, h: height});
        y += height + GAP;
        run.lanes[row].forEach(([name, category], lane) => {
          if (!this.streams.has(category)) return;
          const at = run.firstLane[row] + lane;
          this.items.push({type: 'lane', run: r, row, lane: at, name, category, y, h: LANE});
          y += LANE + 1;
        });
      });
      y += 6;
    }
    this.total = y + 4;
    this.resize();
  }

  resize() {
    const width = this.plot.clientWidth;
    const height = Math.max(120, Math.min(this.total, Math.round(window.innerHeight * 0.78)));
    this.painter.prepare(width, height);
    this.spacer.style.height = Math.max(0, this.total - height) + 'px';
    this.request();
  }

  request() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.paint();
    });
  }

  paint() {
    const begun = performance.now();
    const p = this.painter, view = this.view, left = this.left;
    const top = this.plot.scrollTop;
    p.clear();
    p.grid(view, left);
    p.context.save();
    p.context.beginPath();
    p.context.rect(0, AXIS, p.width, p.height - AXIS);
    p.context.clip();
    this.painted = 0;
    for (const item of this.items) {
      const y = item.y - top;
      if (y + item.h < AXIS || y > p.height) continue;
      this.paintItem(item, y, left);
    }
    p.context.restore();
    // Rows summed up per column ignore the clip: the axis goes on top again.
    p.axis(view, left, AXIS);
    this.paintGutter(top, left);
    this.paintOverview(left);
    this.lastPaint = performance.now() - begun;
    ++this.paints;
    const range = document.getElementById('range');
    range.textContent = `${Q.exact(Math.max(view.begin, 0))} to ${Q.exact(view.end)}`;
  }

  paintItem(item, y, left) {
    const p = this.painter, run = Q.runs[item.run];
    if (item.type === 'head') return;
    if (item.type === 'lane') {
      this.painted += p.kernels(run, item.lane, item.category, this.view, left, y, item.h, true);
      return;
    }
    const kernels = this.kernelStrip(run, item.row);
    const h = kernels ? Math.round(item.h * 0.55) : item.h;
    p.actions(run, item.row, this.view, left, y, h);
    this.painted += run.a_row[item.row + 1] - run.a_row[item.row];
    if (kernels) {
      p.kernels(
          run, run.firstLane[item.row], 'compute', this.view, left, y + h + 1, item.h - h - 1,
          true);
    }
    if (this.selected && this.selected.run === item.run && this.selected.row === item.row) {
      this.outline(run, y, item.h, left);
    }
  }

  // Whether the compute kernels of a row fill most of the view and are wide enough to see.
  kernelStrip(run, row) {
    if (this.streams.has('compute')) return false;  // they have a row of their own
    const {begin, end} = this.view;
    let covered = 0;
    for (const [from, to] of run.windows) {
      covered += Math.max(0, Math.min(to, end) - Math.max(from, begin));
    }
    if (covered < 0.5 * (end - begin)) return false;
    const lane = run.firstLane[row];
    const first = run.k_lane[lane], past = run.k_lane[lane + 1];
    const count = Q.upperBound(run.k_start, first, past, end) -
        Q.upperBound(run.k_end, first, past, begin);
    return count > 0 && count < (this.painter.width - this.left) / 3;
  }

  outline(run, y, h, left) {
    const c = this.painter.context, i = this.selected.action;
    const scale = (this.painter.width - left) / (this.view.end - this.view.begin);
    const x0 = left + (run.a_start[i] - this.view.begin) * scale;
    const x1 = left + (run.a_end[i] - this.view.begin) * scale;
    c.strokeStyle = this.painter.ink;
    c.lineWidth = 2;
    c.strokeRect(x0, y + 1, Math.max(3, x1 - x0), h - 2);
  }

  paintGutter(top, left) {
    const p = this.painter, c = p.context, narrow = left < 60;
    c.fillStyle = p.panel;
    c.fillRect(0, 0, left, p.height);
    c.fillStyle = p.line;
    c.fillRect(left - 1, AXIS, 1, p.height);
    for (const item of this.items) {
      const y = item.y - top;
      if (y + item.h < AXIS || y > p.height) continue;
      const middle = y + item.h / 2;
      if (item.type === 'head') {
        if (y < AXIS - 6) continue;
        const report = Q.report.runs[item.run];
        c.fillStyle = p.panel;
        c.fillRect(0, y, p.width, item.h);
        p.text(report.label, 6, middle + 1, {bold: true, size: 13});
        c.font = '600 13px system-ui, sans-serif';
        const after = c.measureText(report.label).width + 16;
        const hidden = Q.runs[item.run].rows_left_out;
        p.text(
            `${Q.seconds(report.step_time_s)}, MFU ${Q.percent(report.mfu.causal)}` +
                (hidden > 0 ? `; ${hidden} ranks are not in this file` : ''),
            after, middle + 1, {size: 12, color: p.quiet});
      } else if (item.type === 'row') {
        if (y < AXIS - item.h / 2) continue;
        const info = Q.runs[item.run].rows[item.row];
        const single = !Q.runs[item.run].severalPerStage;
        p.text(
            narrow     ? String(info.stage) :
                single ? `stage ${info.stage}` :
                         `${info.stage}: rank ${info.rank}`,
            left - 6, middle, {size: 11, align: 'right', room: left - 8});
      } else if (!narrow) {
        p.text(
            item.name, left - 6, middle,
            {size: 9.5, align: 'right', color: p.quiet, room: left - 8});
      }
    }
    c.fillStyle = p.panel;
    c.fillRect(0, 0, left, AXIS);
  }

  // Where the view lies in the step.
  paintOverview(left) {
    const c = this.painter.context, room = this.painter.width - left;
    c.fillStyle = this.painter.line;
    c.fillRect(left, AXIS - 3, room, 3);
    c.fillStyle = this.painter.accent;
    const x0 = left + Math.max(0, this.view.begin) / this.end * room;
    const x1 = left + Math.min(this.end, this.view.end) / this.end * room;
    c.fillRect(x0, AXIS - 3, Math.max(4, x1 - x0), 3);
  }

  // ---- the view ----

  setView(begin, end) {
    const least = 2e4;  // 20 ns
    let span = Math.min(Math.max(end - begin, least), this.end);
    const middle = (begin + end) / 2;
    begin = Math.min(Math.max(middle - span / 2, 0), this.end - span);
    this.view = {begin, end: begin + span};
    this.request();
  }
  zoom(factor, at) {
    const {begin, end} = this.view;
    const pivot = at === undefined ? (begin + end) / 2 : at;
    const span = Math.min(Math.max((end - begin) * factor, 2e4), this.end);
    const share = (pivot - begin) / (end - begin);
    this.setView(pivot - span * share, pivot + span * (1 - share));
  }
  pan(share) {
    const move = (this.view.end - this.view.begin) * share;
    this.setView(this.view.begin + move, this.view.end + move);
  }
  fit() {
    this.setView(0, this.end);
  }

  // The next place with kernels, wide enough to see them.
  toKernels() {
    const windows = [];
    for (const r of this.shownRuns) windows.push(...Q.runs[r].windows);
    if (windows.length === 0) return;
    windows.sort((a, b) => a[0] - b[0]);
    // From the whole step the first one, else the next after the middle of the view.
    const whole = this.view.end - this.view.begin >= this.end;
    const here = whole ? -1 : (this.view.begin + this.view.end) / 2;
    const next = windows.find(([b, e]) => (b + e) / 2 > here * 1.0000001 + 1) || windows[0];
    const run = Q.runs[[...this.shownRuns][0]];
    const kernels = Math.max(1, run.k_start.length / run.rows.length / run.windows.length);
    const span = Math.min(next[1] - next[0], (next[1] - next[0]) * 240 / kernels);
    const middle = (next[0] + next[1]) / 2;
    this.setView(middle - span / 2, middle + span / 2);
  }

  timeAt(x) {
    const room = this.painter.width - this.left;
    return this.view.begin + (x - this.left) / room * (this.view.end - this.view.begin);
  }
  itemAt(y) {
    const at = y + this.plot.scrollTop;
    return this.items.find((item) => at >= item.y && at < item.y + item.h + 1);
  }
}
Q.Timeline = Timeline;
})();
