// What messages call chunks.
#include "ir/print/row_names.h"

#include <catch2/catch.hpp>

using namespace mscclc;

namespace {

/// A buffer 's' of these dimensions, whose indices `name` writes.
struct Named {
  Program program;
  Buffer buffer;
  template <class F>
  Named(std::initializer_list<int64_t> dims, F name) {
    buffer.name = program.intern("s");
    buffer.chunks = 1;
    for (const int64_t n : dims) {
      program.integers.extend(buffer.dims, n);
      buffer.chunks *= static_cast<uint32_t>(n);
    }
    RowNames names(program);
    name(names);
    buffer.rows = names.take();
  }
  std::string text(uint32_t first, uint32_t count = 1) const {
    return run_text(program, buffer, first, count);
  }
};

}  // namespace

TEST_CASE("indices that are all 0, 1, ... take no memory") {
  const Named s({4, 2}, [](RowNames& names) {
    names.range(4, 0, -1);
    names.range(2, 0, -1);
  });
  CHECK(s.buffer.rows.count == 0);
  CHECK(s.text(0) == "s[0, 0]");
  CHECK(s.text(5) == "s[2, 1]");
  CHECK(s.text(4, 2) == "s[2]");
  CHECK(s.text(2, 4) == "s[1..3]");
  CHECK(s.text(0, 8) == "s[0..4]");
  CHECK(s.text(1, 2) == "s[0, 1] to s[1, 0]");
}

TEST_CASE("ranges without one of their numbers, and lists") {
  const Named s({3, 2}, [](RowNames& names) {
    names.range(3, 5, 1);  // 5, 7, 8
    names.list(std::vector<int64_t>{9, 4});
  });
  CHECK(s.text(0) == "s[5, 9]");
  CHECK(s.text(3) == "s[7, 4]");
  CHECK(s.text(2, 4) == "s[7..9]");
  CHECK(s.text(0, 4) == "s[[5, 7]]");
  CHECK(s.text(2, 2) == "s[7]");
}

TEST_CASE("chunks of a ragged buffer have all their indices") {
  const Named s({3}, [](RowNames& names) {
    names.tuples(2, std::vector<int64_t>{0, 3, 0, 5, 1, 4});
  });
  CHECK(s.text(1) == "s[0, 5]");
  CHECK(s.text(2) == "s[1, 4]");
  CHECK(s.text(0, 2) == "s[0, 3] to s[0, 5]");
}

TEST_CASE("indices that do not fit the buffer any more are not used") {
  Named s({3}, [](RowNames& names) { names.list(std::vector<int64_t>{4, 6, 8}); });
  CHECK(s.text(1) == "s[6]");
  s.buffer.chunks = 6;  // two instances
  s.buffer.dims = {};
  s.program.integers.extend(s.buffer.dims, 6);
  CHECK(s.text(1) == "s[1]");
}
