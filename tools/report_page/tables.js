// The figures of the report as cards and tables, straight from its JSON.
(function() {
'use strict';
const Q = window.quadrille;
const E = Q.element;
const MANY = 10;  // columns, above which a table is set closer

function table(caption, head, rows) {
  const body = rows.map(({name, cells, own}) => {
    const row = E('tr', own ? {class: 'own'} : {}, E('th', {scope: 'row'}, name));
    for (const cell of cells) {
      const {text, kind} = typeof cell === 'string' ? {text: cell} : cell;
      row.append(E('td', kind ? {class: kind} : {}, text));
    }
    return row;
  });
  // A column of words is headed on the left like its cells.
  const words = (c) => c > 0 && rows.length > 0 && rows[0].cells[c - 1].kind === 'text';
  const titles =
      head.map((text, c) => E('th', {scope: 'col', class: words(c) ? 'text' : undefined}, text));
  const scroll =
      E('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption},
        E('table', head.length > MANY ? {class: 'many'} : {},
          E('thead', {}, E('tr', {}, ...titles)), E('tbody', {}, ...body)));
  const box = E('div', {class: 'scroller'}, scroll);
  // Says on which side columns are hidden; the style draws it.
  const mark = () => {
    const hidden = scroll.scrollWidth - scroll.clientWidth - scroll.scrollLeft;
    box.classList.toggle('more-right', hidden > 1);
    box.classList.toggle('more-left', scroll.scrollLeft > 1);
  };
  scroll.addEventListener('scroll', mark, {passive: true});
  new ResizeObserver(mark).observe(scroll);
  return E('div', {}, E('h3', {}, caption), box);
}

function card(value, name, remark, bad) {
  return E(
      'div', {class: bad ? 'card bad' : 'card'}, E('b', {}, value), E('span', {}, name),
      E('span', {}, remark));
}

Q.cards = function(run) {
  const memory = run.memory;
  return [
    card(Q.seconds(run.step_time_s), 'step time', 'end of optimizer to end of optimizer'),
    card(
        Q.percent(run.mfu.causal), 'MFU',
        `causal attention halved; ${Q.percent(run.mfu.full)} ` +
            'with full squares' +
            (run.mfu_of_dropped_tokens > 0 ?
                 `; ${Q.percent(run.mfu_of_dropped_tokens)} of peak is of dropped tokens` :
                 '')),
    card(
        run.model_tflops_per_gpu.causal.toFixed(1), 'model TFLOP/s per GPU',
        `of ${run.peak_tflops_per_gpu.toFixed(1)} at peak; HFU ${Q.percent(run.hfu)}`),
    card(
        `${run.tokens_per_second_per_gpu.toFixed(1)}`, 'tokens/s/GPU',
        `${Q.count(run.world_size)} GPUs`),
    card(
        Q.percent(run.bubble.of_makespan), 'bubble of makespan',
        `of ideal ${Q.percent(run.bubble.of_ideal)}, of span ${Q.percent(run.bubble.of_span)}`),
    card(
        Q.bytes(memory.peak_bytes),
        memory.out_of_memory ? 'peak memory: does not fit' : 'peak memory',
        `stage ${memory.stage}, of ${Q.bytes(memory.capacity_bytes)}`, memory.out_of_memory),
  ];
};

// Marks the best of each column; `most` tells which end is the good one.
function columns(runs) {
  const kinds = ['tp', 'cp', 'ep', 'pp', 'dp'].filter(
      (kind) => runs.some(
          (run) => run.communication[kind] &&
              (run.communication[kind].total_s > 0 || run.communication[kind].exposed_s > 0)));
  const list = [
    ['step time', (r) => r.step_time_s, Q.seconds],
    ['MFU', (r) => r.mfu.causal, (x) => Q.percent(x), true],
    ['peak memory', (r) => r.memory.peak_bytes, Q.bytes],
    ['bubble of makespan', (r) => r.bubble.of_makespan, (x) => Q.percent(x)],
    ['of ideal', (r) => r.bubble.of_ideal, (x) => Q.percent(x)],
    ['of span', (r) => r.bubble.of_span, (x) => Q.percent(x)],
  ];
  for (const kind of kinds) {
    list.push([
      `exposed ${Q.kindNames[kind]}`, (r) => (r.communication[kind] || {exposed_s: 0}).exposed_s,
      Q.seconds
    ]);
  }
  list.push(['exposed hops', (r) => r.exposed_hops, (x) => String(Number(x.toPrecision(4)))]);
  list.push(['copies', (r) => r.parameter_copies, String]);
  list.push([
    'messages per microbatch', (r) => r.messages_per_microbatch,
    (x) => String(Number(x.toPrecision(4)))
  ]);
  return list;
}

// What belongs above the timeline, and what below.
Q.comparisonTables = function(report) {
  const runs = report.runs;
  const list = columns(runs);
  const rows = runs.map(
      (run) => ({
        name: run.label,
        own: run.own && Q.page.of_schedules,
        cells: [String(run.virtual_stages)].concat(list.map(([title, value, text, most]) => {
          const all = runs.map(value);
          const best = most ? Math.max(...all) : Math.min(...all);
          const alike = all.every((x) => x === all[0]);
          const full = title === 'peak memory' ?
              `${text(value(run))} @${run.memory.stage}${
                  run.memory.out_of_memory ? ' !' : ''}` :
              text(value(run));
          if (title === 'peak memory' && run.memory.out_of_memory) return {text: full, kind: 'bad'};
          return {text: full, kind: !alike && value(run) === best ? 'best' : ''};
        })),
      }));
  const head = [Q.page.of_schedules ? 'schedule' : 'run', 'virtual stages'].concat(
      list.map(([title]) => title));
  const blocking = runs.some((run) => run.exposed_hops_sends === 'blocking');
  const below = [];
  const above = [
    table('Side by side', head, rows),
    E('p', {class: 'quiet'},
      'MFU: causal attention halved. Bubble: idle outside actions over ranks x makespan; over ' +
          'time inside actions; and inside the worst rank\'s own span. Exposed communication: mean ' +
          'over ranks. Exposed hops: growth of the makespan over the time of one hop between ' +
          `ranks, under ${blocking ? 'blocking calls' : 'eager sends'}. @: pipeline ` +
          'rank of the peak, !: does not fit. Copies: of the parameters in one pipeline. A star ' +
          'marks the best of its column.')
  ];
  if (Q.page.of_schedules) {
    below.push(table(
        'What each trades',
        ['schedule', 'against the fastest that fits', 'how it works', 'layout and costs'],
        runs.map((run) => ({
                   name: run.label,
                   cells: [
                     run.trade, run.description, [run.layout, run.costs].filter(Boolean).join('; ')
                   ].map((text) => ({text, kind: 'text'}))
                 }))));
  } else if (report.differing_keys.length > 0) {
    above.push(table(
        'What differs', ['key'].concat(runs.map((run) => run.label)),
        report.differing_keys.map((key) => ({name: key.key, cells: key.values}))));
  }
  if (report.refused.length > 0) {
    above.push(table(
        'Refused', ['schedule', 'reason'],
        report.refused.map(
            (refused) =>
                ({name: refused.schedule, cells: [{text: refused.reason, kind: 'text'}]}))));
  }
  return {above, below};
};

// Tables of a single run.
Q.runTables = function(run) {
  const communication = Object.entries(run.communication)
                            .filter(([, c]) => c.total_s > 0 || c.exposed_s > 0)
                            .map(([kind, c]) => ({
                                   name: Q.kindNames[kind] || kind,
                                   cells: [
                                     Q.seconds(c.total_s), Q.seconds(c.overlapped_s),
                                     Q.seconds(c.exposed_s), Q.seconds(c.exposed_max_s),
                                     Q.bytes(c.bytes), Q.bytes(c.bus_bandwidth_bytes_per_s) + '/s'
                                   ]
                                 }));
  const stages =
      run.stages.map((stage) => ({
                       name: String(stage.stage),
                       cells: [
                         {text: stage.layers, kind: 'text'}, Q.bytes(stage.peak_memory_bytes),
                         String(stage.peak_activations), Q.percent(stage.bubble_of_makespan), {
                           text: Object.entries(stage.components)
                                     .map(([name, b]) => `${name} ${Q.bytes(b)}`)
                                     .join(', '),
                           kind: 'text'
                         }
                       ]
                     }));
  // Where ranks of a stage differ, the slowest of all beside the mean.
  const work = (rank) => rank.states_s.compute + rank.states_s.optimizer;
  const slowest = run.stages.map((stage) => stage.slowest_rank)
                      .filter((rank) => rank)
                      .reduce((a, b) => a !== null && work(a) >= work(b) ? a : b, null);
  const states = Object.entries(run.states_s)
                     .filter(([name, s]) => s > 0 || (slowest && slowest.states_s[name] > 0))
                     .map(([name, s]) => ({
                            name: name.replace(/_/g, ' '),
                            cells: [Q.seconds(s), Q.percent(s / run.step_time_s)].concat(
                                slowest === null ? [] : [Q.seconds(slowest.states_s[name])])
                          }));
  const waterfall =
      run.waterfall.map((step) => ({name: step.cause, cells: [Q.percent(step.share_of_peak)]}));
  if (run.mfu_of_dropped_tokens > 0) {
    waterfall.push({
      name: 'dropped tokens: counted by MFU on top, take no time',
      cells: [Q.percent(run.mfu_of_dropped_tokens)]
    });
  }
  const path = run.critical_path === null ? [] : [table(
      'Critical path: what bounds the step', ['cause', 'time', 'of step', 'operations'],
      run.critical_path.causes.map((c) => ({
                                     name: c.cause,
                                     cells: [
                                       Q.seconds(c.time_s), Q.percent(c.share),
                                       Q.count(c.operations)
                                     ]
                                   })))];
  return [
    table(
        'Communication, mean over ranks',
        ['kind', 'total', 'overlapped', 'exposed', 'exposed, worst rank', 'bytes', 'bus bandwidth'],
        communication),
    table(
        'Pipeline stages',
        ['stage', 'layers', 'peak memory', 'activations', 'bubble', 'at the peak'], stages),
    table(
        'Where the time of a rank goes (mean; sums to the step)',
        ['state', 'time', 'of step'].concat(
            slowest === null ? [] : [`slowest rank, ${slowest.rank}`]),
        states),
    table('From peak to achieved', ['cause', 'share of peak'], waterfall),
    ...path,
  ];
};

Q.fillScenario = function() {
  const texts = document.getElementById('scenario-texts');
  for (const scenario of Q.page.scenarios) {
    texts.append(E('h3', {}, scenario.name), E('pre', {tabindex: '0'}, scenario.text));
  }
  const box = document.getElementById('assumptions');
  const run = Q.report.runs[0];
  if (!run) return;
  if (Q.page.chosen.length > 0) {
    box.append(table(
        'Chosen because the run does not say', ['key', 'value', 'reason'],
        Q.page.chosen.map(
            (c) => ({name: c.key, cells: [c.value, {text: c.reason, kind: 'text'}]}))));
  }
  if (run.warnings.length > 0) {
    box.append(E('h3', {}, 'Warnings'), E('ul', {}, ...run.warnings.map((w) => E('li', {}, w))));
  }
  if (run.assumptions.length > 0) {
    const rows = run.assumptions.map(
        (a) => ({
          name: a.what,
          cells: [a.kind, {text: a.where, kind: 'text'}, {text: a.source, kind: 'text'}]
        }));
    box.append(
        E('details', {}, E('summary', {}, `${rows.length} constants that are not certain`),
          table('Constants that are not certain', ['constant', 'kind', 'of', 'source'], rows)));
  }
};
})();
