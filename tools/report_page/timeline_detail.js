// What is under the pointer, in words.
(function() {
'use strict';
const Q = window.quadrille;
const NO_ACTION = 255;

function chunkText(run, chunk) {
  return run.chunks > 1 ? `, chunk ${chunk}` : '';
}

Q.actionName = function(run, i) {
  const kind = run.a_kind[i];
  if (kind >= 4) return Q.actionNames[kind];
  let text =
      `${Q.actionLetters[kind]} ${run.a_microbatch[i]} (${Q.actionNames[kind]}, microbatch ` +
      `${run.a_microbatch[i]}${chunkText(run, run.a_chunk[i])})`;
  if (run.a_kind2[i] !== NO_ACTION) {
    const second = run.a_kind2[i];
    text += ` fused with ${Q.actionLetters[second]} ${run.a_microbatch2[i]}` +
        ` (${Q.actionNames[second]}${chunkText(run, run.a_chunk2[i])})`;
  }
  return text;
};

function stageOf(run, action) {
  const row = Q.upperBound(run.a_row, 0, run.a_row.length, action) - 1;
  return run.rows[row].stage;
}

// What the action waited for since the one before it ended.
function waitText(run, i, gap) {
  const idle = run.a_start[i] - gap;
  if (idle <= 0) return 'It did not wait.';
  const bubble = idle - run.a_exposed[i];
  const lines = [];
  if (bubble > 0) lines.push(`${Q.duration(bubble)} ${Q.states[run.a_phase[i]].name}`);
  if (run.a_exposed[i] > 0) {
    lines.push(`${Q.duration(run.a_exposed[i])} ${Q.states[run.a_exposed_state[i]].name}`);
  }
  let text = `Waited ${Q.duration(idle)}: ${lines.join(', ')}.`;
  const source = run.a_source[i];
  if (source >= 0) {
    text += ` It needed ${Q.actionName(run, source)} of stage ${stageOf(run, source)}, which ` +
        `ended at ${Q.exact(run.a_end[source])}.`;
  }
  return text;
}

Q.actionDetail = function(run, row, i) {
  const gap = i > run.a_row[row] ? run.a_end[i - 1] : 0;
  return `${Q.actionName(run, i)}\n${Q.exact(run.a_start[i])} to ${Q.exact(run.a_end[i])}, lasts ` +
      `${Q.duration(run.a_end[i] - run.a_start[i])}\n${waitText(run, i, gap)}`;
};

function gapDetail(run, i, gap, t) {
  const turn = run.a_start[i] - run.a_exposed[i];
  const exposed = t >= turn;
  const state = Q.states[exposed ? run.a_exposed_state[i] : run.a_phase[i]];
  const [from, to] = exposed ? [turn, run.a_start[i]] : [gap, turn];
  return `${state.name}: ${Q.duration(to - from)}\n${Q.exact(from)} to ${Q.exact(to)}\nBefore ` +
      `${Q.actionName(run, i)}. ${waitText(run, i, gap)}`;
}

Q.kernelDetail = function(run, i, category) {
  const [name, , pass] = run.names[run.k_name[i]];
  const lines =
      [`${name}${pass ? ', ' + pass : ''}` +
       (run.k_layer[i] >= 0 ? `, layer ${run.k_layer[i]}` : '')];
  lines.push(
      `${Q.exact(run.k_start[i])} to ${Q.exact(run.k_end[i])}, lasts ` +
      Q.duration(run.k_end[i] - run.k_start[i]));
  if (run.k_bytes[i] > 0) {
    const rate = run.k_bytes[i] / ((run.k_end[i] - run.k_start[i]) / 1e12);
    lines.push(`${Q.bytes(run.k_bytes[i])}, ${Q.bytes(rate)}/s on the bus`);
  }
  const waited = run.k_start[i] - run.k_posted[i];
  if (category !== 'compute' && waited > 0) {
    lines.push(`Was ready ${Q.duration(waited)} before its peers.`);
  }
  const other = run.k_waited[i];
  if (other >= 0)
    lines.push(
        `Waited for ${run.names[run.k_name[other]][0]}, which ended at ` +
        `${Q.exact(run.k_end[other])}.`);
  if (run.k_action[i] >= 0) lines.push(`Of ${Q.actionName(run, run.k_action[i])}.`);
  return lines.join('\n');
};

function kernelAt(run, lane, t, slack) {
  const begin = run.k_lane[lane], end = run.k_lane[lane + 1];
  const i = Q.upperBound(run.k_end, begin, end, t - slack);
  return i < end && run.k_start[i] <= t + slack ? i : -1;
}

// Text about the point (x, y) of the plot, and the action there; null where there is nothing.
Q.detailAt = function(timeline, x, y) {
  if (x < timeline.left) return null;
  const item = timeline.itemAt(y);
  if (!item || item.type === 'head') return null;
  const run = Q.runs[item.run];
  const t = timeline.timeAt(x);
  const slack = (timeline.view.end - timeline.view.begin) / timeline.painter.width;
  const inside = y + timeline.plot.scrollTop - item.y;
  const where = {run: item.run, row: item.row};
  if (item.type === 'lane') {
    const k = kernelAt(run, item.lane, t, slack);
    return k < 0 ? null :
                   {...where, text: Q.kernelDetail(run, k, item.category), action: run.k_action[k]};
  }
  if (timeline.kernelStrip(run, item.row) && inside > item.h * 0.55) {
    const k = kernelAt(run, run.firstLane[item.row], t, 0);
    if (k >= 0) return {...where, text: Q.kernelDetail(run, k, 'compute'), action: run.k_action[k]};
  }
  const begin = run.a_row[item.row], end = run.a_row[item.row + 1];
  const i = Q.upperBound(run.a_end, begin, end, t);
  if (i >= end) return null;
  if (t >= run.a_start[i]) return {...where, action: i, text: Q.actionDetail(run, item.row, i)};
  return {...where, action: i, text: gapDetail(run, i, i > begin ? run.a_end[i - 1] : 0, t)};
};
})();
