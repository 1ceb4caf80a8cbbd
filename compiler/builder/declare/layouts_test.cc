#include "compiler/builder/declare/layouts.h"

#include <catch2/catch.hpp>
#include <limits>

using namespace mscclc;

namespace {

/// A rank of an allgather of two ranks; `buffer` gives a buffer its dimensions.
struct WithLayouts {
  Diagnostics diagnostics;
  BuildReports reports{diagnostics, nullptr, nullptr};
  Draft draft{reports};
  Layouts layouts{reports, draft};
  WithLayouts() {
    draft.program.contract.kind = CollectiveKind::allgather;
    draft.program.contract.ranks = 2;
    draft.program.contract.chunks = {3};
    draft.program.ranks.resize(2);
    layouts.set_ranks(2);
    draft.enter(0);
    layouts.begin_rank();
  }
  uint32_t buffer(std::vector<Dim> dims) {
    Buffer b;
    b.name = draft.program.intern("b");
    const auto axes = layouts.make_axes(b.name, dims, {});
    REQUIRE(axes);
    REQUIRE(layouts.add(*axes, {}, b.name, {}));
    b.chunks = layouts.last().chunks;
    draft.out->buffers.push_back(b);
    return layouts.count(0) - 1;
  }
  /// First chunk and number of chunks; -1 and the message after a mistake.
  std::string find(uint32_t buffer, std::vector<Index> index) {
    Operand o;
    if (!layouts.locate(0, buffer, index, {}, o)) return diagnostics.all().back().message;
    return std::to_string(o.first) + " +" + std::to_string(o.count);
  }
};

}  // namespace

TEST_CASE("indexes find runs of chunks") {
  WithLayouts w;
  const std::vector<int64_t> rows = {7, 3};
  const uint32_t b = w.buffer({Dim(List::stored(rows)), Dim(4)});
  CHECK(w.find(b, {}) == "0 +8");
  CHECK(w.find(b, {3}) == "4 +4");
  CHECK(w.find(b, {7, 2}) == "2 +1");
  CHECK(w.find(b, {7, Index::range(1, 3)}) == "1 +2");
  CHECK(w.find(b, {5}) == "'b' has no row 5 on rank 0");
  CHECK(w.find(b, {7, 4}) == "'b' has no chunk 4 on rank 0");
  CHECK(w.find(b, {7, 1, 1}) == "'b' has 2 dimensions; 3 indexes are given");
  CHECK(w.find(b, {7, Index::range(1, 1)}) == "an empty range");
  CHECK(w.layouts.dims_text(0, b) == "[[7, 3], 4]");
  CHECK(w.layouts.row_of(w.layouts.of(0, b), 6) == 1);
}

TEST_CASE("a run of a range of indexes is found by its ends") {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  WithLayouts w;
  const uint32_t b = w.buffer({Dim(List::range(-3, kMaxChunks - 3))});
  // More runs than could be looked through index by index.
  for (int i = 0; i < 1000; ++i) REQUIRE(w.find(b, {Index::range(-2, kMaxChunks - 3)}) != "");
  CHECK(w.find(b, {Index::range(-2, kMaxChunks - 3)}) == "1 +2147483646");
  CHECK(w.find(b, {Index::range(-3, -2)}) == "0 +1");
  CHECK(w.find(b, {Index::range(-4, 0)}) == "'b' has no row -4 on rank 0");
  CHECK(w.find(b, {Index::range(0, kMost)}) == "'b' has no row 2147483644 on rank 0");
  Index backwards = 0;
  backwards.count = -1;
  CHECK(w.find(b, {backwards}) == "an empty range");
}

TEST_CASE("rows may depend on the indexes before them") {
  WithLayouts w;
  const Rows rows{{0, 5}, {{{1, 2}, {}}, {{9}, {}}}};
  const NameId name = w.draft.program.intern("tree");
  REQUIRE(w.layouts.add_tree(rows, 2, {}, name, {}));
  Buffer b;
  b.name = name;
  b.chunks = w.layouts.last().chunks;
  w.draft.out->buffers.push_back(b);
  CHECK(w.find(2, {0}) == "0 +2");
  CHECK(w.find(2, {5, 9}) == "2 +1");
  CHECK(w.find(2, {5, 1}) == "'tree' has no row 1 on rank 0");
}

TEST_CASE("rows that a list has twice are refused") {
  WithLayouts w;
  const std::vector<int64_t> rows = {2, 2};
  const std::vector<Dim> dims = {Dim(List::stored(rows))};
  CHECK_FALSE(w.layouts.make_axes(w.draft.program.intern("b"), dims, {}));
  CHECK(w.diagnostics.all()[0].message == "'b' has row 2 twice");
}

TEST_CASE("chunks at the same position of a row are equally long") {
  WithLayouts w;
  CHECK(w.layouts.size_class(0, kOutput, 4) == w.layouts.size_class(0, kInput, 1));
  CHECK(w.layouts.size_class(0, kOutput, 4) != w.layouts.size_class(0, kInput, 2));
}
