#include "tools/draw/html.h"

#include "tools/draw/svg.h"
#include "tools/io/xml_text.h"

namespace mscclc::draw {
namespace {

constexpr std::string_view kPageHead = R"html(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset=utf-8>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
)html";

constexpr std::string_view kPageStyle = R"html(<style>
body { margin: 0; font: 13px 'DejaVu Sans', 'Segoe UI', Helvetica, Arial, sans-serif; }
#bar { position: sticky; top: 0; background: #f1f4f8; border-bottom: 1px solid #d5dbe3;
       padding: 6px 24px; display: flex; gap: 6px 18px; flex-wrap: wrap; align-items: center; }
#bar label { white-space: nowrap; }
#bar input { width: 90px; font: inherit; }
#bar #fit { width: auto; vertical-align: -2px; }
#say { color: #4b5563; }
#ops { position: fixed; right: 12px; bottom: 12px; max-width: 60%; margin: 0; padding: 8px 12px;
       background: #1f2937; color: #f8fafc; font: 12px 'DejaVu Sans Mono', monospace;
       white-space: pre-wrap; border-radius: 6px; display: none; }
.dim { opacity: 0.12; }
.box { cursor: pointer; }
.held > rect { stroke-width: 2.5; }
svg.whole { max-width: none; }
</style>
)html";

constexpr std::string_view kPageBar = R"html(<div id="bar">
<label>rank <input id="rank" placeholder="all"></label>
<label>thread block <input id="tb" placeholder="all"></label>
<label>chunk <input id="chunk" placeholder="inbox[0]"></label>
<label>op <input id="op" placeholder="reduce"></label>
<label><input type="checkbox" id="fit" checked> fit the window</label>
<span id="say"></span>
</div>
)html";

// Filters dim what does not fit; a list of ranks or blocks is separated by commas.
constexpr std::string_view kPageScript = R"html(<pre id="ops"></pre>
<script>
'use strict';
const field = (id) => document.getElementById(id);
const ops = field('ops');
const list = (text) => text.split(/[\s,]+/).filter((word) => word !== '');
const lines = (text) => text.split('\n').filter((line) => line !== '');
const nameOf = (place) => place.slice(place.indexOf(' ') + 1);  // a place is a rank and a chunk
const boxes = [...document.querySelectorAll('.box')].map((shape) => ({
  shape, rank: shape.dataset.rank, blocks: list(shape.dataset.tb), op: shape.dataset.op,
  row: Number(shape.dataset.row), reads: lines(shape.dataset.reads), writes: lines(shape.dataset.writes), carried: []}));
const arrows = [...document.querySelectorAll('[data-from]')].map((shape) => ({
  shape, from: list(shape.dataset.from), to: list(shape.dataset.to), chunks: lines(shape.dataset.chunks),
  ends: list(shape.dataset.ends).map((i) => boxes[i]), at: boxes[shape.dataset.at], bus: 'at' in shape.dataset}));
const endsOf = (arrow) => arrow.at || (arrow.bus ? [] : arrow.ends);
for (const arrow of arrows) [endsOf(arrow)].flat().forEach((box) => box.carried.push(...arrow.chunks));
let held = null;

// The boxes that a box's data comes from, and those that it goes on to, by the places it lies at.
function follow(start) {
  const lit = new Set([start]), places = new Set([...start.reads, ...start.writes]);
  const spread = (known, later, one, other) => {
    const rows = boxes.filter((box) => later(box.row)).sort((a, b) => Math.abs(a.row - start.row) - Math.abs(b.row - start.row));
    for (const box of rows) {
      if (!box[one].some((place) => known.has(place))) continue;
      lit.add(box);
      box[other].forEach((place) => known.add(place));
    }
    known.forEach((place) => places.add(place));
  };
  spread(new Set(start.writes), (row) => row > start.row, 'reads', 'writes');
  spread(new Set(start.reads), (row) => row < start.row, 'writes', 'reads');
  const names = new Set([...places].map(nameOf));
  const carriers = new Set(arrows.filter((arrow) => arrow.ends.some((box) => lit.has(box)) &&
      arrow.chunks.some((chunk) => arrow.ends.length === 1 ? names.has(chunk)
          : [...arrow.from, ...arrow.to].some((rank) => places.has(rank + ' ' + chunk)))));
  // Boxes that wait for it, or say that it is there.
  const ends = [...carriers].flatMap(endsOf);
  return {lit: new Set([...lit, ...ends]), carriers};
}

function show() {
  const ranks = list(field('rank').value), blocks = list(field('tb').value);
  const chunk = field('chunk').value.trim(), op = field('op').value.trim();
  const followed = held === null ? null : follow(held);
  const picked = held !== null || ranks.length > 0 || blocks.length > 0 || chunk !== '' || op !== '';
  const fits = boxes.filter((box) => (ranks.length === 0 || ranks.includes(box.rank)) &&
      (blocks.length === 0 || box.blocks.some((tb) => blocks.includes(tb))) && box.op.includes(op) &&
      (chunk === '' || [...[...box.reads, ...box.writes].map(nameOf), ...box.carried].some((each) => each.startsWith(chunk))) &&
      (followed === null || followed.lit.has(box)));
  const lit = new Set(fits), litRanks = new Set(fits.map((box) => box.rank));
  for (const box of boxes) {
    box.shape.classList.toggle('dim', !lit.has(box));
    box.shape.classList.toggle('held', box === held);
  }
  for (const arrow of arrows) {
    const near = arrow.at ? litRanks.has(arrow.at.rank) : [...arrow.from, ...arrow.to].some((rank) => litRanks.has(rank));
    const fine = near && (chunk === '' || arrow.chunks.some((each) => each.startsWith(chunk))) &&
        (followed === null || followed.carriers.has(arrow));
    arrow.shape.classList.toggle('dim', picked && !fine);
  }
  field('say').textContent = picked ? fits.length + ' of ' + boxes.length + ' boxes'
      : 'A click on a box follows its data; a second one ends that.';
}

for (const id of ['rank', 'tb', 'chunk', 'op']) field(id).addEventListener('input', show);
field('fit').addEventListener('change', () =>
    document.querySelector('svg').classList.toggle('whole', !field('fit').checked));
for (const box of boxes) {
  box.shape.addEventListener('mouseenter', () => {
    ops.textContent = 'rank ' + box.rank + '\n' + box.shape.querySelector('title').textContent;
    ops.style.display = 'block';
  });
  box.shape.addEventListener('mouseleave', () => { ops.style.display = 'none'; });
  box.shape.addEventListener('click', () => {
    held = held === box || box.reads.length + box.writes.length === 0 ? null : box;
    show();
  });
}
show();
</script>
</body>
</html>
)html";

}  // namespace

std::string html_of(const Picture& picture) {
  std::string out(kPageHead);
  out += "<title>" + xml_escaped(picture.title) + "</title>\n";
  out += kPageStyle;
  out += "</head>\n<body>\n";
  out += kPageBar;
  out += svg_of(picture, Detail::page);
  return out += kPageScript;
}

}  // namespace mscclc::draw
