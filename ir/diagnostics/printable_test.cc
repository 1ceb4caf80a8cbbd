// Bytes from outside as text for people.
#include "ir/diagnostics/printable.h"

#include <catch2/catch.hpp>

#include "ir/diagnostics/diagnostic.h"

namespace mscclc {
namespace {

TEST_CASE("what could command a terminal is escaped, all else stays") {
  CHECK(printable("plain, größer, 漢字") == "plain, größer, 漢字");
  CHECK(printable("a\x1b[31mb\x7f\r") == "a\\x1b[31mb\\x7f\\x0d");
  CHECK(printable("two\nlines\tand") == "two\nlines\tand");
  CHECK(printable("\xc2\x9b"
                  "31m") == "\\xc2\\x9b31m");  // a control of eight bits
  CHECK(printable("\xff\xc3") == "\\xff\\xc3");
  CHECK(printable(std::string_view("\0", 1)) == "\\x00");
}

TEST_CASE("what turns the direction of text, or ends a line, is escaped") {
  CHECK(printable("a\u202eb\u2066c\u200fd\u061ce") ==
        "a\\xe2\\x80\\xaeb\\xe2\\x81\\xa6c\\xe2\\x80\\x8fd\\xd8\\x9ce");
  CHECK(printable("a\u2028b") == "a\\xe2\\x80\\xa8b");
  CHECK(printable("a\u200bb\u206ac\u2027") == "a\u200bb\u206ac\u2027");
  CHECK(printable_line("one\ntwo\t\x1b") == "one\\x0atwo\\x09\\x1b");
}

TEST_CASE("quotes") {
  CHECK(quoted("a\nb") == "'a\\x0ab'");
  CHECK(quoted("SSH-2.0-OpenSSH", 7) == "'SSH-2.0…'");
  CHECK(quoted("äää", 3) == "'ä…'");
  CHECK(quoted(std::string(5, '\x80'), 3) == "'…'");
}

TEST_CASE("diagnostics are printable, whatever they quote") {
  Diagnostics diagnostics;
  diagnostics.error_at("wrong", "a\x1b]0;x\x07.json", "it says \x1b[2J")
      .notes.push_back({"and \x1b[H"});
  CHECK(render_text(diagnostics, Sources()) ==
        "a\\x1b]0;x\\x07.json: error: it says \\x1b[2J\n"
        "a\\x1b]0;x\\x07.json: note: and \\x1b[H\n");
}

TEST_CASE("what diagnostics quote cannot pass for another line of theirs") {
  Diagnostics diagnostics;
  diagnostics.error("wrong", {}, "'a\nerror: forged'").notes.push_back({"b\nc"});
  CHECK(render_text(diagnostics, Sources()) == "error: 'a\\x0aerror: forged'\nnote: b\\x0ac\n");
}

TEST_CASE("diagnostics as JSON take the same characters out, by JSON's own escapes") {
  Diagnostics diagnostics;
  diagnostics.error("wrong", {}, "\x1b \x7f \u009b \u202e ä");
  const std::string text = render_json(diagnostics, Sources());
  CHECK_THAT(text, Catch::Contains("\"\\u001b \\u007f \\u009b \\u202e ä\""));
  CHECK(printable(text) == text);
}

}  // namespace
}  // namespace mscclc
