// Puts the page together.
(function() {
'use strict';
const Q = window.quadrille;

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  document.getElementById('theme').textContent = dark ? 'Light' : 'Dark';
}

// The hatching of the timeline, for a swatch.
function hatched(color, hatch) {
  if (hatch === 0) return color;
  const angle = [0, 135, 45, 90, 0][hatch];
  const line = Q.dark() ? 'rgb(255 255 255 / 0.35)' : 'rgb(0 0 0 / 0.35)';
  return `repeating-linear-gradient(${angle}deg, ${line} 0 1px, transparent 1px 4px), ${color}`;
}

function adder(id) {
  const box = document.getElementById(id);
  box.replaceChildren();
  return (color, text) => box.append(
             Q.element(
                 'span', {}, Q.element('i', {class: 'swatch', style: `background:${color}`}), text));
}

// Kernels and streams of those runs that kept any.
function kernelLegend() {
  const add = adder('kernel-legend');
  const kinds = new Set(), streams = new Set();
  for (const run of Q.runs) {
    if (!run) continue;
    for (const [, kind] of run.names) kinds.add(kind);
    for (const lanes of run.lanes)
      for (const [, category] of lanes) streams.add(category);
  }
  for (const [kind, name] of Object.entries(Q.kernelNames)) {
    if (kinds.has(kind)) add(Q.kernelColors[kind], name);
  }
  for (const kind of Object.keys(Q.kindNames)) {
    if (streams.has(kind)) add(Q.kernelColors[kind], `${Q.laneNames[kind]} transfer`);
  }
}

function legend() {
  const add = adder('legend');
  const kinds = new Set(), phases = new Set();
  for (const run of Q.runs) {
    if (!run) continue;
    for (const array of [run.a_kind, run.a_kind2])
      for (const kind of array) kinds.add(kind);
    run.a_row.forEach((begin, row) => {
      for (let i = begin; i < (run.a_row[row + 1] || begin); ++i) {
        const idle = run.a_start[i] - (i > begin ? run.a_end[i - 1] : 0);
        if (run.a_exposed[i] > 0) phases.add(run.a_exposed_state[i]);
        if (idle > run.a_exposed[i]) phases.add(run.a_phase[i]);
      }
    });
  }
  Q.actionNames.forEach((name, kind) => {
    if (kinds.has(kind)) add(Q.actionColors[kind], `${Q.actionLetters[kind]} ${name}`.trim());
  });
  for (const [state, look] of Object.entries(Q.states)) {
    if (!phases.has(Number(state))) continue;
    add(hatched(Q.dark() ? look.dark : look.light, look.hatch), look.name);
  }
}

function subtitle() {
  const run = Q.report.runs[0];
  if (!run) return '';
  const s = run.scenario, p = s.parallel;
  const degrees =
      [['TP', p.tensor], ['PP', p.pipeline], ['CP', p.context], ['EP', p.expert], ['DP', p.data]]
          .filter(([, n]) => n > 1)
          .map(([name, n]) => `${name} ${n}`)
          .join(' \u00d7 ');
  const shared =
      `${s.model.name} on ${Q.count(run.world_size)} ${s.cluster.gpu} (${s.cluster.name})`;
  const batch = `${run.microbatches} microbatches per replica, sequence length ` +
      `${Q.count(s.training.sequence_length)}, ${s.training.precision}`;
  const schedule =
      Q.page.replay ? `, ${s.schedule.name} with ${p.virtual_stages} virtual stages` : '';
  return Q.page.replay || Q.page.of_schedules ?
      `${shared}: ${degrees || 'one GPU'}${schedule}; ${batch}` :
      '';
}

function fill() {
  const runs = Q.report.runs;
  document.getElementById('subtitle').textContent = subtitle();
  if (Q.page.replay || Q.page.of_schedules) {
    document.getElementById('switches').textContent = Q.page.switches;
  }
  document.getElementById('summary-title').textContent = Q.page.replay ? 'Step' : 'Comparison';
  if (Q.page.replay && runs.length > 0) {
    document.getElementById('cards').append(...Q.cards(runs[0]));
    document.getElementById('tables').append(...Q.runTables(runs[0]));
  } else {
    const {above, below} = Q.comparisonTables(Q.report);
    document.getElementById('comparison').append(...above);
    document.getElementById('tables').append(...below);
  }
  Q.fillScenario();
  const marks = runs.length === 1 ? `, scenario ${runs[0].scenario_hash}, seed ${
                                        runs[0].seed}, fingerprint ${runs[0].fingerprint}` :
      runs.length > 1 ? `, seed ${runs[0].seed}` :
                        '';
  document.getElementById('identity').textContent =
      `Quadrille ${Q.report.version}${marks}. Charts: Chart.js, MIT licence.`;
}

async function start() {
  const prefers = window.matchMedia('(prefers-color-scheme: dark)');
  setTheme(prefers.matches);
  await Q.load();
  fill();
  Q.fillMemoryMenu();
  const timeline = Q.runs.some(Boolean) ? new Q.Timeline() : null;
  if (timeline) {
    Q.timeline = timeline;
    Q.fillMenus(timeline);
    timeline.layout();
    Q.listenPointer(timeline);
    Q.listenKeys(timeline);
    window.addEventListener('resize', () => timeline.resize());
  } else {
    document.getElementById('timeline').hidden = true;
  }
  const redraw = () => {
    legend();
    kernelLegend();
    Q.drawCharts();
    if (timeline) timeline.resize();
  };
  // A phone that is turned: names are broken into lines by the width.
  window.addEventListener('resize', () => Q.resizeCharts());
  document.getElementById('theme').onclick = () => {
    setTheme(!Q.dark());
    redraw();
  };
  prefers.addEventListener('change', (event) => {
    setTheme(event.matches);
    redraw();
  });
  redraw();
  // What the address asks for lies elsewhere since everything was filled in.
  const asked = document.getElementById(window.location.hash.slice(1));
  if (asked) asked.scrollIntoView();
  document.documentElement.dataset.ready = 'true';
}

start().catch((error) => {
  console.error(error);
  document.querySelector('main').prepend(Q.element(
      'p', {class: 'card bad', role: 'alert'}, `This report could not be drawn: ${error.message}`));
});
})();
