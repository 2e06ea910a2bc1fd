// Wheel, pointer and keyboard on the timeline; the menus above it.
(function() {
'use strict';
const Q = window.quadrille;

function place(event, plot) {
  const box = plot.getBoundingClientRect();
  return [event.clientX - box.left - plot.clientLeft, event.clientY - box.top - plot.clientTop];
}

function showTip(timeline, event) {
  const tip = document.getElementById('tip');
  const found = Q.detailAt(timeline, ...place(event, timeline.plot));
  tip.hidden = !found;
  if (!found) return;
  tip.textContent = found.text;
  const w = tip.offsetWidth, h = tip.offsetHeight;
  const x = Math.min(event.clientX + 14, window.innerWidth - w - 6);
  const y =
      event.clientY + 18 + h > window.innerHeight ? event.clientY - h - 12 : event.clientY + 18;
  tip.style.left = Math.max(4, x) + 'px';
  tip.style.top = Math.max(4, y) + 'px';
}

Q.listenPointer = function(timeline) {
  const plot = timeline.plot;
  const tip = document.getElementById('tip');
  const pointers = new Map();
  let pinch = 0, moved = 0;
  plot.addEventListener('wheel', (event) => {
    const [x] = place(event, plot);
    if (x < timeline.left) return;  // over the names the rows scroll
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 18 : 1;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      timeline.pan((event.deltaX || event.deltaY) * unit / timeline.painter.width);
    } else {
      timeline.zoom(Math.exp(event.deltaY * unit * 0.002), timeline.timeAt(x));
    }
    tip.hidden = true;
  }, {passive: false});
  plot.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    pointers.set(event.pointerId, place(event, plot));
    moved = 0;
    if (event.pointerType === 'mouse') plot.setPointerCapture(event.pointerId);
  });
  plot.addEventListener('pointermove', (event) => {
    const at = place(event, plot);
    const before = pointers.get(event.pointerId);
    if (!before) {
      if (event.pointerType === 'mouse') showTip(timeline, event);
      return;
    }
    tip.hidden = true;
    pointers.set(event.pointerId, at);
    moved += Math.abs(at[0] - before[0]);
    const room = timeline.painter.width - timeline.left;
    if (pointers.size === 2) {
      const [a, b] = [...pointers.values()];
      const distance = Math.hypot(a[0] - b[0], a[1] - b[1]);
      if (pinch > 0) timeline.zoom(pinch / distance, timeline.timeAt((a[0] + b[0]) / 2));
      pinch = distance;
    } else if (moved > 3) {
      plot.classList.add('dragging');
      timeline.pan((before[0] - at[0]) / room);
      if (event.pointerType === 'mouse') plot.scrollTop += before[1] - at[1];
    }
  });
  const lift = (event) => {
    const down = pointers.delete(event.pointerId);
    pinch = 0;
    plot.classList.remove('dragging');
    if (!down || event.type !== 'pointerup' || moved > 3) return;
    select(timeline, Q.detailAt(timeline, ...place(event, plot)));
  };
  plot.addEventListener('pointerup', lift);
  plot.addEventListener('pointercancel', lift);
  plot.addEventListener('pointerleave', () => {
    tip.hidden = true;
  });
  plot.addEventListener('dblclick', (event) => {
    timeline.zoom(0.4, timeline.timeAt(place(event, plot)[0]));
  });
  plot.addEventListener('scroll', () => timeline.request());
};

// Marks an action and says in the line below what it is.
function select(timeline, found) {
  if (!found) return;
  const run = Q.runs[found.run];
  timeline.selected = found.action >= 0 ? found : null;
  const head = Q.runs.length > 1 ? Q.report.runs[found.run].label + ', ' : '';
  document.getElementById('detail').textContent = `${head}stage ${run.rows[found.row].stage}: ${
      found.text.replace(/\n/g, '. ').replace(/\.\./g, '.')}`;
  timeline.request();
}

function selectAction(timeline, run, row, action) {
  select(timeline, {run, row, action, text: Q.actionDetail(Q.runs[run], row, action)});
  const {begin, end} = timeline.view;
  const start = Q.runs[run].a_start[action], stop = Q.runs[run].a_end[action];
  if (start < begin || stop > end) {
    timeline.setView((start + stop - end + begin) / 2, (start + stop + end - begin) / 2);
  }
  const item = timeline.items.find((i) => i.type === 'row' && i.run === run && i.row === row);
  const top = timeline.plot.scrollTop, room = timeline.painter.height;
  if (item.y - top < 30 || item.y + item.h - top > room) {
    timeline.plot.scrollTop = item.y - room / 2;
  }
}

// One action on (or back), or to the action at the same time one row down (or up).
function walk(timeline, along, across) {
  const rows = timeline.items.filter((item) => item.type === 'row');
  if (rows.length === 0) return;
  const now = timeline.selected;
  if (!now) {
    const {run, row} = rows[0];
    const t = Q.runs[run];
    const first = Q.upperBound(t.a_end, t.a_row[row], t.a_row[row + 1] - 1, timeline.view.begin);
    selectAction(timeline, run, row, first);
    return;
  }
  let at = rows.findIndex((item) => item.run === now.run && item.row === now.row);
  at = Math.min(Math.max(at + across, 0), rows.length - 1);
  const {run, row} = rows[at];
  const t = Q.runs[run];
  const begin = t.a_row[row], last = t.a_row[row + 1] - 1;
  const from = across === 0 ?
      now.action :
      Q.upperBound(t.a_end, begin, last, Q.runs[now.run].a_start[now.action]);
  selectAction(timeline, run, row, Math.min(Math.max(from + along, begin), last));
}

Q.listenKeys = function(timeline) {
  timeline.plot.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const steps = {
      ArrowLeft: () => (event.shiftKey ? walk(timeline, -1, 0) : timeline.pan(-0.15)),
      ArrowRight: () => (event.shiftKey ? walk(timeline, 1, 0) : timeline.pan(0.15)),
      ArrowUp: () => (event.shiftKey ? walk(timeline, 0, -1) : timeline.plot.scrollBy(0, -40)),
      ArrowDown: () => (event.shiftKey ? walk(timeline, 0, 1) : timeline.plot.scrollBy(0, 40)),
      PageUp: () => timeline.plot.scrollBy(0, -300),
      PageDown: () => timeline.plot.scrollBy(0, 300),
      '+': () => timeline.zoom(0.6),
      '=': () => timeline.zoom(0.6),
      '-': () => timeline.zoom(1 / 0.6),
      0: () => timeline.fit(),
      Home: () => timeline.fit(),
      k: () => timeline.toKernels(),
    };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    step();
  });
  document.getElementById('zoom-in').onclick = () => timeline.zoom(0.5);
  document.getElementById('zoom-out').onclick = () => timeline.zoom(2);
  document.getElementById('fit').onclick = () => timeline.fit();
  document.getElementById('kernels').onclick = () => timeline.toKernels();
};

// A menu of checkboxes; `set` holds what is chosen, or what is not when `inverted`.
function menu(id, entries, set, inverted, changed) {
  const box = document.getElementById(id);
  const boxes = [];
  const apply = (value, on) => {
    if (on !== inverted)
      set.add(value);
    else
      set.delete(value);
  };
  const all = Q.element('div', {class: 'all'});
  for (const [text, on] of [['All', true], ['None', false]]) {
    const button = Q.element('button', {type: 'button'}, text);
    button.onclick = () => {
      for (const [input, value] of boxes) {
        input.checked = on;
        apply(value, on);
      }
      changed();
    };
    all.append(button);
  }
  box.append(all);
  for (const [value, text] of entries) {
    const input = Q.element('input', {type: 'checkbox'});
    input.checked = set.has(value) !== inverted;
    input.onchange = () => {
      apply(value, input.checked);
      changed();
    };
    boxes.push([input, value]);
    box.append(Q.element('label', {}, input, text));
  }
  if (entries.length < 2) box.parentElement.hidden = true;
}

Q.fillMenus = function(timeline) {
  const order = [...timeline.shownRuns];
  const changed = () => {
    // In the order of the report, whatever the order of the clicks.
    const kept = order.filter((r) => timeline.shownRuns.has(r));
    timeline.shownRuns.clear();
    kept.forEach((r) => timeline.shownRuns.add(r));
    timeline.layout();
  };
  menu(
      'choose-runs', order.map((r) => [r, Q.report.runs[r].label]), timeline.shownRuns, false,
      changed);
  const ranks = new Map();
  const streams = new Set();
  for (const r of order) {
    const stages = new Set();
    for (const info of Q.runs[r].rows) {
      if (stages.has(info.stage)) Q.runs[r].severalPerStage = true;
      stages.add(info.stage);
      ranks.set(
          info.rank,
          `stage ${info.stage}, rank ${info.rank}` +
              (info.multiplicity > 1 ? ` (stands for ${info.multiplicity})` : ''));
    }
    for (const lanes of Q.runs[r].lanes)
      for (const [, category] of lanes) streams.add(category);
  }
  menu('choose-ranks', [...ranks].sort((a, b) => a[0] - b[0]), timeline.hiddenRanks, true, changed);
  menu(
      'choose-streams', [...streams].map((s) => [s, Q.laneNames[s] || s]), timeline.streams, false,
      changed);
  document.addEventListener('pointerdown', (event) => {
    for (const open of document.querySelectorAll('.menu[open]')) {
      if (!open.contains(event.target)) open.open = false;
    }
  });
  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return;
    for (const open of document.querySelectorAll('.menu[open]')) {
      open.open = false;
      open.querySelector('summary').focus();
    }
  });
};
})();
