// Numbers as text, and colours.
(function() {
'use strict';
const Q = window.quadrille;

// Four significant digits in the largest unit that leaves at least 1.
Q.duration = function(picoseconds) {
  const a = Math.abs(picoseconds);
  if (a === 0) return '0 s';
  for (const [unit, size] of [['s', 1e12], ['ms', 1e9], ['\u00b5s', 1e6], ['ns', 1e3]]) {
    if (a >= size) return trim((picoseconds / size).toPrecision(4)) + ' ' + unit;
  }
  return picoseconds + ' ps';
};
// Exact to a nanosecond.
Q.exact = (picoseconds) =>
    (picoseconds / 1e9).toLocaleString('en', {minimumFractionDigits: 6, maximumFractionDigits: 6}) +
    ' ms';
Q.seconds = (s) => Q.duration(s * 1e12);
Q.percent = (x, digits = 2) => (x * 100).toFixed(digits) + ' %';
Q.count = (x) => x.toLocaleString('en');
Q.bytes = function(b) {
  for (const [unit, size] of [['TB', 1e12], ['GB', 1e9], ['MB', 1e6], ['kB', 1e3]]) {
    if (Math.abs(b) >= size) return trim((b / size).toPrecision(4)) + ' ' + unit;
  }
  return b + ' B';
};
function trim(text) {
  return text.includes('e') ? String(Number(text)) : text;
}

// Okabe and Ito's palette, which stays apart for colour-blind eyes. Forward, backward, input
// gradient, weight gradient, optimizer, prologue (gradients are set to zero), gradient norm.
Q.actionColors = ['#3a87c8', '#1d9e77', '#e69f00', '#cc79a7', '#6f6f76', '#8d8d94', '#4a4a52'];
Q.actionNames = [
  'forward', 'backward', 'input gradient', 'weight gradient', 'optimizer', 'prologue',
  'gradient norm'
];
Q.actionLetters = ['F', 'B', 'I', 'W', '', '', ''];

// Program's states of a rank (sim/program/run_result.h), those that a gap can be in: its colour
// per theme and the angle of its hatching. What waits inside an action is of one family of colours,
// apart by hatching; the transfer between stages, which waits outside, has the purple that is safe
// beside orange, and no other.
Q.states = {
  2: {name: 'exposed tensor parallel', light: '#d55e00', dark: '#e8742a', hatch: 0},
  3: {name: 'exposed context parallel', light: '#b34d00', dark: '#c96a2c', hatch: 3},
  4: {name: 'exposed expert parallel', light: '#8c3a00', dark: '#b05a28', hatch: 4},
  5: {name: 'exposed p2p transfer', light: '#5d3a9b', dark: '#7b4fe0', hatch: 0},
  6: {name: 'exposed data parallel', light: '#d9c400', dark: '#e0d040', hatch: 0},
  8: {name: 'bubble: warm-up', light: '#d3dae3', dark: '#3a4553', hatch: 1},
  9: {name: 'bubble: steady', light: '#f0b8b0', dark: '#7a3b36', hatch: 2},
  10: {name: 'bubble: cool-down', light: '#d9d3e6', dark: '#443d57', hatch: 3},
  11: {name: 'bubble: barrier', light: '#dcdccf', dark: '#47473b', hatch: 4},
};
// Kernels and transfers by what they are.
Q.kernelColors = {
  gemm: '#4c6fb1',
  attention: '#7f4ea8',
  memory: '#5c9e9a',
  collective: '#d08a2e',
  tp: '#d55e00',
  cp: '#b8860b',
  ep: '#a0522d',
  pp: '#c2417c',
  dp: '#8a8f00',
  compute: '#4c6fb1',
  other: '#888888'
};
Q.kernelNames = {
  gemm: 'GEMM',
  attention: 'attention',
  memory: 'memory-bound kernel'
};
Q.kindNames = {
  tp: 'TP',
  cp: 'CP',
  ep: 'EP',
  pp: 'PP',
  dp: 'DP'
};
Q.laneNames = {
  compute: 'compute',
  tp: 'tensor parallel',
  cp: 'context parallel',
  ep: 'expert parallel',
  pp: 'point-to-point',
  dp: 'data parallel',
  other: 'other'
};
// Exposed communication in the charts, as near to its colour in the timeline as stacked bars allow.
Q.exposedColors = {
  tp: '#d55e00',
  cp: '#e69f00',
  ep: '#cc79a7',
  pp: '#7b4fe0',
  dp: '#d9c400'
};
Q.seriesColors = [
  '#0072b2', '#e69f00', '#009e73', '#d55e00', '#56b4e9', '#cc79a7', '#999999', '#7f4ea8', '#b8860b',
  '#4d4d4d'
];

Q.dark = () => document.documentElement.dataset.theme === 'dark';
Q.css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// An element with text or children; never markup.
Q.element = function(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== undefined && value !== null) node.setAttribute(name, value);
  }
  for (const child of children) node.append(child);
  return node;
};
})();
