#include "tools/draw/html.h"

#include "tools/base/xml_text.h"
#include "tools/draw/svg.h"

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
       padding: 6px 24px; display: flex; gap: 18px; align-items: center; }
#bar input { width: 110px; font: inherit; }
#say { color: #4b5563; }
#ops { position: fixed; right: 12px; bottom: 12px; max-width: 60%; margin: 0; padding: 8px 12px;
       background: #1f2937; color: #f8fafc; font: 12px 'DejaVu Sans Mono', monospace;
       white-space: pre-wrap; border-radius: 6px; display: none; }
.dim { opacity: 0.12; }
.box { cursor: pointer; }
</style>
)html";

constexpr std::string_view kPageBar = R"html(<div id="bar">
<label>rank <input id="rank" placeholder="all"></label>
<label>thread block <input id="tb" placeholder="all"></label>
<label>chunk <input id="chunk" placeholder="inbox[0]"></label>
<label>op <input id="op" placeholder="reduce"></label>
<span id="say">A click on a box follows its chunks; a second one ends that.</span>
</div>
)html";

// Filters dim what does not fit; a list of ranks or blocks is separated by commas.
constexpr std::string_view kPageScript = R"html(<pre id="ops"></pre>
<script>
'use strict';
const field = (id) => document.getElementById(id);
const boxes = [...document.querySelectorAll('.box')];
const arrows = [...document.querySelectorAll('[data-from]')];
const ops = field('ops');
const list = (text) => text.split(/[\s,]+/).filter((word) => word !== '');
let followed = null;

function chunksOf(element) {
  const text = element.dataset.chunks;
  return text.match(/[^\s\[,][^\[]*\[[^\]]*\]/g) || [];
}

function fits(box) {
  const ranks = list(field('rank').value), blocks = list(field('tb').value);
  const chunk = field('chunk').value.trim(), op = field('op').value.trim();
  return (ranks.length === 0 || ranks.includes(box.dataset.rank)) &&
      (blocks.length === 0 || list(box.dataset.tb).some((tb) => blocks.includes(tb))) &&
      (chunk === '' || chunksOf(box).some((each) => each.startsWith(chunk))) &&
      (op === '' || box.dataset.op.includes(op)) &&
      (followed === null || chunksOf(box).some((each) => followed.includes(each)));
}

function show() {
  const picked = followed !== null ||
      ['rank', 'tb', 'chunk', 'op'].some((id) => field(id).value.trim() !== '');
  const ranks = new Set();
  let count = 0;
  for (const box of boxes) {
    const fine = fits(box);
    box.classList.toggle('dim', !fine);
    if (fine) { ++count; ranks.add(box.dataset.rank); }
  }
  const chunk = field('chunk').value.trim();
  for (const arrow of arrows) {
    const chunks = chunksOf(arrow);
    const fine = ranks.has(arrow.dataset.from) || ranks.has(arrow.dataset.to);
    const carries = (chunk === '' || chunks.some((each) => each.startsWith(chunk))) &&
        (followed === null || chunks.some((each) => followed.includes(each)));
    arrow.classList.toggle('dim', picked && !(fine && carries));
  }
  field('say').textContent = picked ? count + ' of ' + boxes.length + ' boxes'
      : 'A click on a box follows its chunks; a second one ends that.';
}

for (const id of ['rank', 'tb', 'chunk', 'op']) field(id).addEventListener('input', show);
for (const box of boxes) {
  box.addEventListener('mouseenter', () => {
    ops.textContent = 'rank ' + box.dataset.rank + '\n' + box.querySelector('title').textContent;
    ops.style.display = 'block';
  });
  box.addEventListener('mouseleave', () => { ops.style.display = 'none'; });
  box.addEventListener('click', () => {
    followed = followed === null ? chunksOf(box) : null;
    show();
  });
}
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
