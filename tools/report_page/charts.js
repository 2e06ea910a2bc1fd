// Bars and curves with Chart.js.
(function() {
'use strict';
const Q = window.quadrille;

function base() {
  const ink = Q.css('--ink'), quiet = Q.css('--quiet'), line = Q.css('--line');
  return {
    animation: false,
    responsive: true,
    maintainAspectRatio: false,
    color: ink,
    scale: {ticks: {color: quiet}, grid: {color: line}, title: {color: quiet}},
    axis: (title, more) => ({
      ticks: {color: quiet},
      grid: {color: line},
      title: {display: Boolean(title), text: title, color: quiet},
      ...more
    }),
    legend: {labels: {color: ink, boxWidth: 12, font: {size: 11}}},
  };
}

// A label in lines of at most `width` letters, words left whole.
function lines(text, width) {
  const result = [''];
  for (const word of text.split(' ')) {
    const last = result.length - 1;
    if (result[last] && result[last].length + 1 + word.length > width) {
      result.push(word);
    } else {
      result[last] += (result[last] ? ' ' : '') + word;
    }
  }
  return result;
}

// Whether a chart is as narrow as on a phone, where long names would leave no room for bars.
const narrow = (id) => document.getElementById(id).parentElement.clientWidth < 500;

let drawnNarrow = false;  // whether the charts were drawn so

const isAchieved = (step) => step.cause.startsWith('achieved');

// A single run: each loss hangs from what is left of the peak, down to what was achieved.
// Several: stacked bars.
function waterfall(runs) {
  const look = base();
  const color = (i) =>
      (i === 0 ? Q.seriesColors[2] :
                 Q.seriesColors.filter((c) => c !== Q.seriesColors[2])[(i - 1) % 9]);
  if (runs.length === 1) {
    const all = runs[0].waterfall;
    const steps =
        all.filter((s) => !isAchieved(s) && s.share_of_peak !== 0).concat(all.filter(isAchieved));
    let left = 1;
    const bars = steps.map((step) => {
      const from = left;
      left -= step.share_of_peak;
      return isAchieved(step) ? [0, step.share_of_peak * 100] : [from * 100, left * 100];
    });
    return {
      type: 'bar',
      data: {
        labels: steps.map((s) => (narrow('waterfall') ? lines(s.cause, 17) : s.cause)),
        datasets: [{
          data: bars,
          minBarLength: 3,
          backgroundColor: steps.map((s) => Q.seriesColors[isAchieved(s) ? 2 : 3])
        }]
      },
      options: {
        ...look,
        indexAxis: 'y',
        scales: {
          x: look.axis('% of peak', {min: 0, max: 100}),
          y: look.axis('', {
            ticks: {
              color: Q.css('--quiet'),
              autoSkip: false,
              font: {size: narrow('waterfall') ? 10 : 12}
            }
          })
        },
        plugins: {
          legend: {display: false},
          tooltip: {
            callbacks: {
              label: (item) =>
                  ` ${(steps[item.dataIndex].share_of_peak * 100).toFixed(2)} % of peak`
            }
          }
        }
      }
    };
  }
  // What was achieved comes first, at the axis.
  const steps = runs.flatMap((run) => run.waterfall).filter((s) => s.share_of_peak !== 0);
  const causes = [...new Set(steps.filter(isAchieved).concat(steps).map((s) => s.cause))];
  return stacked(
      runs, causes,
      (run, cause) =>
          100 * ((run.waterfall.find((s) => s.cause === cause) || {}).share_of_peak || 0),
      '% of peak', color, {max: 100});
}

function stacked(runs, keys, value, title, color, range) {
  const look = base();
  return {
    type: 'bar',
    data: {
      labels: runs.map((run) => run.label),
      datasets: keys.map(
          (key, i) =>
              ({label: key, data: runs.map((run) => value(run, key)), backgroundColor: color(i)}))
    },
    options: {
      ...look,
      indexAxis: 'y',
      scales: {
        x: look.axis(title, {stacked: true, min: 0, ...range}),
        y: look.axis('', {
          stacked: true,
          ticks:
              {color: Q.css('--quiet'), autoSkip: false, font: {size: runs.length > 14 ? 10 : 11}}
        })
      },
      plugins: {
        legend: {...look.legend, position: 'bottom'},
        tooltip: {
          callbacks: {
            label: (item) =>
                ` ${item.dataset.label}: ${Number(item.raw.toPrecision(4))} ${title.split(' ')[0]}`
          }
        }
      }
    }
  };
}

function exposed(runs) {
  const kinds = ['tp', 'cp', 'ep', 'pp', 'dp'].filter(
      (kind) => runs.some((run) => run.communication[kind] && run.communication[kind].total_s > 0));
  if (runs.length > 1) {
    return stacked(runs, kinds.map((k) => Q.kindNames[k]), (run, name) => {
      const kind = kinds.find((k) => Q.kindNames[k] === name);
      return (run.communication[kind] || {exposed_s: 0}).exposed_s;
    }, 's exposed per step', (i) => Q.exposedColors[kinds[i]], {});
  }
  const look = base();
  const of = (kind, key) => runs[0].communication[kind][key];
  return {
    type: 'bar',
    data: {
      labels: kinds.map((k) => Q.kindNames[k]),
      datasets: [
        {
          label: 'exposed',
          data: kinds.map((k) => of(k, 'exposed_s')),
          backgroundColor: Q.seriesColors[3]
        },
        {
          label: 'overlapped',
          data: kinds.map((k) => of(k, 'overlapped_s')),
          backgroundColor: Q.seriesColors[4]
        }
      ]
    },
    options: {
      ...look,
      indexAxis: 'y',
      scales:
          {x: look.axis('s per step', {stacked: true, min: 0}), y: look.axis('', {stacked: true})},
      plugins: {
        legend: {...look.legend, position: 'bottom'},
        tooltip: {callbacks: {label: (item) => ` ${item.dataset.label}: ${Q.seconds(item.raw)}`}}
      }
    }
  };
}

function memory(r) {
  const look = base();
  const timeline = Q.runs[r], capacity = Q.report.runs[r].memory.capacity_bytes;
  const datasets = timeline.memory.map(([stage, begin, end], i) => {
    const data = [];
    for (let k = begin; k < end; ++k)
      data.push({x: timeline.m_time[k] / 1e12, y: timeline.m_level[k] / 1e9});
    const many = timeline.memory.length > 10;
    const color =
        many ? `hsl(${Math.round(i * 300 / timeline.memory.length)} 60% 50%)` : Q.seriesColors[i];
    return {
      label: `stage ${stage}`,
      data,
      borderColor: color,
      backgroundColor: color,
      stepped: true,
      borderWidth: 1.5,
      pointRadius: 0
    };
  });
  datasets.push({
    label: 'capacity',
    data: [{x: 0, y: capacity / 1e9}, {x: timeline.end / 1e12, y: capacity / 1e9}],
    borderColor: Q.css('--bad'),
    backgroundColor: Q.css('--bad'),
    borderDash: [6, 4],
    borderWidth: 1.5,
    pointRadius: 0
  });
  return {
    type: 'line',
    data: {datasets},
    options: {
      ...look,
      parsing: false,
      normalized: true,
      interaction: {mode: 'nearest', axis: 'x', intersect: false},
      scales: {
        x: look.axis('s', {type: 'linear', min: 0, max: timeline.end / 1e12}),
        y: look.axis('GB', {min: 0})
      },
      plugins: {
        legend: {...look.legend, position: 'bottom'},
        tooltip: {
          callbacks: {
            title: (items) => `${items[0].parsed.x.toFixed(4)} s`,
            label: (item) => ` ${item.dataset.label}: ${item.parsed.y.toFixed(2)} GB`
          }
        }
      }
    }
  };
}

// Chart.js merges options by name, so our helpers must not get in.
function clean(config) {
  delete config.options.axis;
  delete config.options.legend;
  delete config.options.scale;
  return config;
}

Q.drawCharts = function() {
  for (const chart of Q.charts || []) chart.destroy();
  drawnNarrow = narrow('waterfall');
  const runs = Q.report.runs;
  const height = runs.length > 1 ? Math.max(320, 110 + runs.length * 24) : 320;
  for (const id of ['waterfall', 'exposed']) {
    const causes = runs.length === 1 && id === 'waterfall' ?
        runs[0].waterfall.filter((s) => s.share_of_peak !== 0).length :
        0;
    const room = narrow(id) ? Math.max(height, 60 + causes * 38) : height;
    document.getElementById(id).parentElement.style.height = room + 'px';
  }
  const make = (id, config) => new window.Chart(document.getElementById(id), clean(config));
  Q.charts = [make('waterfall', waterfall(runs)), make('exposed', exposed(runs))];
  const chosen = Number(document.getElementById('memory-run').value);
  if (Q.runs[chosen]) Q.charts.push(make('memory', memory(chosen)));
};

// Call when the window has another width; drawing anew only where long names are then written
// otherwise.
Q.resizeCharts = function() {
  if (drawnNarrow !== narrow('waterfall')) return Q.drawCharts();
  for (const chart of Q.charts || []) chart.resize();
};

Q.fillMemoryMenu = function() {
  const select = document.getElementById('memory-run');
  Q.report.runs.forEach((run, r) => {
    if (Q.runs[r]) select.append(Q.element('option', {value: r}, run.label));
  });
  select.hidden = select.options.length < 2;
  const own = Q.report.runs.findIndex((run, r) => run.own && Q.runs[r]);
  if (own >= 0) select.value = own;
  select.onchange = () => Q.drawCharts();
};
})();
