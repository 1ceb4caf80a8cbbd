// What documents show is what commands print, and what they do not show is found.
#include "tests/document.h"

#include <catch2/catch.hpp>

#include "ir/support/read_file.h"
#include "tests/shell.h"

namespace mscclc::testing {
namespace {

namespace fs = std::filesystem;

struct Case {
  Case() : scratch(set_up("mscclc")), path(scratch / "page.md") {}
  ~Case() { fs::remove_all(scratch); }
  DocumentResult check(const std::string& text, bool update = false) {
    fs::remove_all(scratch / "page");
    write_whole(path, text);
    return check_document(path, scratch, update);
  }
  const fs::path scratch, path;
};

std::string session(const std::string& lines) {
  return "Text.\n\n```\n" + lines + "```\n\nMore.\n";
}

TEST_CASE("documents: commands and what they print") {
  Case c;
  const auto right = [&](const std::string& lines) {
    const DocumentResult result = c.check(session(lines));
    CHECK(result.passed + result.failed == 1);
    return result.failed == 0;
  };
  CHECK(right("$ echo one\none\n"));
  CHECK_FALSE(right("$ echo one\ntwo\n"));
  CHECK_FALSE(right("$ echo one\n"));
  CHECK_FALSE(right("$ echo one\none\ntwo\n"));
  CHECK(right("$ true\n"));
  CHECK(right("$ echo out; echo err >&2\nout\nerr\n"));
  CHECK(right("$ echo '  time  12.5 us'\n time 3.25 us\n"));
  CHECK_FALSE(right("$ echo 12\n13\n"));
  CHECK(right("$ seq 5\n1\n…\n4\n5\n"));
  CHECK(right("$ seq 5\n…\n"));
  CHECK_FALSE(right("$ seq 5\n1\n…\n4\n"));
  CHECK(c.check(session("make it so\n")).passed == 0);
}

// Times of 10 ms and more are whole numbers; rates that are whole have no point.
TEST_CASE("documents: a table of results may be of any time") {
  Case c;
  const auto prints = [&](const std::string& printed, const std::string& expected) {
    return c.check(session("$ echo '" + printed + "'\n" + expected + "\n")).failed == 0;
  };
  const std::string row =
      "        1024   256       f32     sum      -1     2.93    0.35    0.52       0";
  CHECK(
      prints("        1024   256       f32     sum      -1    12345    0.00    0.00       0", row));
  CHECK(prints("        1024   256       f32     sum      -1  1234567   0.00   0.00       0", row));
  CHECK_FALSE(
      prints("     1024   256       f32     sum      -1     2.93    0.35    0.52       1", row));
  CHECK_FALSE(
      prints("     1024   257       f32     sum      -1     2.93    0.35    0.52       0", row));
  CHECK_FALSE(
      prints("     1024   256       f32     sum       0     2.93    0.35    0.52       0", row));
  const std::string mean = "# Avg bus bandwidth    : 0.131522";
  CHECK(prints("# Avg bus bandwidth    : 2", mean));
  CHECK(prints("# Avg bus bandwidth    : 7.1e-05", mean));
  CHECK_FALSE(prints("# Out of bounds values : 2 FAILED", "# Out of bounds values : 0 OK"));
}

TEST_CASE("documents: files") {
  Case c;
  const std::string page = "`a.txt`:\n\n```\nhello\n```\n\n" + session("$ cat a.txt\nhello\n");
  CHECK(c.check(page).passed == 1);
  // The repository's own are compared, except comments at their head.
  const std::string shown = read_file("plans/sendrecv.mscl").value();
  const std::string body = shown.substr(shown.find("\nprogram") + 1);
  const auto block = [](const std::string& text) {
    return "`plans/sendrecv.mscl`:\n\n```mscl\n" + text + "```\n";
  };
  REQUIRE(!body.empty());
  CHECK(c.check(block(body)).passed == 1);
  CHECK(c.check(block(body + "\n# more\n")).failed == 1);
}

TEST_CASE("documents: what is printed now is written down") {
  Case c;
  const std::string page = session("$ echo one\ntwo\n$ seq 3\n…\n3\n");
  CHECK(c.check(page, true).failed == 0);
  CHECK(read_file(c.path).value() == session("$ echo one\none\n$ seq 3\n…\n3\n"));
  CHECK(check_document(c.scratch / "none.md", c.scratch, false).failed == 1);
}

}  // namespace
}  // namespace mscclc::testing
