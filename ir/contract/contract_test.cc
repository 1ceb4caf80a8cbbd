// Every kind of the language's Contracts table: shapes, promises, aliasing.
#include "ir/contract/contract.h"

#include <catch2/catch.hpp>

using namespace mscclc;

namespace {

Contract make(CollectiveKind kind, uint32_t ranks, std::vector<uint32_t> chunks = {1}) {
  Contract c;
  c.kind = kind;
  c.ranks = ranks;
  c.chunks = std::move(chunks);
  return c;
}

using Inputs = std::vector<CallerChunk>;

std::vector<uint32_t> dims(const Contract& c, Side side, uint32_t rank) {
  return c.shape(side, rank).dims;
}

}  // namespace

TEST_CASE("collective names go both ways, 'none' is not one") {
  for (int k = 1; k <= static_cast<int>(CollectiveKind::custom); ++k) {
    const auto kind = static_cast<CollectiveKind>(k);
    CHECK(find_collective(name(kind)) == kind);
  }
  CHECK(name(CollectiveKind::alltoallv) == "alltoallv");
  CHECK_FALSE(find_collective("none"));
  CHECK_FALSE(find_collective("allredcue"));
}

TEST_CASE("allreduce: every output chunk holds all inputs of that chunk") {
  const Contract c = make(CollectiveKind::allreduce, 3, {2, 4});
  CHECK(dims(c, Side::input, 1) == std::vector<uint32_t>{2, 4});
  CHECK(c.shape(Side::output, 2).chunks() == 8);
  CHECK_FALSE(c.shape(Side::output, 2).caller_rows);
  CHECK(c.reduces());
  CHECK(c.uniform());
  const auto p = c.promise(1, 5);
  REQUIRE(p);
  CHECK(p->reduced);
  CHECK(p->output == CallerChunk{1, 5});
  CHECK(p->inputs == Inputs{{0, 5}, {1, 5}, {2, 5}});
  CHECK(c.alias(2)->input_chunk == 0);
  CHECK(c.alias(2)->output_chunk == 0);
  CHECK(c.size_class(Side::input, 0, 5) == 5);
}

TEST_CASE("reduce and gather have an output at the root only") {
  Contract c = make(CollectiveKind::reduce, 4, {2});
  c.root = 3;
  CHECK(c.exists(Side::output, 3));
  CHECK_FALSE(c.exists(Side::output, 0));
  CHECK(c.exists(Side::input, 0));
  CHECK_FALSE(c.promise(0, 1));
  CHECK(c.promise(3, 1)->inputs.size() == 4);
  CHECK(c.can_alias());
  CHECK(c.alias(3));
  CHECK_FALSE(c.alias(0));

  c.kind = CollectiveKind::gather;
  CHECK(dims(c, Side::output, 3) == std::vector<uint32_t>{4, 2});
  CHECK_FALSE(c.reduces());
  CHECK(c.promise(3, 5)->inputs == Inputs{{2, 1}});
  CHECK_FALSE(c.promise(2, 5));
  CHECK(c.alias(3)->output_chunk == 6);
}

TEST_CASE("allgather and reducescatter have caller rows on one side") {
  Contract c = make(CollectiveKind::allgather, 3, {2});
  CHECK(dims(c, Side::input, 0) == std::vector<uint32_t>{2});
  CHECK(dims(c, Side::output, 0) == std::vector<uint32_t>{3, 2});
  CHECK(c.shape(Side::output, 0).caller_rows);
  CHECK(c.promise(0, 5)->inputs == Inputs{{2, 1}});
  CHECK_FALSE(c.promise(0, 5)->reduced);
  CHECK(c.alias(2)->output_chunk == 4);
  CHECK(c.alias(2)->input_chunk == 0);
  CHECK(c.size_class(Side::output, 0, 5) == c.size_class(Side::input, 0, 1));

  c.kind = CollectiveKind::reducescatter;
  CHECK(dims(c, Side::input, 0) == std::vector<uint32_t>{3, 2});
  CHECK(dims(c, Side::output, 0) == std::vector<uint32_t>{2});
  CHECK(c.promise(1, 1)->inputs == Inputs{{0, 3}, {1, 3}, {2, 3}});
  CHECK(c.promise(1, 1)->reduced);
  CHECK(c.alias(2)->input_chunk == 4);
  CHECK(c.alias(2)->output_chunk == 0);
}

TEST_CASE("rows inside a rank's part") {
  const Contract c = make(CollectiveKind::allgather, 3, {2, 4});
  const Shape shape = c.shape(Side::output, 0);
  CHECK(shape.dims == std::vector<uint32_t>{3, 2, 4});
  CHECK(shape.rows == 6);
  CHECK(shape.part_rows == 2);
  CHECK(shape.columns == 4);
  CHECK(c.part_chunks() == 8);
  CHECK(c.promise(0, 21)->inputs == Inputs{{2, 5}});
  CHECK(c.size_class(Side::output, 0, 21) == 5);
}

TEST_CASE("alltoall, broadcast, scatter, sendrecv, barrier") {
  Contract c = make(CollectiveKind::alltoall, 3, {2});
  CHECK(c.promise(1, 5)->inputs == Inputs{{2, 3}});
  CHECK(c.alias(1)->input_chunk == 0);
  CHECK_FALSE(c.uniform());

  c.kind = CollectiveKind::broadcast;
  c.root = 2;
  CHECK_FALSE(c.exists(Side::input, 0));
  CHECK(c.exists(Side::output, 0));
  CHECK(c.promise(0, 1)->inputs == Inputs{{2, 1}});
  CHECK(c.alias(2));
  CHECK_FALSE(c.alias(1));

  c.kind = CollectiveKind::scatter;
  CHECK(dims(c, Side::input, 2) == std::vector<uint32_t>{3, 2});
  CHECK(c.promise(1, 1)->inputs == Inputs{{2, 3}});
  CHECK(c.alias(2)->input_chunk == 4);

  c = make(CollectiveKind::sendrecv, 4, {2});
  c.shift = 1;
  CHECK(c.promise(0, 1)->inputs == Inputs{{3, 1}});
  c.shift = -5;
  CHECK(c.promise(3, 0)->inputs == Inputs{{0, 0}});
  CHECK_FALSE(c.can_alias());
  CHECK(c.laid_out_alike(Side::input, 0, 3));

  c = make(CollectiveKind::barrier, 4);
  CHECK_FALSE(c.exists(Side::input, 0));
  CHECK_FALSE(c.promise(0, 0));
}

TEST_CASE("alltoallv: rows as long as the counts say") {
  Contract c = make(CollectiveKind::alltoallv, 3, {});
  c.counts = {1, 0, 2,  //
              3, 1, 0,  //
              0, 2, 1};
  CHECK(c.shape(Side::input, 1).lengths == std::vector<uint32_t>{3, 1, 0});
  CHECK(c.shape(Side::output, 1).lengths == std::vector<uint32_t>{0, 1, 2});
  CHECK(c.shape(Side::output, 1).chunks() == 3);
  CHECK(c.promise(1, 0)->inputs == Inputs{{1, 3}});
  CHECK(c.promise(1, 2)->inputs == Inputs{{2, 1}});
  CHECK_FALSE(c.promise(1, 3));
  CHECK_FALSE(c.can_alias());
  CHECK(c.size_class(Side::output, 1, 2) == c.size_class(Side::input, 2, 1));
  CHECK(c.size_class(Side::output, 1, 2) != c.size_class(Side::output, 1, 1));
  CHECK(c.laid_out_alike(Side::input, 1, 1));
  CHECK_FALSE(c.laid_out_alike(Side::input, 0, 2));  // three chunks each, in other rows
  CHECK_FALSE(c.laid_out_alike(Side::output, 0, 1));
  c.chunks = {2};
  CHECK(c.shape(Side::output, 1).lengths == std::vector<uint32_t>{0, 2, 4});
  CHECK(c.promise(1, 5)->inputs == Inputs{{2, 3}});
}

TEST_CASE("custom: the ensure lines, found by output") {
  Contract c = make(CollectiveKind::custom, 2);
  c.input = {4};
  c.output = {2, 3};
  c.promises = {{{1, 0}, false, {{0, 3}}}, {{0, 2}, true, {{0, 1}, {1, 1}}}};
  c.sort_promises();
  CHECK(c.promise(0, 2)->inputs == Inputs{{0, 1}, {1, 1}});
  CHECK(c.promise(1, 0)->inputs == Inputs{{0, 3}});
  CHECK_FALSE(c.promise(1, 1));
  CHECK(c.reduces());
  CHECK(c.alias(0));
  c.output = {0};
  CHECK_FALSE(c.exists(Side::output, 0));
  CHECK_FALSE(c.alias(0));
}

TEST_CASE("chunks of a plan of MSCCL++ are all alike") {
  Contract c = make(CollectiveKind::allreduce, 2, {4});
  c.even_only = true;
  CHECK(c.size_class(Side::input, 0, 3) == c.size_class(Side::output, 1, 0));
}
