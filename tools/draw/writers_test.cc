// What writers make of a picture: names are text, pages need nothing else, Graphviz gets places.
#include <catch2/catch.hpp>

#include "tests/helpers/programs/test_programs.h"
#include "tools/draw/dot.h"
#include "tools/draw/html.h"
#include "tools/draw/layout.h"
#include "tools/draw/svg.h"

using namespace mscclc;
using namespace mscclc::draw;
using namespace mscclc::testing;

namespace {

Picture hostile() {
  TestProgram t(2, 1);
  t.program.name = "\"]<script>alert('x')</script>\x1b[2J";
  for (const uint32_t r : {0u, 1u}) {
    t.buffer(r, "in<b>&\"box", 1);
    t.channel(r, ChannelKind::memory, "ch", {}, 1 - r, 0);
    t.op_in(r, 0, OpKind::put, {far(0, 2, 0)}, {local(kInput, 0)});
    t.op_in(r, 0, OpKind::signal, {end_of(0)});
    t.op_in(r, 0, OpKind::wait, {end_of(0)});
  }
  return *lay_out(t.program, {});
}

size_t count(const std::string& text, const std::string& word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("draw svg: names are escaped, controls written out") {
  const std::string svg = svg_of(hostile());
  CHECK(count(svg, "<script") == 0);
  CHECK(count(svg, "&lt;script&gt;alert(&#39;x&#39;)") == 1);
  CHECK(svg.find('\x1b') == std::string::npos);
  CHECK(count(svg, "in<b>") == 0);
  CHECK(count(svg, "in&lt;b&gt;&amp;&quot;box[0]") > 0);
  CHECK(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  CHECK(svg.ends_with("</svg>\n"));
}

TEST_CASE("draw svg: the legend has what is drawn, and what is cut comes whole under the mouse") {
  const std::string svg = svg_of(hostile());
  CHECK(count(svg, ">moves data<") == 1);
  CHECK(count(svg, ">data, with") == 1);
  for (const char* other :
       {">adds up<", ">packets<", ">order alone<", ">several chunks,", "<title>"}) {
    CAPTURE(other);
    CHECK(count(svg, other) == 0);
  }
  TestProgram t(4, 4);
  for (uint32_t r = 0; r < 4; ++r) {
    t.op_in(r, 0, OpKind::reduce, {local(kOutput, 0)},
            {local(kInput, 0), local(kInput, 1), local(kInput, 2)});
  }
  Picture picture = *lay_out(t.program, {});
  CHECK(picture.boxes[0].colour == kNowhere);
  picture.boxes[0].is_cut = true;
  const std::string sum = svg_of(picture);
  CHECK(count(sum, ">several chunks,") == 1);
  CHECK(count(sum, "<title>reduce output[0]") == 1);
}

TEST_CASE("draw html: one page, with one script of its own and nothing from elsewhere") {
  const std::string page = html_of(hostile());
  CHECK(count(page, "<script") == 1);
  CHECK(count(page, "alert('x')") == 0);
  CHECK(count(page, "http") == 2);  // http-equiv, and the name of the SVG's vocabulary
  CHECK(count(page, "default-src 'none'") == 1);
  CHECK(count(page, " src=") == 0);
  CHECK(count(page, "href") == 0);
  CHECK(count(page, "data-rank=\"1\"") == 2);
  CHECK(count(page, "<title>put ch.&quot;in&lt;b&gt;&amp;") +
            count(page, "<title>put ch.in&lt;b") ==
        2);
}

TEST_CASE("draw dot: nodes with places, in strings that end where they should") {
  const Picture picture = hostile();
  const std::string dot = dot_of(picture);
  CHECK(dot.starts_with("digraph \"\\\"]<script>"));
  CHECK(count(dot, "layout=nop") == 1);
  CHECK(count(dot, "pos=") == picture.bands.size() + picture.boxes.size());
  CHECK(count(dot, "label=\"in<b>&\\\"box[0]\"") == 2);
}
