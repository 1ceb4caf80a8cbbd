// Diagnostics: what is collected, and the whole text of what is rendered.
#include "ir/diagnostics/diagnostic.h"

#include <catch2/catch.hpp>

using namespace mscclc;

namespace {

/// The first occurrence of `word` in a file, as a lexer would place it.
Span span_of(const Sources& sources, FileId file, std::string_view word) {
  const std::string& text = sources.file(file).text;
  const size_t at = text.find(word);
  REQUIRE(at != std::string::npos);
  Span s{file, static_cast<uint32_t>(at), static_cast<uint32_t>(at + word.size()), 1, 1};
  for (size_t i = 0; i < at; ++i) {
    ++s.column;
    if (text[i] == '\n') ++s.line, s.column = 1;
  }
  return s;
}

/// One error at `word` in a file of that text.
std::string rendered(std::string text, std::string_view word) {
  Sources sources;
  const FileId file = sources.add("a.mscl", std::move(text));
  Diagnostics diagnostics;
  diagnostics.error("code", span_of(sources, file, word), "message");
  return render_text(diagnostics, sources);
}

}  // namespace

TEST_CASE("an error with its line, the loop values and the declaration") {
  Sources sources;
  const FileId file = sources.add("hier.mscl",
                                  "buffer sums[twins]\n"
                                  "    for n in twins { put net[n].sums[node + 1] <- output }\n");
  Diagnostics diagnostics;
  Diagnostic& d = diagnostics.error("no-row", span_of(sources, file, "node + 1"),
                                    "'sums' has no row 1 on rank 8");
  d.notes.push_back({"when r = 0, n = 1"});
  d.notes.push_back({"'sums' is declared here as [twins], which is [0] on rank 8",
                     span_of(sources, file, "sums")});
  CHECK(diagnostics.has_errors());
  CHECK(render_text(diagnostics, sources) ==
        "hier.mscl:2:38: error: 'sums' has no row 1 on rank 8\n"
        "    for n in twins { put net[n].sums[node + 1] <- output }\n"
        "                                     ^~~~~~~~\n"
        "hier.mscl:2:38: note: when r = 0, n = 1\n"
        "hier.mscl:1:8: note: 'sums' is declared here as [twins], which is [0] on rank 8\n");
}

TEST_CASE("a mistake in a loop is reported once") {
  Diagnostics diagnostics;
  const Span here{0, 10, 14, 2, 3}, there{0, 20, 24, 3, 3};
  diagnostics.error("a", here, "first").notes.push_back({"when r = 0"});
  diagnostics.error("a", here, "second").notes.push_back({"when r = 1"});
  diagnostics.error("b", here, "other kind");
  diagnostics.error("a", there, "other place");
  REQUIRE(diagnostics.all().size() == 3);
  CHECK(diagnostics.all()[0].message == "first");
  CHECK(diagnostics.all()[0].notes.size() == 1);

  diagnostics.error("a", {}, "no place");
  diagnostics.error("a", {}, "no place");
  diagnostics.error("a", {}, "no place either");
  diagnostics.error_at("a", "plan.json: gpus[0]", "no place");
  CHECK(diagnostics.all().size() == 6);
}

TEST_CASE("warnings are no errors") {
  Sources sources;
  Diagnostics diagnostics;
  diagnostics.warning("unused", {}, "'B' is never used");
  CHECK_FALSE(diagnostics.has_errors());
  CHECK(render_text(diagnostics, sources) == "warning: 'B' is never used\n");
}

TEST_CASE("a JSON path stands where the place would") {
  Sources sources;
  Diagnostics diagnostics;
  diagnostics.error_at("range", "plan.json: gpus[2].threadblocks[0].ops[5].channel",
                       "7 is not a channel (there are 6)");
  CHECK(render_text(diagnostics, sources) ==
        "plan.json: gpus[2].threadblocks[0].ops[5].channel: error: 7 is not a channel (there are "
        "6)\n");
}

TEST_CASE("more than the limit") {
  Sources sources;
  Diagnostics diagnostics;
  for (uint32_t i = 0; i < 5; ++i) diagnostics.error("e", {}, "error " + std::to_string(i));
  CHECK(render_text(diagnostics, sources, 4) ==
        "error: error 0\nerror: error 1\nerror: error 2\nerror: error 3\n1 more error\n");
  diagnostics.warning("w", {}, "w 1");
  diagnostics.warning("w", {}, "w 2");
  CHECK(render_text(diagnostics, sources, 1) == "error: error 0\n4 more errors, 2 more warnings\n");
  CHECK(render_text(diagnostics, sources, 5).ends_with("error: error 4\n2 more warnings\n"));
}

TEST_CASE("tabs become spaces, above and below") {
  CHECK(rendered("\tput\tx <- y\n", "x") ==
        "a.mscl:1:6: error: message\n"
        "        put     x <- y\n"
        "                ^\n");
}

TEST_CASE("columns count bytes, the mark counts characters") {
  CHECK(rendered("# für 漢字 e\u0301 x\n", "x") ==
        "a.mscl:1:19: error: message\n"
        "# für 漢字 e\u0301 x\n"
        "             ^\n");
  CHECK(rendered("a 漢字 b\n", "漢字") ==
        "a.mscl:1:3: error: message\n"
        "a 漢字 b\n"
        "  ^~~~\n");
}

TEST_CASE("bytes that are no text do not reach the terminal") {
  CHECK(rendered("a \x1b[31m \xff\xc3 bad\n", "bad") ==
        "a.mscl:1:12: error: message\n"
        "a \uFFFD[31m \uFFFD\uFFFD bad\n"
        "           ^~~\n");
}

TEST_CASE("of a very long line the part around the mark is shown") {
  const std::string a(5000, 'a'), b(5000, 'b');
  CHECK(rendered(a + " word " + b, "word") ==
        "a.mscl:1:5002: error: message\n"
        "..." +
            std::string(49, 'a') + " word " + std::string(65, 'b') + "...\n" +
            std::string(53, ' ') + "^~~~\n");
  CHECK(rendered("word " + b, "word") ==
        "a.mscl:1:1: error: message\n"
        "word " +
            std::string(115, 'b') + "...\n^~~~\n");
  CHECK(rendered(a + " word", "word") ==
        "a.mscl:1:5002: error: message\n"
        "..." +
            std::string(49, 'a') + " word\n" + std::string(53, ' ') + "^~~~\n");
}

TEST_CASE("places at the edges of the text") {
  Sources sources;
  const FileId file = sources.add("a.mscl", "tb 0 {\r\n  put\n");
  Diagnostics diagnostics;
  diagnostics.error("several lines", {file, 3, 12, 1, 4}, "m");
  diagnostics.error("end of line", {file, 6, 6, 1, 7}, "m");
  diagnostics.error("end of file", {file, 14, 14, 3, 1}, "m");
  diagnostics.error("beyond", {file, 90, 99, 9, 70}, "m");
  diagnostics.error("unknown file", {7, 0, 0, 2, 3}, "m");
  CHECK(render_text(diagnostics, sources) ==
        "a.mscl:1:4: error: m\n"
        "tb 0 {\n"
        "   ^~~\n"
        "a.mscl:1:7: error: m\n"
        "tb 0 {\n"
        "      ^\n"
        "a.mscl:3:1: error: m\n"
        "a.mscl:9:70: error: m\n"
        "2:3: error: m\n");
}

TEST_CASE("a place without byte offsets marks the word, in the file of that name") {
  Sources sources;
  sources.add("plan.json", "{}");
  sources.add("ring.mscl", "tb 0 {\n  signal next\n}\n");
  Diagnostics diagnostics;
  Diagnostic& d = diagnostics.error("unheard", {0, 0, 0, 2, 3}, "nothing can wait for this signal");
  d.file = "ring.mscl";
  d.notes.push_back({"'prev' is declared here", {0, 0, 0, 9, 4}, "other.mscl"});
  CHECK(render_text(diagnostics, sources) ==
        "ring.mscl:2:3: error: nothing can wait for this signal\n"
        "  signal next\n"
        "  ^~~~~~\n"
        "other.mscl:9:4: note: 'prev' is declared here\n");
}

TEST_CASE("JSON: one object a line, nothing that JSON does not allow") {
  Sources sources;
  const FileId file = sources.add("dir\\a \"b\".mscl", "x\n  put y\n");
  Diagnostics diagnostics;
  Diagnostic& d = diagnostics.error("unknown-name", span_of(sources, file, "put"),
                                    "'\x01\t\n\" \xff \xed\xa0\x80 ü 漢'");
  d.notes.push_back({"when r = 0"});
  d.notes.push_back({"here", span_of(sources, file, "x")});
  diagnostics.error_at("range", "plan.json: gpus[2]", "m");
  diagnostics.warning("unused", {}, "m");
  CHECK(render_json(diagnostics, sources) ==
        "{\"severity\":\"error\",\"code\":\"unknown-name\",\"file\":\"dir\\\\a \\\"b\\\".mscl\","
        "\"line\":2,\"column\":3,\"end_line\":2,\"end_column\":6,"
        "\"message\":\"'\\u0001\\u0009\\n\\\" \\ufffd \\ufffd\\ufffd\\ufffd ü 漢'\",\"notes\":["
        "{\"message\":\"when r = 0\"},"
        "{\"message\":\"here\",\"file\":\"dir\\\\a \\\"b\\\".mscl\",\"line\":1,\"column\":1,"
        "\"end_line\":1,\"end_column\":2}]}\n"
        "{\"severity\":\"error\",\"code\":\"range\",\"message\":\"m\","
        "\"path\":\"plan.json: gpus[2]\",\"notes\":[]}\n"
        "{\"severity\":\"warning\",\"code\":\"unused\",\"message\":\"m\",\"notes\":[]}\n");
}

TEST_CASE("JSON: where a span of several lines ends") {
  Sources sources;
  const FileId file = sources.add("a.mscl", "put ch\n  .x <- y\nsync\n");
  Diagnostics diagnostics;
  diagnostics.error("operands", {file, 4, 11, 1, 5}, "m");
  diagnostics.error("operands", {file, 19, 23, 3, 1}, "m");
  CHECK(render_json(diagnostics, sources) ==
        R"({"severity":"error","code":"operands","file":"a.mscl","line":1,"column":5,)"
        R"("end_line":2,"end_column":5,"message":"m","notes":[]})"
        "\n"
        R"({"severity":"error","code":"operands","file":"a.mscl","line":3,"column":1,)"
        R"("end_line":3,"end_column":5,"message":"m","notes":[]})"
        "\n");
}

TEST_CASE("JSON: loop values, the missing edge, patches") {
  Sources sources;
  const FileId file = sources.add("a.mscl", "put x\nsync\n");
  Diagnostics diagnostics;
  Diagnostic& d = diagnostics.error("race", {file, 0, 3, 1, 1}, "m");
  d.loop = {{"r", 0}, {"p", -3}};
  d.missing = MissingEdge{.kind = MissingKind::signal,
                          .chunk = "x[0] of rank 1",
                          .copies = 2,
                          .first = {.op = "put x", .does = "writes", .block = "tb 0", .rank = 0},
                          .second = {.does = "may change", .rank = 1, .call = 1}};
  diagnostics.add_patch(0, {"add 'y'", {{file, 5, 6, " y\n"}}});
  CHECK(render_json(diagnostics, sources) ==
        R"({"severity":"error","code":"race","file":"a.mscl","line":1,"column":1,"end_line":1,)"
        R"("end_column":4,"message":"m","loop":{"r":0,"p":-3},"missing":{"kind":"signal",)"
        R"("chunk":"x[0] of rank 1","copies":2,"first":{"does":"writes","op":"put x","rank":0,)"
        R"("block":"tb 0","call":0},"second":{"does":"may change","rank":1,"call":1}},)"
        R"("notes":[],"patches":[{"title":"add 'y'","edits":[{"file":"a.mscl","begin":5,"end":6,)"
        R"("line":1,"column":6,"end_line":2,"end_column":1,"text":" y\n"}]}]})"
        "\n");
}

TEST_CASE("did you mean") {
  const std::vector<std::string_view> names = {"others", "allreduce", "put", "ch", "copy", "KiB"};
  CHECK(nearest("othes", names) == "others");
  CHECK(nearest("allredcue", names) == "allreduce");
  CHECK(nearest("putt", names) == "put");
  CHECK(nearest("KB", names) == "KiB");
  CHECK(nearest("cpoy", names) == "copy");
  CHECK(nearest("cg", names) == "ch");
  CHECK(nearest("q", names).empty());
  CHECK(nearest("up", names).empty());
  CHECK(nearest("reduce", names).empty());
  CHECK(nearest("copy", {"copy"}).empty());
  CHECK(nearest("", names).empty());
}
