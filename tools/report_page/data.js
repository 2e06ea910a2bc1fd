// The embedded data, unpacked: window.quadrille.report is the JSON report, .page what the page
// needs besides, .runs one timeline per run (null without one).
//
// A timeline's arrays, all times in picoseconds from the start of the step:
//   a_row[row] .. a_row[row + 1]  its actions, in order
//   a_start, a_end                of the action
//   a_exposed                     the last part of the gap before it, in which a transfer ran
//   a_kind, a_kind2               0 F, 1 B, 2 I, 3 W, 4 optimizer, 5 prologue, 6 gradient norm;
//                                 kind2 255 unless a fused pair
//   a_microbatch(2), a_chunk(2)
//   a_phase, a_exposed_state      what the two parts of the gap are, as indices into states
//   a_source                      the action (index) whose message came last, or -1
//   k_lane[lane] .. k_lane[lane + 1]  operations of a lane; lanes of all rows one after the other
//   k_start, k_end, k_posted, k_bytes, k_name (into names), k_layer (-1: none)
//   k_action, k_waited            the action it belongs to, the operation it waited for; or -1
//   m_time, m_level               memory curves; `memory` has [stage, begin, end)
(function() {
'use strict';
const Q = window.quadrille = {};

function parse(id) {
  return JSON.parse(document.getElementById(id).textContent);
}

const types = {
  f64: Float64Array,
  u32: Uint32Array,
  i32: Int32Array,
  u16: Uint16Array,
  i16: Int16Array,
  u8: Uint8Array
};

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

async function unpack(timeline) {
  let bytes = bytesOf(timeline.data);
  if (timeline.encoding === 'gzip') {
    if (typeof DecompressionStream === 'undefined') {
      throw new Error('this browser cannot unpack the timeline (no DecompressionStream)');
    }
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  }
  for (const [name, [type, offset, count]] of Object.entries(timeline.arrays)) {
    timeline[name] = new types[type](bytes.buffer, offset, count);
  }
  delete timeline.data;
  delete timeline.arrays;
  let lane = 0;
  timeline.firstLane = timeline.lanes.map((lanes) => {
    const at = lane;
    lane += lanes.length;
    return at;
  });
  return timeline;
}

Q.load = async function() {
  Q.page = parse('page-data');
  Q.report = parse('report-data');
  const timelines = parse('timeline-data');
  Q.runs = [];
  for (const timeline of timelines) Q.runs.push(timeline ? await unpack(timeline) : null);
  Q.actionCount = Q.runs.reduce((n, t) => n + (t ? t.a_start.length : 0), 0);
  Q.kernelCount = Q.runs.reduce((n, t) => n + (t ? t.k_start.length : 0), 0);
};
})();
