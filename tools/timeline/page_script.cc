// The script of a timeline's page. It draws on a canvas, as a call may have 100,000 steps.
#include "tools/timeline/page_parts.h"

namespace mscclc::timeline {

const std::string_view kPageScript = R"html(<script>
'use strict';
const at = (id) => document.getElementById(id);
window.addEventListener('error', (e) => { at('say').textContent = 'error: ' + e.message; });
const data = JSON.parse(at('data').textContent);
const canvas = at('canvas'), tip = at('tip'), pen = canvas.getContext('2d');

// ---- what is shown ----

const kColours = {moves: '#3b82c4', sums: '#d05353', packets: '#3f9a5c', signals: '#d99a1c',
                  waits: '#94a3b8', meets: '#8b6cc0'};
const kWords = {moves: 'moves data', sums: 'adds up', packets: 'packets', signals: 'signals',
                waits: 'wait ops', meets: 'blocks or threads meet'};
// The causes have colours that no step has.
const kCauses = {launch: ['#1e293b', 'getting from one call to the next'],
                 latency: ['#b83280', 'messages that are on their way'],
                 link: ['#0f766e', 'bytes that wait for the rate of a link, or of a copy engine'],
                 block: ['#7c4a21', 'loads, stores and sums of the threads of a block'],
                 sync: ['#5b6b1a', 'signals, waits, fences and meetings of threads'],
                 proxy: ['#0e91ab', 'requests to the proxy of a port, and waiting for its copies'],
                 step: ['#52525b', 'the steps on the path: stamps do not say what each spent its time on']};
// The fields of a slice.
const RANK = 0, BLOCK = 1, OP = 2, ROUND = 3, RECORD = 4, BYTES = 5, BEGIN = 6, WORK = 7, IDLE = 8,
      BACK = 9, END = 10;
const kGutter = 92, kHead = 58, kGap = 14, kRankHead = 20, kOpenTrack = 20;

const views = data.views.map((view) => {
  const tracks = data.blocks.map((count) => Array.from({length: count}, () => []));
  view.slices.forEach((s, i) => tracks[s[RANK]][s[BLOCK]].push(i));
  for (const rank of tracks) {
    for (const track of rank) track.sort((a, b) => view.slices[a][BEGIN] - view.slices[b][BEGIN]);
  }
  const into = new Map(), outOf = new Map(), byRecord = new Map();
  const push = (map, key, value) => { if (map.has(key)) map.get(key).push(value); else map.set(key, [value]); };
  view.arrows.forEach((a) => { push(into, a[1], a); push(outOf, a[0], a); });
  view.slices.forEach((s, i) => byRecord.set(s[RECORD], i));
  return {...view, tracks, into, outOf, byRecord, onPath: new Set(view.path.map((p) => p[0])),
          from: 0, to: Math.max(view.end, 1), x: 0, width: 0};
});
const open = data.blocks.map(() => false);
let scroll = 0, hover = null, held = null, drag = null, moved = false, found = null;
let tracksAt = [], height = 0;  // of all tracks
let foldable = true;  // else all tracks are wide anyhow

function layOut() {
  const room = canvas.clientHeight - kHead;
  const blocks = data.blocks.reduce((sum, n) => sum + n, 0);
  const heads = data.blocks.length * kRankHead;
  const share = (room - heads) / Math.max(blocks, 1);
  const thin = share < 3 ? Math.max(share, 0.5, 24 / Math.max(...data.blocks)) : Math.min(kOpenTrack, Math.floor(share));
  foldable = thin < kOpenTrack;
  at('fold').style.display = foldable ? '' : 'none';
  let y = 0;
  tracksAt = data.blocks.map((count, r) => {
    const track = open[r] ? kOpenTrack : thin;
    const placed = {top: y, track, first: y + kRankHead};
    y += kRankHead + count * track;
    return placed;
  });
  height = y;
  scroll = Math.max(0, Math.min(scroll, height - room));
  const width = (canvas.clientWidth - kGutter - kGap * (views.length - 1) - 8) / views.length;
  views.forEach((view, i) => { view.x = kGutter + i * (width + kGap); view.width = width; });
}

// ---- words ----

const escaped = (text) => text.replace(/[&<>"']/g, (c) => '&#' + c.charCodeAt(0) + ';');
function time(ns) {
  if (Math.abs(ns) >= 1e9) return (ns / 1e9).toFixed(3) + ' s';
  if (Math.abs(ns) >= 1e7) return (ns / 1e6).toFixed(2) + ' ms';
  return (ns / 1e3).toFixed(2) + ' µs';
}
function size(bytes) {
  for (const [unit, name] of [[2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']]) {
    if (bytes >= unit) return +(bytes / unit).toFixed(2) + ' ' + name;
  }
  return bytes + ' bytes';
}
const who = (s) => 'rank ' + s[RANK] + ' tb ' + s[BLOCK];
const opOf = (s) => data.ops[s[OP]];
const classOf = (s) => data.classes[opOf(s)[3]];
const lineOf = (place) => place.replace(/^.*\//, '').replace(/:\d+$/, '');

function tipOf(view, i) {
  const s = view.slices[i], op = opOf(s), takes = s[END] - s[BEGIN];
  const waited = s[WORK] - s[BEGIN] + s[BACK] - s[IDLE], works = takes - waited;
  let text = '<b>' + escaped(op[0]) + '</b> <span class="dim">' + who(s) +
      (s[ROUND] > 0 ? ', round ' + s[ROUND] : '') + (op[2] ? ' · ' + escaped(op[2]) : '') + '</span>' +
      '<code>' + escaped(op[1]) + '</code>' +
      time(s[BEGIN]) + ' to ' + time(s[END]) + ': ' + time(takes);
  if (s[BYTES] > 0) {
    text += '<br>stores ' + size(s[BYTES]);
    if (works > 0) text += ', ' + (s[BYTES] / works).toFixed(1) + ' GB/s while it works';
  }
  const senders = view.into.get(i) || [];
  if (waited > 0 && senders.length === 0) text += '<br><span class="late">waited ' + time(waited) + '</span>';
  if (senders.length > 0) {
    const last = [...senders].sort((a, b) => b[4] - a[4]);
    text += '<br><span class="late">waited' + (waited > 0 ? ' ' + time(waited) : '') + ' for ' +
        (last[0][2] ? 'packets' : 'a signal') + ' of ' +
        last.slice(0, 4).map((a) => who(view.slices[a[0]]) + ' (' + escaped(opOf(view.slices[a[0]])[0]) +
                                    ', until ' + time(a[4]) + ')').join(', ') +
        (last.length > 4 ? ' and ' + (last.length - 4) + ' others' : '') + '</span>';
  }
  const receivers = view.outOf.get(i) || [];
  if (receivers.length > 0) {
    text += '<br>kept waiting: ' +
        receivers.slice(0, 6).map((a) => who(view.slices[a[1]])).join(', ') +
        (receivers.length > 6 ? ' and ' + (receivers.length - 6) + ' others' : '');
  }
  for (const other of views) {
    const same = other === view ? undefined : other.byRecord.get(s[RECORD]);
    if (same === undefined) continue;
    const t = other.slices[same];
    text += '<br>' + (other.predicted ? 'predicted: ' : 'measured: ') + time(t[END] - t[BEGIN]) + ', from ' + time(t[BEGIN]);
  }
  if (view.onPath.has(i)) {
    const parts = view.path.filter((p) => p[0] === i);
    text += '<br>on the critical path: ' + parts.map((p) => p[1] + ' ' + time(p[3] - p[2])).join(', ');
  }
  return text;
}

// ---- drawing ----

const xOf = (view, ns) => view.x + (ns - view.from) / (view.to - view.from) * view.width;
const yOf = (s) => kHead - scroll + tracksAt[s[RANK]].first + s[BLOCK] * tracksAt[s[RANK]].track;
const middle = (s) => yOf(s) + tracksAt[s[RANK]].track / 2;
let hatch = null;
function waiting() {
  if (hatch) return hatch;
  const tile = document.createElement('canvas');
  tile.width = tile.height = 6;
  const t = tile.getContext('2d');
  t.fillStyle = '#f1f5f9'; t.fillRect(0, 0, 6, 6);
  t.strokeStyle = '#b8c2cf'; t.lineWidth = 1.4;
  for (const shift of [-6, 0, 6]) { t.beginPath(); t.moveTo(shift, 6); t.lineTo(shift + 6, 0); t.stroke(); }
  return hatch = pen.createPattern(tile, 'repeat');
}

function box(view, from, to, y, h, fill) {
  const left = Math.max(xOf(view, from), view.x), right = Math.min(xOf(view, to), view.x + view.width);
  if (right < view.x || left > view.x + view.width || to <= from) return 0;
  pen.fillStyle = fill;
  pen.fillRect(left, y, Math.max(right - left, 0.7), h);
  return right - left;
}

function drawSlice(view, i, y, track) {
  const s = view.slices[i];
  const gap = track >= 6 ? 1 : 0;
  const fits = found === null || found(s);
  pen.globalAlpha = fits ? 1 : 0.13;
  const colour = kColours[classOf(s)], h = track - gap;
  box(view, s[BEGIN], s[WORK], y, h, waiting());
  const wide = box(view, s[WORK], s[IDLE], y, h, colour);
  box(view, s[IDLE], s[BACK], y, h, waiting());
  box(view, s[BACK], s[END], y, h, colour);
  const left = Math.max(xOf(view, s[BEGIN]), view.x), right = Math.min(xOf(view, s[END]), view.x + view.width);
  if (gap && right - left > 3) {
    pen.fillStyle = 'rgba(255,255,255,.85)';
    pen.fillRect(right - 0.8, y, 0.8, h);
  }
  if (track >= 14 && right - left > 34) {
    const label = opOf(s)[0] + (opOf(s)[2] && right - left > 170 ? '  ' + lineOf(opOf(s)[2]) : '');
    pen.save();
    pen.beginPath(); pen.rect(left, y, right - left - 3, h); pen.clip();
    pen.fillStyle = wide > (right - left) / 2 ? '#fff' : '#1f2937';
    pen.fillText(label, Math.max(left, wide > (right - left) / 2 ? Math.max(xOf(view, s[WORK]), view.x) : left) + 4, y + h / 2 + 4);
    pen.restore();
  }
  pen.globalAlpha = 1;
  return 1;
}

function drawArrow(view, a, colour, width) {
  const from = view.slices[a[0]], to = view.slices[a[1]];
  const x1 = xOf(view, Math.min(a[3], from[END])), x2 = xOf(view, a[4]), y1 = middle(from), y2 = middle(to);
  if (Math.max(x1, x2) < view.x || Math.min(x1, x2) > view.x + view.width) return;
  pen.strokeStyle = pen.fillStyle = colour;
  pen.lineWidth = width;
  pen.beginPath();
  const bend = Math.max(8, Math.abs(x2 - x1) / 2);
  pen.moveTo(x1, y1);
  pen.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
  pen.stroke();
  pen.beginPath();
  pen.moveTo(x2, y2); pen.lineTo(x2 - 6, y2 - 3); pen.lineTo(x2 - 6, y2 + 3);
  pen.fill();
}

// Names for blocks beside each other whose tracks are too narrow for one each.
function nameBlocks(view, r, y0) {
  const track = tracksAt[r].track;
  const like = (b, op, ns) => {
    const s = view.slices[view.tracks[r][b][firstAfter(view, view.tracks[r][b], ns)]];
    return s !== undefined && s[BEGIN] <= ns && opOf(s)[0] === op;
  };
  for (let b = 0; b < data.blocks[r]; ++b) {
    for (let k = firstAfter(view, view.tracks[r][b], view.from); k < view.tracks[r][b].length; ++k) {
      const s = view.slices[view.tracks[r][b][k]];
      if (s[BEGIN] > view.to) break;
      const left = Math.max(xOf(view, s[WORK]), view.x), right = Math.min(xOf(view, s[IDLE]), view.x + view.width);
      if (right - left < 34) continue;
      const op = opOf(s)[0], ns = Math.max(s[WORK], view.from) + (Math.min(s[IDLE], view.to) - Math.max(s[WORK], view.from)) / 2;
      if (b > 0 && like(b - 1, op, ns)) continue;
      let end = b + 1;
      while (end < data.blocks[r] && like(end, op, ns)) ++end;
      if ((end - b) * track < 11) continue;
      pen.save();
      pen.beginPath(); pen.rect(left, y0 + b * track, right - left - 3, (end - b) * track); pen.clip();
      pen.fillStyle = '#fff';
      pen.strokeStyle = kColours[classOf(s)]; pen.lineWidth = 3;  // over the gaps between tracks
      pen.strokeText(op, left + 4, y0 + (b + end) / 2 * track + 4);
      pen.fillText(op, left + 4, y0 + (b + end) / 2 * track + 4);
      pen.restore();
    }
  }
}

// A line along the lower edges of the path's parts, from track to track.
function drawPath(view) {
  const points = [];
  for (const [i, , from, to] of view.path) {
    if (i < 0) continue;
    const s = view.slices[i], y = yOf(s) + tracksAt[s[RANK]].track - 1;
    const begin = Math.max(from, s[BEGIN]);
    points.push([xOf(view, begin), y], [xOf(view, Math.max(to, begin)), y]);
  }
  for (const [colour, width] of [['rgba(255,255,255,.9)', 4], ['#111827', 2]]) {
    pen.strokeStyle = colour; pen.lineWidth = width; pen.lineJoin = 'round';
    pen.beginPath();
    points.forEach(([x, y], k) => k === 0 ? pen.moveTo(x, y) : pen.lineTo(x, y));
    pen.stroke();
  }
}

function ticks(span, width) {
  let step = 10 ** Math.ceil(Math.log10(Math.max(span / Math.max(width / 90, 1), 1)));
  for (const part of [5, 2]) if (width * step / part / span >= 90) { step /= part; break; }
  return step;
}

function drawHead(view) {
  pen.fillStyle = '#fff';
  pen.fillRect(view.x - 1, 0, view.width + 2, kHead);
  pen.font = 'bold 12px DejaVu Sans, Segoe UI, sans-serif';
  pen.fillStyle = '#1f2937';
  pen.fillText(view.how + ': ' + time(view.end), view.x, 15);
  pen.font = '11px DejaVu Sans, Segoe UI, sans-serif';
  const step = ticks(view.to - view.from, view.width);
  for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
    const x = xOf(view, t);
    pen.fillStyle = '#e2e8f0';
    pen.fillRect(x, kHead - 20, 1, canvas.clientHeight);
    pen.fillStyle = '#6b7280';
    const [unit, name] = view.to >= 1e6 ? [1e6, ' ms'] : [1e3, ' µs'];
    const label = (t / unit).toFixed(Math.max(0, Math.ceil(Math.log10(unit / step) - 1e-9))) + name;
    if (x + pen.measureText(label).width < view.x + view.width) pen.fillText(label, x + 3, kHead - 9);
  }
  // The causes along the critical path.
  for (const [, cause, from, to] of view.path) {
    const wide = box(view, from, to, 21, 14, kCauses[cause][0]);
    if (wide < 36) continue;
    pen.fillStyle = '#fff';
    pen.save();
    const left = Math.max(xOf(view, from), view.x);
    pen.beginPath(); pen.rect(left, 21, wide, 14); pen.clip();
    pen.fillText(cause, left + 4, 32);
    pen.restore();
  }
}

function drawGutter() {
  pen.fillStyle = '#f8fafc';
  pen.fillRect(0, 0, kGutter - 4, canvas.clientHeight);
  tracksAt.forEach((rank, r) => {
    const y = kHead - scroll + rank.top;
    if (y > canvas.clientHeight) return;
    pen.font = 'bold 12px DejaVu Sans, Segoe UI, sans-serif';
    pen.fillStyle = '#1f2937';
    pen.fillText((!foldable ? '' : open[r] ? '▾ ' : '▸ ') + 'rank ' + r, 8, y + 15);
    if (rank.track < 11) {
      pen.font = '10px DejaVu Sans, Segoe UI, sans-serif';
      pen.fillStyle = '#6b7280';
      if (data.blocks[r] * rank.track >= 12) pen.fillText('tb 0 – ' + (data.blocks[r] - 1), 22, y + kRankHead + 10);
      return;
    }
    pen.font = '11px DejaVu Sans, Segoe UI, sans-serif';
    pen.fillStyle = '#6b7280';
    for (let b = 0; b < data.blocks[r]; ++b) {
      const top = y + kRankHead + b * rank.track;
      if (top > kHead - rank.track && top < canvas.clientHeight) pen.fillText('tb ' + b, 28, top + rank.track / 2 + 4);
    }
  });
  pen.fillStyle = '#f8fafc';
  pen.fillRect(0, 0, kGutter - 4, kHead);
  pen.font = '11px DejaVu Sans, Segoe UI, sans-serif';
  pen.fillStyle = '#6b7280';
  pen.fillText('critical path', 8, 32);
}

/// The first slice of a track that ends after `ns`.
function firstAfter(view, track, ns) {
  let low = 0, high = track.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (view.slices[track[mid]][END] <= ns) low = mid + 1; else high = mid;
  }
  return low;
}

function draw() {
  if (canvas.clientWidth === 0 || canvas.clientHeight === 0) return;  // not shown yet
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(canvas.clientWidth * scale);
  canvas.height = Math.round(canvas.clientHeight * scale);
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  layOut();
  pen.fillStyle = '#fff';
  pen.fillRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  let drawn = 0;
  for (const view of views) {
    pen.save();
    pen.beginPath(); pen.rect(view.x, 0, view.width, canvas.clientHeight); pen.clip();
    drawHead(view);
    pen.beginPath(); pen.rect(view.x, kHead, view.width, canvas.clientHeight - kHead); pen.clip();
    pen.font = '11px DejaVu Sans, Segoe UI, sans-serif';
    tracksAt.forEach((rank, r) => {
      const top = kHead - scroll + rank.top;
      pen.fillStyle = '#e8edf3';
      pen.fillRect(view.x, top + kRankHead - 2, view.width, 1);
      for (let b = 0; b < data.blocks[r]; ++b) {
        const top = kHead - scroll + rank.first + b * rank.track, y = Math.round(top);
        if (y + rank.track < kHead || y > canvas.clientHeight) continue;
        const track = view.tracks[r][b];
        let last = -1;  // pixel up to which something has been drawn
        for (let k = firstAfter(view, track, view.from); k < track.length; ++k) {
          const s = view.slices[track[k]];
          if (s[BEGIN] > view.to) break;
          const right = Math.floor(xOf(view, s[END]) * 2);
          if (right === last) continue;
          last = right;
          drawn += drawSlice(view, track[k], y, Math.round(top + rank.track) - y);
        }
      }
      if (rank.track < 14 && top < canvas.clientHeight) nameBlocks(view, r, kHead - scroll + rank.first);
    });
    if (at('arrows').classList.contains('on')) {
      for (const a of view.arrows) drawArrow(view, a, a[2] ? 'rgba(21,94,54,.55)' : 'rgba(146,84,4,.55)', 1);
    }
    if (at('path').classList.contains('on')) drawPath(view);
    const shown = held || hover;
    if (shown !== null) {
      const same = shown.view === view ? shown.slice : view.byRecord.get(shown.view.slices[shown.slice][RECORD]);
      if (same !== undefined) {
        for (const a of view.into.get(same) || []) drawArrow(view, a, '#b45309', 1.8);
        for (const a of view.outOf.get(same) || []) drawArrow(view, a, '#1d4ed8', 1.8);
        const s = view.slices[same];
        pen.strokeStyle = '#111827'; pen.lineWidth = 2;
        const left = xOf(view, s[BEGIN]);
        pen.strokeRect(left, yOf(s) - 0.5, Math.max(xOf(view, s[END]) - left, 2), tracksAt[s[RANK]].track);
      }
    }
    pen.restore();
  }
  drawGutter();
  canvas.dataset.drawn = drawn;
}

let asked = false;
function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; draw(); });
}
)html"
                                     R"html(
// ---- what the user does ----

const viewAt = (x) => views.find((view) => x >= view.x && x <= view.x + view.width) || null;
function sliceAt(x, y) {
  const view = viewAt(x);
  if (view === null || y < kHead) return null;
  const down = y - kHead + scroll;
  const r = tracksAt.findIndex((rank, i) => down >= rank.first && down < rank.first + data.blocks[i] * rank.track);
  if (r < 0) return null;
  const track = view.tracks[r][Math.floor((down - tracksAt[r].first) / tracksAt[r].track)];
  const ns = view.from + (x - view.x) / view.width * (view.to - view.from);
  const near = 2 / view.width * (view.to - view.from);  // of two pixels
  for (let k = firstAfter(view, track, ns - near); k < track.length; ++k) {
    const s = view.slices[track[k]];
    if (s[BEGIN] > ns + near) break;
    if (s[END] >= ns - near) return {view, slice: track[k]};
  }
  return null;
}
const rankAt = (x, y) => x > kGutter ? -1 : tracksAt.findIndex((rank, i) => {
  const top = kHead - scroll + rank.top;
  return foldable && y >= Math.max(top, kHead) && y < top + kRankHead;
});

function showTip(what, x, y) {
  if (what === null) { tip.style.display = 'none'; return; }
  tip.innerHTML = tipOf(what.view, what.slice);
  tip.style.display = 'block';
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(x + 14, window.innerWidth - box.width - 8)) + 'px';
  tip.style.top = Math.max(4, y + 18 + box.height > window.innerHeight ? y - box.height - 12 : y + 18) + 'px';
}
function zoom(view, factor, ns) {
  const span = Math.min(Math.max((view.to - view.from) * factor, 20), view.end * 1.02 + 1);
  const part = (ns - view.from) / (view.to - view.from);
  moveTo(view, ns - part * span, span);
}
function moveTo(view, from, span) {
  const most = Math.max(view.end * 1.02 - span, 0);
  view.from = Math.max(0, Math.min(from, most));
  view.to = view.from + span;
  redraw();
}
const place = (e) => { const box = canvas.getBoundingClientRect(); return [e.clientX - box.left, e.clientY - box.top]; };

canvas.addEventListener('mousemove', (e) => {
  const [x, y] = place(e);
  if (drag !== null) {
    moved = moved || Math.abs(x - drag.x) + Math.abs(y - drag.y) > 3;
    if (!moved) return;
    if (drag.view) moveTo(drag.view, drag.from - (x - drag.x) / drag.view.width * (drag.view.to - drag.view.from), drag.view.to - drag.view.from);
    scroll = drag.scroll - (y - drag.y);
    showTip(null);
    return redraw();
  }
  const now = sliceAt(x, y);
  const same = now !== null && hover !== null ? now.view === hover.view && now.slice === hover.slice : now === hover;
  hover = now;
  canvas.style.cursor = now !== null || rankAt(x, y) >= 0 ? 'pointer' : 'default';
  showTip(hover, e.clientX, e.clientY);
  if (!same) redraw();
});
canvas.addEventListener('mouseleave', () => { hover = null; showTip(null); redraw(); });
canvas.addEventListener('mousedown', (e) => {
  const [x, y] = place(e);
  const view = viewAt(x);
  drag = {x, y, view, from: view ? view.from : 0, scroll};
  moved = false;
});
window.addEventListener('mouseup', (e) => {
  if (drag === null) return;
  drag = null;
  if (moved) return;
  const [x, y] = place(e);
  const rank = rankAt(x, y);
  if (rank >= 0) open[rank] = !open[rank];
  else { const now = sliceAt(x, y); held = held && now && held.slice === now.slice ? null : now; }
  redraw();
});
canvas.addEventListener('wheel', (e) => {
  e.preventDefault();
  const [x] = place(e), view = viewAt(x);
  const allFits = height <= canvas.clientHeight - kHead;
  if (view !== null && (e.ctrlKey || e.metaKey || (allFits && !e.shiftKey && e.deltaX === 0))) {
    zoom(view, Math.exp(e.deltaY / 400), view.from + (x - view.x) / view.width * (view.to - view.from));
  } else if (view !== null && (e.shiftKey || e.deltaX !== 0)) {
    const by = (e.deltaX || e.deltaY) / view.width * (view.to - view.from);
    moveTo(view, view.from + by, view.to - view.from);
  } else {
    scroll += e.deltaY;
    redraw();
  }
}, {passive: false});
function whole() { for (const view of views) moveTo(view, 0, Math.max(view.end, 1)); }
canvas.addEventListener('dblclick', whole);
window.addEventListener('keydown', (e) => {
  if (e.target.id === 'find') return;
  const step = {a: -0.2, d: 0.2, ArrowLeft: -0.2, ArrowRight: 0.2}[e.key];
  for (const view of views) {
    const span = view.to - view.from;
    if (step) moveTo(view, view.from + step * span, span);
    if (e.key === 'w' || e.key === '+') zoom(view, 0.7, view.from + span / 2);
    if (e.key === 's' || e.key === '-') zoom(view, 1.4, view.from + span / 2);
  }
  if (e.key === '0') whole();
  if (e.key === 'Escape') { held = null; redraw(); }
});
at('all').addEventListener('click', whole);
at('fold').addEventListener('click', () => {
  const unfold = open.includes(false);
  open.fill(unfold);
  at('fold').textContent = unfold ? 'fold ranks' : 'unfold ranks';
  redraw();
});
for (const id of ['arrows', 'path']) {
  at(id).addEventListener('click', () => { at(id).classList.toggle('on'); redraw(); });
}
at('find').addEventListener('input', () => {
  const text = at('find').value.trim();
  found = text === '' ? null : (s) => opOf(s)[1].includes(text) || opOf(s)[2].includes(text) || opOf(s)[0].includes(text);
  redraw();
});
new ResizeObserver(redraw).observe(canvas);  // a frame may get its size later, or another one
window.addEventListener('resize', redraw);   // and the screen another scale

at('title').textContent = data.title;
const used = new Set(views.flatMap((view) => view.slices.map((s) => opOf(s)[3])));
const key = (colour, words, more) => '<span class="key" title="' + more + '"><i style="background:' + colour +
    '"></i>' + words + '&ensp;</span>';
at('legend').innerHTML = data.classes.filter((name, i) => used.has(i)).map((name) =>
    key(kColours[name], kWords[name], '')).join('') +
    (views.some((view) => view.slices.some((s) => s[WORK] > s[BEGIN] || s[BACK] > s[IDLE])) ?
    '<span class="key"><i class="wait"></i>idle, until a signal or data comes&ensp;</span>' : '');
const causes = new Set(views.flatMap((view) => view.path.map((p) => p[1])));
at('causes').innerHTML = 'critical path:&ensp;' + Object.entries(kCauses).filter(([name]) => causes.has(name))
    .map(([name, [colour, words]]) => key(colour, name, words)).join('');
draw();
</script>
</body>
</html>
)html";

}  // namespace mscclc::timeline
