// Ops and texts in few words.
#include "tools/draw/words.h"

#include <catch2/catch.hpp>

#include "tests/helpers/programs/test_programs.h"

using namespace mscclc;
using namespace mscclc::draw;
using namespace mscclc::testing;

TEST_CASE("draw words: chunks here, at a peer, at all ranks") {
  TestProgram t(3, 4);
  t.buffer(1, "inbox", 2);
  for (const uint32_t p : {1u, 2u}) t.channel(0, ChannelKind::memory, "ch", {p}, p);
  const PeerNames names{RankTurn::none, 3, 1};
  const Op put = t.op_in(0, 0, OpKind::put, {far(0, 2, 1)}, {local(kInput, 3)});
  CHECK(data_words(t.program, 0, put, names).to == "inbox[1] of 1");
  CHECK(data_words(t.program, 0, put, names).from == "input[3]");
  CHECK(main_chunk(t.program, put) == 3);
  const Op sum = t.op_in(0, 0, OpKind::read_reduce, {local(kOutput, 0)},
                         {local(kInput, 0), far(0, kInput, 0), far(1, kInput, 0)});
  CHECK(data_words(t.program, 0, sum, names).from == "input[0] of all ranks");
  const Op all = t.op_in(0, 0, OpKind::reduce, {local(kOutput, 0)},
                         {local(kInput, 0), local(kInput, 1), local(kInput, 2), local(kInput, 3)});
  CHECK(data_words(t.program, 0, all, names).from == "4 of input");
  CHECK(main_chunk(t.program, all) == -1);
  std::set<std::string> reads, writes;
  add_chunks(t.program, 0, put, reads, writes);
  CHECK(reads == std::set<std::string>{"0 input[3]"});
  CHECK(writes == std::set<std::string>{"1 inbox[1]"});
  const Op wait = t.op_in(0, 0, OpKind::wait, {end_of(1)});
  CHECK(control_words(t.program, 0, wait, names) == "wait 2");
}

TEST_CASE("draw words: characters are counted, not bytes") {
  CHECK(characters("r − 1") == 5);
  CHECK(shortened("r − 1", 5) == "r − 1");
  CHECK(shortened("r − 12", 5) == "r − …");
  CHECK(wrapped("output[0] of 1, 2", 12, 2) == std::vector<std::string>{"output[0] of", "1, 2"});
  CHECK(wrapped("a b c d e", 3, 2) == std::vector<std::string>{"a b", "c …"});
  CHECK(size_words(1 << 19) == "512 KiB");
  CHECK(size_words(1000) == "1000 bytes");
}
