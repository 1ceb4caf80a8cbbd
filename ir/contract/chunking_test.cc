// Properties that every Chunking must have, over small sets that hold all cases.
#include <catch2/catch.hpp>

#include "ir/contract/contract.h"

using namespace mscclc;

namespace {

/// A contract of every kind with buffers, with two ways to cut it.
std::vector<Contract> contracts() {
  std::vector<Contract> all;
  for (int k = 1; k <= static_cast<int>(CollectiveKind::custom); ++k) {
    for (const auto& chunks : {std::vector<uint32_t>{5}, std::vector<uint32_t>{3, 4}}) {
      Contract c;
      c.kind = static_cast<CollectiveKind>(k);
      c.ranks = 3;
      c.root = 1;
      c.shift = 1;
      c.chunks = chunks;
      c.counts = {1, 0, 2, 3, 1, 0, 0, 0, 4};
      c.input = chunks;
      c.output = {7, 2};
      if (c.kind == CollectiveKind::alltoallv) c.chunks = {chunks[0]};
      all.push_back(c);
    }
  }
  return all;
}

constexpr uint64_t kParts[] = {0,         1, 15, 16, 17, 79, 80, 240, 1000, 4096, (5ull << 30) + 7,
                               1ull << 55};

/// First chunk of each part that the caller lays out, and the bytes where it begins.
struct Part {
  uint32_t first, count;
  uint64_t begin, bytes;
};

std::vector<Part> parts(const Contract& c, Side side, uint32_t rank, uint64_t part_bytes) {
  const Shape shape = c.shape(side, rank);
  std::vector<Part> out;
  if (!shape.lengths.empty()) {
    uint32_t first = 0, units = 0;
    for (size_t p = 0; p < shape.rows; ++p) {
      const uint32_t count = shape.lengths[p] / c.part_chunks();
      out.push_back({first, shape.lengths[p], units * part_bytes, count * part_bytes});
      first += shape.lengths[p];
      units += count;
    }
    return out;
  }
  const uint32_t n = shape.chunks() == 0 ? 0 : shape.rows / shape.part_rows;
  for (uint32_t p = 0; p < n; ++p) {
    const uint32_t count = shape.part_rows * shape.columns;
    out.push_back({p * count, count, p * part_bytes, part_bytes});
  }
  return out;
}

/// The chunks of a part lie end to end from `part.begin`; returns their bytes.
uint64_t tiled_bytes(const Chunking& chunking, Side side, uint32_t rank, const Part& part) {
  uint64_t at = part.begin;
  for (uint32_t chunk = part.first; chunk < part.first + part.count; ++chunk) {
    REQUIRE(chunking.offset(side, rank, chunk) == at);
    at += chunking.length(side, rank, chunk);
  }
  return at - part.begin;
}

}  // namespace

TEST_CASE("chunks tile the buffer") {
  for (const Contract& c : contracts()) {
    for (const uint64_t part_bytes : kParts) {
      for (const uint32_t align : {1u, 4u, 16u, 128u}) {
        const Chunking chunking(c, part_bytes, align);
        INFO(name(c.kind) << " " << part_bytes << " / " << align);
        for (const Side side : {Side::input, Side::output}) {
          for (uint32_t rank = 0; rank < c.ranks; ++rank) {
            uint64_t sum = 0;
            for (const Part& part : parts(c, side, rank, part_bytes)) {
              const uint64_t bytes = tiled_bytes(chunking, side, rank, part);
              if (c.kind != CollectiveKind::custom) REQUIRE(bytes == part.bytes);
              sum += bytes;
            }
            REQUIRE(chunking.buffer_bytes(side, rank) == sum);
          }
        }
      }
    }
  }
}

TEST_CASE("longest is the maximum of all chunks, in granules") {
  for (const Contract& c : contracts()) {
    for (const uint64_t part_bytes : kParts) {
      const Chunking chunking(c, part_bytes, 16);
      uint64_t most = 0;
      for (const Side side : {Side::input, Side::output}) {
        for (uint32_t rank = 0; rank < c.ranks; ++rank) {
          const uint32_t chunks = c.shape(side, rank).chunks();
          for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
            most = std::max(most, chunking.length(side, rank, chunk));
          }
        }
      }
      INFO(name(c.kind) << " " << part_bytes);
      CHECK(chunking.longest() == (most + 15) / 16 * 16);
    }
  }
}

TEST_CASE("chunks of one size class are equally long for every message") {
  for (const Contract& c : contracts()) {
    for (uint64_t part_bytes = 0; part_bytes < 700; part_bytes += 13) {
      const Chunking chunking(c, part_bytes, 16);
      std::vector<std::pair<uint64_t, uint64_t>> lengths;
      for (const Side side : {Side::input, Side::output}) {
        for (uint32_t rank = 0; rank < c.ranks; ++rank) {
          const uint32_t chunks = c.shape(side, rank).chunks();
          for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
            lengths.emplace_back(c.size_class(side, rank, chunk),
                                 chunking.length(side, rank, chunk));
          }
        }
      }
      std::sort(lengths.begin(), lengths.end());
      for (size_t i = 1; i < lengths.size(); ++i) {
        if (lengths[i].first == lengths[i - 1].first) REQUIRE(lengths[i] == lengths[i - 1]);
      }
    }
  }
}

TEST_CASE("sizes that divide evenly give the peer's c * C") {
  for (const Contract& c : contracts()) {
    if (c.kind == CollectiveKind::barrier) continue;
    const uint64_t chunk_bytes = 48, part_bytes = chunk_bytes * c.part_chunks();
    const Chunking chunking(c, part_bytes, 16);
    INFO(name(c.kind));
    CHECK(chunking.even());
    CHECK_FALSE(Chunking(c, part_bytes + 16, 16).even());
    for (const Side side : {Side::input, Side::output}) {
      for (uint32_t rank = 0; rank < c.ranks; ++rank) {
        const uint32_t chunks = c.shape(side, rank).chunks();
        for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
          REQUIRE(chunking.offset(side, rank, chunk) == chunk * chunk_bytes);
          REQUIRE(chunking.length(side, rank, chunk) == chunk_bytes);
        }
      }
    }
  }
}

TEST_CASE("longer chunks come first, the last ends with the message") {
  Contract c;
  c.kind = CollectiveKind::allreduce;
  c.ranks = 2;
  c.chunks = {3};
  const Chunking chunking(c, 100, 16);  // 7 granules, the last of 4 bytes
  CHECK(chunking.length(Side::input, 0, 0) == 48);
  CHECK(chunking.length(Side::input, 0, 1) == 32);
  CHECK(chunking.length(Side::input, 0, 2) == 20);
  CHECK(chunking.longest() == 48);

  const Chunking one(c, 1, 16);
  CHECK(one.length(Side::input, 0, 0) == 1);
  CHECK(one.length(Side::input, 0, 1) == 0);
  CHECK(one.offset(Side::input, 0, 2) == 1);
  CHECK(one.longest() == 16);
}

TEST_CASE("a caller's row begins where the caller put it") {
  Contract c;
  c.kind = CollectiveKind::allgather;
  c.ranks = 4;
  const Chunking chunking(c, 12, 16);  // three floats a rank
  CHECK(chunking.offset(Side::output, 0, 3) == 36);
  CHECK(chunking.length(Side::output, 0, 3) == 12);
  CHECK(chunking.buffer_bytes(Side::output, 0) == 48);
  CHECK(chunking.message_bytes() == 48);
}

TEST_CASE("more than 4 GiB") {
  Contract c;
  c.kind = CollectiveKind::alltoall;
  c.ranks = 1024;
  c.chunks = {4};
  const uint64_t part = 1ull << 40;
  const Chunking chunking(c, part, 16);
  CHECK(chunking.offset(Side::output, 0, 4095) == 1023 * part + 3 * (part / 4));
  CHECK(chunking.message_bytes() == 1ull << 50);
}

TEST_CASE("messages and parts") {
  Contract c;
  c.kind = CollectiveKind::allgather;
  c.ranks = 3;
  CHECK(Chunking::part_for_message(c, 100, 4) == 32);
  c.kind = CollectiveKind::reduce;
  c.root = 2;
  CHECK(Chunking::part_for_message(c, 102, 4) == 100);
  CHECK(Chunking(c, 100, 16).message_bytes() == 100);
  c.kind = CollectiveKind::alltoallv;
  c.counts = {1, 0, 2, 3, 1, 0, 0, 0, 4};  // rank 2 receives 6 units: the largest buffer
  CHECK(Chunking(c, 8, 16).message_bytes() == 48);
  CHECK(Chunking::part_for_message(c, 100, 8) == 16);
  c.kind = CollectiveKind::barrier;
  CHECK(Chunking::part_for_message(c, 100, 4) == 0);
  CHECK(Chunking(c, 0, 16).message_bytes() == 0);
}

TEST_CASE("the smaller side of a custom contract is a prefix of the larger") {
  Contract c;
  c.kind = CollectiveKind::custom;
  c.ranks = 2;
  c.input = {2};
  c.output = {5};
  const Chunking chunking(c, 112, 16);  // 7 granules: 32 32 16 16 16
  CHECK(chunking.buffer_bytes(Side::output, 0) == 112);
  CHECK(chunking.buffer_bytes(Side::input, 0) == 64);
  CHECK(chunking.length(Side::input, 1, 1) == 32);
  CHECK(chunking.message_bytes() == 112);
}

TEST_CASE("alltoallv skips empty rows") {
  Contract c;
  c.kind = CollectiveKind::alltoallv;
  c.ranks = 3;
  c.counts = {0, 2, 1, 0, 0, 0, 3, 0, 1};
  const Chunking chunking(c, 20, 16);
  CHECK(chunking.offset(Side::input, 0, 0) == 0);
  CHECK(chunking.length(Side::input, 0, 0) == 32);  // 40 bytes in two chunks: 32 + 8
  CHECK(chunking.length(Side::input, 0, 1) == 8);
  CHECK(chunking.offset(Side::input, 0, 2) == 40);
  CHECK(chunking.offset(Side::output, 0, 1) == 32);
  CHECK(chunking.buffer_bytes(Side::input, 1) == 0);
  CHECK(chunking.longest() == 32);
}

// Seven rows of 16 f32 in two chunks: four and three, each of 64 bytes, or of 16 in e4m3.
TEST_CASE("an output of another type has as many rows, in bytes of its own") {
  Contract c;
  c.kind = CollectiveKind::allreduce;
  c.ranks = 2;
  c.chunks = {2};
  c.columns = 16;
  c.output_type = rows::Type::e4m3;
  const Chunking chunking(c, 7 * 64, 64);
  CHECK(chunking.offset(Side::input, 0, 1) == 4 * 64);
  CHECK(chunking.offset(Side::output, 0, 1) == 4 * 16);
  CHECK(chunking.length(Side::output, 0, 0) == 4 * 16);
  CHECK(chunking.length(Side::output, 0, 1) == 3 * 16);
  CHECK(chunking.buffer_bytes(Side::output, 1) == 7 * 16);
  CHECK(chunking.most_buffer_bytes(Side::output, 1) == 7 * 32);  // of bf16 there may be 14
  CHECK(chunking.most_buffer_bytes(Side::input, 1) == 7 * 64);
  CHECK(chunking.rows_before(1, 1) == 4);
  CHECK(chunking.rows(1) == 7);
  CHECK(chunking.message_bytes() == 7 * 64);
  CHECK(Chunking::parts_of_message(c) == 1);
  CHECK(!c.can_alias());
  CHECK(!c.alias(0));
}
