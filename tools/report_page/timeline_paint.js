// Paints rows of the timeline on a canvas.
//
// A row whose rectangles are a few pixels wide is painted one by one. A denser one is summed up per
// column of pixels: each column is divided among what happened in its span of time, so that no
// bubble disappears however far one zooms out.
(function() {
'use strict';
const Q = window.quadrille;

const KINDS = 7;
const SERIES = KINDS + 16;  // kinds of actions, then states of gaps
const NO_ACTION = 255;

// The first index in [begin, end) whose array value is greater than t.
function upperBound(array, begin, end, t) {
  while (begin < end) {
    const middle = (begin + end) >>> 1;
    if (array[middle] > t)
      end = middle;
    else
      begin = middle + 1;
  }
  return begin;
}
Q.upperBound = upperBound;

function rgb(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}
function mixed(hex, other, share) {
  const a = rgb(hex), b = rgb(other);
  return '#' +
      a.map((v, i) => Math.round(v + (b[i] - v) * share).toString(16).padStart(2, '0')).join('');
}
function inkOn(hex) {
  const [r, g, b] = rgb(hex).map((v) => {
    const c = v / 255;
    return c <= 0.04 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.26 ? '#10151c' : '#ffffff';
}
function pixel(hex) {
  const [r, g, b] = rgb(hex);
  return (255 << 24 | b << 16 | g << 8 | r) >>> 0;
}

class Painter {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext('2d', {alpha: false});
    this.columns = new Float64Array(0);
  }

  // Call when the size or the theme has changed.
  prepare(width, height) {
    this.ratio = Math.min(window.devicePixelRatio || 1, 3);
    this.width = width;
    this.height = height;
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
    this.canvas.style.width = width + 'px';
    this.canvas.style.height = height + 'px';
    const theme = Q.dark() ? 'dark' : 'light';
    this.ground = Q.css('--row');
    this.ink = Q.css('--ink');
    this.quiet = Q.css('--quiet');
    this.line = Q.css('--line');
    this.accent = Q.css('--accent');
    this.panel = Q.css('--panel');
    this.stateColors = {};
    this.patterns = {};
    for (const [state, look] of Object.entries(Q.states)) {
      this.stateColors[state] = look[theme];
      this.patterns[state] = this.hatched(look[theme], look.hatch);
    }
    this.pixels = new Uint32Array(SERIES);
    Q.actionColors.forEach((color, kind) => {
      this.pixels[kind] = pixel(color);
    });
    for (const state of Object.keys(Q.states)) {
      this.pixels[KINDS + Number(state)] = pixel(this.stateColors[state]);
    }
    this.actionStyles = {};
  }

  hatched(color, kind) {
    if (kind === 0) return color;
    const size = 8;
    const tile = document.createElement('canvas');
    tile.width = tile.height = size;
    const c = tile.getContext('2d');
    c.fillStyle = color;
    c.fillRect(0, 0, size, size);
    c.strokeStyle = mixed(color, Q.dark() ? '#ffffff' : '#000000', 0.16);
    c.beginPath();
    const lines = {1: [[0, 8, 8, 0]], 2: [[0, 0, 8, 8]], 3: [[4, 0, 4, 8]], 4: [[0, 4, 8, 4]]};
    for (const [x0, y0, x1, y1] of lines[kind]) {
      c.moveTo(x0, y0);
      c.lineTo(x1, y1);
    }
    c.stroke();
    return this.context.createPattern(tile, 'repeat');
  }

  // Deeper chunks are lighter, so that the passes of one microbatch can be told apart.
  actionStyle(kind, chunk, chunks) {
    const key = kind * 256 + chunk;
    let style = this.actionStyles[key];
    if (!style || style.chunks !== chunks) {
      const share = chunks > 1 ? 0.5 * chunk / (chunks - 1) : 0;
      const color = mixed(Q.actionColors[kind], Q.dark() ? '#20242b' : '#ffffff', share);
      style = this.actionStyles[key] = {color, ink: inkOn(color), chunks};
    }
    return style;
  }

  clear() {
    this.context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.context.fillStyle = this.ground;
    this.context.fillRect(0, 0, this.width, this.height);
  }

  // Actions of one row in the band [y, y + h) right of `left`; returns whether one by one.
  actions(run, row, view, left, y, h) {
    const begin = run.a_row[row], end = run.a_row[row + 1];
    const first = upperBound(run.a_end, begin, end, view.begin);
    let last = upperBound(run.a_start, begin, end, view.end);
    if (last < end) ++last;  // the gap before the next one reaches into view
    const room = this.width - left;
    if (last - first > room / 4) {
      this.dense(run, begin, first, last, view, left, y, h);
      return false;
    }
    const scale = room / (view.end - view.begin);
    for (let i = first; i < last; ++i) this.action(run, begin, i, view, scale, left, y, h);
    return true;
  }

  action(run, rowBegin, i, view, scale, left, y, h) {
    const c = this.context;
    const x = (t) => left + Math.min(Math.max((t - view.begin) * scale, -2), this.width - left + 2);
    const gap = i > rowBegin ? run.a_end[i - 1] : 0;
    const start = run.a_start[i], end = run.a_end[i];
    if (start > gap) {
      const turn = start - run.a_exposed[i];
      this.band(this.patterns[run.a_phase[i]], x(gap), x(turn), y, h);
      this.band(this.patterns[run.a_exposed_state[i]], x(turn), x(start), y, h);
    }
    const fused = run.a_kind2[i] !== NO_ACTION;
    const middle = fused ? (start + end) / 2 : end;
    this.half(
        run.a_kind[i], run.a_microbatch[i], run.a_chunk[i], run.chunks, x(start), x(middle), y, h);
    if (fused) {
      this.half(
          run.a_kind2[i], run.a_microbatch2[i], run.a_chunk2[i], run.chunks, x(middle), x(end), y,
          h);
    }
    if (end > start && x(end) - x(start) > 3) {
      c.fillStyle = this.ground;
      c.fillRect(x(end) - 0.5, y, 0.5, h);
    }
  }

  band(fill, x0, x1, y, h) {
    if (x1 <= x0 || !fill) return;
    this.context.fillStyle = fill;
    this.context.fillRect(x0, y, x1 - x0, h);
  }

  half(kind, microbatch, chunk, chunks, x0, x1, y, h) {
    const c = this.context;
    const style = kind < 4 ? this.actionStyle(kind, chunk, chunks) : this.actionStyle(kind, 0, 1);
    c.fillStyle = style.color;
    c.fillRect(x0, y, Math.max(x1 - x0, 0.5), h);
    if (h < 9 || x1 - x0 < 9) return;
    const text = kind < 4 ? String(microbatch) : Q.actionNames[kind];
    const size = Math.min(12, h - 2);
    c.font = `${size}px system-ui, sans-serif`;
    const width = text.length * size * 0.58;
    const from = Math.max(x0, 0), to = Math.min(x1, this.width);
    if (width + 4 > to - from) return;
    c.fillStyle = style.ink;
    c.textAlign = 'center';
    c.textBaseline = 'middle';
    c.fillText(text, (from + to) / 2, y + h / 2 + 0.5);
  }

  dense(run, rowBegin, first, last, view, left, y, h) {
    const columns = Math.max(1, Math.round((this.width - left) * this.ratio));
    const lines = Math.max(1, Math.round(h * this.ratio));
    if (this.columns.length < columns * SERIES) this.columns = new Float64Array(columns * SERIES);
    const sums = this.columns;
    sums.fill(0, 0, columns * SERIES);
    const scale = columns / (view.end - view.begin);
    const add = (series, from, to) => {
      let a = (from - view.begin) * scale, b = (to - view.begin) * scale;
      if (a < 0) a = 0;
      if (b > columns) b = columns;
      while (a < b) {
        const column = Math.floor(a);
        const next = Math.min(b, column + 1);
        sums[column * SERIES + series] += next - a;
        a = next;
      }
    };
    for (let i = first; i < last; ++i) {
      const start = run.a_start[i], end = run.a_end[i];
      const gap = i > rowBegin ? run.a_end[i - 1] : 0;
      if (start > gap) {
        const turn = start - run.a_exposed[i];
        add(KINDS + run.a_phase[i], gap, turn);
        add(KINDS + run.a_exposed_state[i], turn, start);
      }
      if (run.a_kind2[i] === NO_ACTION) {
        add(run.a_kind[i], start, end);
      } else {
        add(run.a_kind[i], start, (start + end) / 2);
        add(run.a_kind2[i], (start + end) / 2, end);
      }
    }
    this.paintColumns(sums, columns, lines, left, y);
  }

  paintColumns(sums, columns, lines, left, y) {
    const image = this.context.createImageData(columns, lines);
    const out = new Uint32Array(image.data.buffer);
    const ground = pixel(this.ground);
    for (let column = 0; column < columns; ++column) {
      let covered = 0, line = 0;
      for (let series = 0; series < SERIES; ++series) {
        const share = sums[column * SERIES + series];
        if (share === 0) continue;
        covered += share;
        const to = Math.min(lines, Math.round(covered * lines));
        for (; line < to; ++line) out[line * columns + column] = this.pixels[series];
      }
      for (; line < lines; ++line) out[line * columns + column] = ground;
    }
    this.context.putImageData(image, Math.round(left * this.ratio), Math.round(y * this.ratio));
  }

  // Kernels of one lane; returns how many were in view.
  kernels(run, lane, category, view, left, y, h, labels) {
    const begin = run.k_lane[lane], end = run.k_lane[lane + 1];
    const first = upperBound(run.k_end, begin, end, view.begin);
    const last = upperBound(run.k_start, begin, end, view.end);
    const c = this.context;
    const scale = (this.width - left) / (view.end - view.begin);
    let painted = -1;
    for (let i = first; i < last; ++i) {
      const x0 = Math.max(left, left + (run.k_start[i] - view.begin) * scale);
      const x1 = Math.min(this.width, left + (run.k_end[i] - view.begin) * scale);
      if (x1 <= painted) continue;
      const [name, kind] = run.names[run.k_name[i]];
      const color = Q.kernelColors[category === 'compute' ? kind : category];
      c.fillStyle = color;
      const width = Math.max(x1 - x0 - (x1 - x0 > 3 ? 0.5 : 0), 0.6);
      c.fillRect(x0, y, width, h);
      painted = Math.floor(x0 * this.ratio + 1) / this.ratio;
      if (!labels || h < 9) continue;
      const size = Math.min(11, h - 1);
      if (width < name.length * size * 0.55 + 6) continue;
      c.font = `${size}px system-ui, sans-serif`;
      c.fillStyle = inkOn(color);
      c.textAlign = 'center';
      c.textBaseline = 'middle';
      c.fillText(name, (x0 + x1) / 2, y + h / 2 + 0.5);
    }
    return last - first;
  }

  text(text, x, y, options) {
    const c = this.context;
    c.font = `${options.bold ? '600 ' : ''}${options.size || 12}px system-ui, sans-serif`;
    c.fillStyle = options.color || this.ink;
    c.textAlign = options.align || 'left';
    c.textBaseline = 'middle';
    c.fillText(text, x, y, options.room);
  }

  // Times that deserve a line, with the number that stands beside each.
  ticks(view, left) {
    const goal = (view.end - view.begin) / Math.max(2, (this.width - left) / 90);
    const power = 10 ** Math.floor(Math.log10(goal));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= goal);
    const [unit, size] = step >= 1e11 ? ['s', 1e12] :
        step >= 1e8                   ? ['ms', 1e9] :
        step >= 1e5                   ? ['\u00b5s', 1e6] :
                                        ['ns', 1e3];
    const digits = Math.max(0, -Math.floor(Math.log10(step / size) + 1e-9));
    const list = [];
    for (let t = Math.ceil(view.begin / step) * step; t <= view.end; t += step) {
      const x = left + (t - view.begin) / (view.end - view.begin) * (this.width - left);
      const number = (t / size).toLocaleString(
          'en', {minimumFractionDigits: digits, maximumFractionDigits: digits});
      list.push([x, `${number} ${unit}`]);
    }
    return list;
  }

  grid(view, left) {
    this.context.fillStyle = this.line;
    for (const [x] of this.ticks(view, left)) this.context.fillRect(x, 0, 1, this.height);
  }

  axis(view, left, height) {
    const c = this.context;
    c.fillStyle = this.panel;
    c.fillRect(0, 0, this.width, height);
    for (const [x, text] of this.ticks(view, left)) {
      c.fillStyle = this.line;
      c.fillRect(x, 0, 1, height);
      if (x < this.width - 40)
        this.text(text, x + 4, height / 2 - 1, {size: 11, color: this.quiet});
    }
  }
}
Q.Painter = Painter;
})();
