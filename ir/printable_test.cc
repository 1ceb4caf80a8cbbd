// Bytes from outside as text for people.
#include "ir/printable.h"

#include <catch2/catch.hpp>

#include "ir/diagnostic.h"

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

}  // namespace
}  // namespace mscclc
