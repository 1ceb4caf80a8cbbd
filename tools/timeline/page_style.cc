// How the page of a timeline looks, and what stands in it.
#include "tools/timeline/page_parts.h"

namespace mscclc::timeline {

const std::string_view kPageStyle = R"html(<style>
* { box-sizing: border-box; }
html, body { margin: 0; height: 100%; overflow: hidden; background: #fff; color: #1f2937;
             font: 13px 'DejaVu Sans', 'Segoe UI', Helvetica, Arial, sans-serif; }
body { display: flex; flex-direction: column; }
#bar { padding: 9px 16px 8px; background: #f8fafc; border-bottom: 1px solid #d5dbe3; }
#top { display: flex; align-items: baseline; margin-bottom: 6px; }
#bar h1 { margin: 0; font-size: 16px; }
#row { display: flex; flex-wrap: wrap; gap: 6px 18px; align-items: center; }
#buttons { display: flex; flex-wrap: wrap; gap: 6px 18px; }
.key { white-space: nowrap; }
.key i { display: inline-block; width: 12px; height: 12px; border-radius: 2px; margin-right: 5px;
         vertical-align: -1px; }
.key .wait { background: repeating-linear-gradient(135deg, #cbd5e1 0 2px, #f1f5f9 2px 5px); }
.key .path { background: none; border: 2px solid #111827; }
button, input { font: inherit; padding: 2px 8px; border: 1px solid #b6bfca; border-radius: 4px;
                background: #fff; color: inherit; }
button { cursor: pointer; }
button:hover { background: #eef2f7; }
button.on { background: #1f2937; border-color: #1f2937; color: #fff; }
#find { width: 150px; }
#keys { color: #6b7280; margin-left: auto; }
#room { flex: 1; min-height: 0; position: relative; }
canvas { position: absolute; inset: 0; width: 100%; height: 100%; display: block; }
#tip { position: fixed; z-index: 2; display: none; max-width: 560px; padding: 9px 12px;
       background: #1f2937; color: #f8fafc; border-radius: 6px; pointer-events: none;
       box-shadow: 0 4px 14px rgba(15, 23, 42, .28); line-height: 1.5; }
#tip b { font-size: 13px; }
#tip code { display: block; font: 12px 'DejaVu Sans Mono', monospace; color: #cbd5e1;
            overflow-wrap: anywhere; max-height: 7.5em; overflow: hidden; }
#tip .dim { color: #94a3b8; }
#tip .late { color: #fbbf24; }
#say { color: #b93a3a; }
</style>
</head>
)html";

const std::string_view kPageBody = R"html(<body>
<div id="bar">
<div id="top"><h1 id="title"></h1>
<span id="keys">ctrl + wheel: zoom · drag: move · click: hold a step, fold a rank</span>
</div>
<div id="row">
<span id="legend"></span>
<span id="causes"></span>
<span id="buttons">
<button id="all" title="the whole call (key 0)">whole call</button>
<button id="fold" title="all ranks as narrow tracks, or with names">unfold ranks</button>
<button id="arrows" title="all signals and packets that were waited for">arrows</button>
<button id="path" class="on" title="the chain of steps and messages that takes the time">critical path</button>
<input id="find" placeholder="find an op or a line" aria-label="find an op or a line">
</span>
<span id="say"></span>
</div>
</div>
<div id="room"><canvas id="canvas" aria-label="ranks and thread blocks against time"></canvas></div>
<div id="tip"></div>
)html";

}  // namespace mscclc::timeline
