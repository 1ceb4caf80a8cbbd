// What is ours: Python knows ops and kinds of channels by the numbers of ir/ops, and rules of
// passes/fuse say which ops fuse.
#include <catch2/catch.hpp>
#include <cctype>
#include <map>
#include <string>

#include "compiler/mscclpp/passes.h"
#include "compiler/mscclpp/read_trace.h"
#include "ir/support/read_file.h"

using namespace mscclc;
using namespace mscclc::mscclpp;

namespace {

/// The names on the left of each assignment, with the numbers that `range` gives them.
std::map<std::string, uint64_t> numbers_of_python() {
  const std::string text =
      read_file("python/mscclc/mscclpp/language/internal/words.py").value_or("");
  std::map<std::string, uint64_t> numbers;
  size_t at = text.find("\"\"\"", 3);
  while (true) {
    const size_t range = text.find(") = range(", at);
    const size_t plain = text.find(" = range(", at);
    if (plain == std::string::npos) return numbers;
    const size_t end = std::min(range, plain);
    const size_t begin = range == end ? text.rfind('(', end) : text.rfind('\n', end);
    const size_t open = text.find("range(", end) + 6;
    const std::string first = text.substr(open, text.find_first_of(",)", open) - open);
    uint64_t number = text[open + first.size()] == ',' ? std::stoull(first) : 0;
    std::string word;
    for (size_t i = begin + 1; i <= end; ++i) {
      const char c = text[i];
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
        word += c;
      } else if (!word.empty()) {
        numbers[std::exchange(word, "")] = number++;
      }
    }
    at = open;
  }
}

std::string in_capitals(std::string_view text) {
  std::string out;
  for (const char c : text) out += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

TEST_CASE("Python's numbers of records are the reader's") {
  const std::map<std::string, uint64_t> numbers = numbers_of_python();
  std::map<std::string, uint64_t> expected = {{"CODE", kCode},
                                              {"GROUP", kGroup},
                                              {"CHANNEL", kChannel},
                                              {"SWITCH", mscclpp::kSwitch},
                                              {"SEMAPHORE", kSemaphore},
                                              {"LOOP", kLoop},
                                              {"END_OF_LOOP", kEndOfLoop}};
  for (const OpInfo& row : op_table()) {
    expected[in_capitals(row.name)] = static_cast<uint64_t>(row.kind);
  }
  for (const ChannelKind kind : {ChannelKind::memory, ChannelKind::port, ChannelKind::switch_}) {
    expected[in_capitals(name(kind)) + "_CHANNEL"] = static_cast<uint64_t>(kind);
  }
  CHECK(numbers == expected);
}

TEST_CASE("pairs of ops that MSCCL++ fuses") {
  std::string all;
  for (const OpInfo& left : op_table()) {
    for (const OpInfo& right : op_table()) {
      const fusion::Rule* const rule = rule_of(left.kind, right.kind);
      const bool is_fused = right.has(kReduces) && !right.made_of.empty();  // no call is
      if (rule != nullptr && !is_fused) all += fusion::print_rule(*rule) + "\n";
    }
  }
  CHECK(all == R"(put + put -> put
get + get -> get
put_with_signal + put_with_signal -> put_with_signal
put_with_signal_and_flush + put_with_signal_and_flush -> put_with_signal_and_flush
reduce + put -> reduce_send
reduce + reduce -> reduce
read_reduce + put -> read_reduce_send
read_reduce + read_reduce -> read_reduce
reduce_send + put -> reduce_send
read_reduce_send + put -> read_reduce_send
put_packets + put_packets -> put_packets
read_put_packets + read_put_packets -> read_put_packets
reduce_packets + copy_packets -> reduce_copy_packets
reduce_packets + put_packets -> reduce_send_packets
reduce_packets + reduce_packets -> reduce_packets
reduce_send_packets + put_packets -> reduce_send_packets
reduce_copy_packets + put_packets -> reduce_copy_send_packets
reduce_copy_packets + read_put_packets -> reduce_copy_send_packets
reduce_copy_send_packets + put_packets -> reduce_copy_send_packets
reduce_copy_send_packets + read_put_packets -> reduce_copy_send_packets
switch_reduce + switch_broadcast -> switch_reduce_broadcast
signal + signal -> signal
wait + wait -> wait
flush + flush -> flush
release + release -> release
acquire + acquire -> acquire
)");
}
