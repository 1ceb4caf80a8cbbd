#include "tools/lsp/features/edit.h"

#include <catch2/catch.hpp>

#include "tools/lsp/features/sample_test.h"

using namespace mscclc::lsp;
using mscclc::lsp::testing::kRace;
using mscclc::lsp::testing::Sample;

TEST_CASE("formatting: a document comes into canonical form, and then stays") {
  Sample sample("param   R=4\ncollective barrier( ranks:R )\nrank r in 0..R{sync}\n");
  const std::string after = sample.edited(formatting(sample.document));
  CHECK(after.find("rank r in 0..R {") != std::string::npos);
  Sample again(after);
  CHECK(formatting(again.document).empty());
}

TEST_CASE("formatting: a document with syntax errors stays as it is") {
  Sample sample("param = \n");
  CHECK(formatting(sample.document).is_null());
}

TEST_CASE("a patch is found, and the document is proved with it") {
  Sample sample(kRace);
  const FoundPatch found = find_patch(sample.document);
  REQUIRE(found.edits.is_array());
  CHECK(found.title.find("copies: 2") != std::string::npos);
  Sample patched(sample.edited(found.edits));
  CHECK(patched.document.checked().proved);
}

TEST_CASE("no patch: it says so") {
  Sample sample("collective barrier(ranks: 2)\nrank r in 0..1 { sync }\n");
  const FoundPatch found = find_patch(sample.document);
  CHECK(found.edits.is_null());
  CHECK(found.title.starts_with("no patch found"));
  Sample ir("ir 1\n");
  CHECK(find_patch(ir.document).edits.is_null());
}
