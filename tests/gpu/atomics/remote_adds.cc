#include "tests/gpu/atomics/remote_adds.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/network/verbs/loop/loop_pair.h"

namespace mscclc::testing {
namespace {

constexpr uint64_t kWord = sizeof(uint64_t);
constexpr uint64_t kAlone = 1, kShared = 3;  ///< words that are added to; their neighbours are not
constexpr uint64_t kCarries = 0xffff'fff7;   ///< nearly every sum carries

/// One addition at byte `offset`.
Result<void> add(verbs::LoopPair& pair, const AddWords& words, uint64_t offset, uint64_t value) {
  ibv_send_wr order{};
  order.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  order.wr.atomic.remote_addr = words.address + offset;
  order.wr.atomic.rkey = words.key;
  order.wr.atomic.compare_add = value;
  return pair.carry_out(order, kWord, "an addition");
}

Result<std::unique_ptr<verbs::LoopPair>> make_pair(const verbs::Adapter& adapter) {
  return verbs::LoopPair::make(adapter, IBV_ACCESS_REMOTE_ATOMIC);
}

/// "": that is what the word holds.
std::string compare(const AddWords& words, uint64_t index, uint64_t expected) {
  const auto value = words.read(index);
  if (!value) return fmt::format("word {} cannot be read", index);
  if (*value == expected) return "";
  return fmt::format("word {} is {}, not {}", index, *value, expected);
}

std::string add_alone(const verbs::Adapter& adapter, const AddWords& words, uint64_t adds) {
  const auto made = make_pair(adapter);
  if (!made) return made.error().text();
  verbs::LoopPair& pair = **made;
  uint64_t sum = 0;
  for (uint64_t i = 0; i < adds; ++i, sum += kCarries) {
    const auto added = add(pair, words, kAlone * kWord, kCarries);
    if (!added) return added.error().text();
    if (pair.word() != sum) return fmt::format("add {} brings {}, not {}", i, pair.word(), sum);
  }
  return compare(words, kAlone, sum);
}

/// What one of several that add 1 to a word at once was given back.
struct Adder {
  std::unique_ptr<verbs::LoopPair> pair;
  std::vector<uint64_t> seen = {};
  Result<void> added = {};

  void run(const AddWords& words, uint64_t adds) {
    for (uint64_t i = 0; i < adds && added; ++i) {
      added = add(*pair, words, kShared * kWord, 1);
      if (added) seen.push_back(pair->word());
    }
  }
};

std::string add_together(const verbs::Adapter& adapter, const AddWords& words, uint64_t adds,
                         uint32_t pairs) {
  std::vector<Adder> adders;
  for (uint32_t i = 0; i < pairs; ++i) {
    auto pair = make_pair(adapter);
    if (!pair) return pair.error().text();
    adders.push_back({*std::move(pair)});
  }
  {
    std::vector<std::jthread> threads;
    for (Adder& adder : adders) threads.emplace_back([&] { adder.run(words, adds); });
  }
  std::vector<uint64_t> seen;
  for (const Adder& adder : adders) {
    if (!adder.added) return adder.added.error().text();
    seen.insert(seen.end(), adder.seen.begin(), adder.seen.end());
  }
  std::ranges::sort(seen);
  for (uint64_t i = 0; i < seen.size(); ++i) {
    if (seen[i] != i) return fmt::format("no add has found {}: one was no atomic", i);
  }
  return compare(words, kShared, pairs * adds);
}

/// An error ends a queue pair, so that each has one of its own.
std::string refuse(const verbs::Adapter& adapter, const AddWords& words, uint64_t offset) {
  const auto pair = make_pair(adapter);
  if (!pair) return pair.error().text();
  if (!add(**pair, words, offset, 1)) return "";
  return fmt::format("an add at byte {} is not refused", offset);
}

}  // namespace

std::string check_adds(const verbs::Adapter& adapter, const AddWords& words, uint64_t adds,
                       uint32_t pairs) {
  if (!adapter.port().atomics) return adapter.port().context->name() + " has no atomics";
  std::string fault = add_alone(adapter, words, adds);
  if (fault.empty()) fault = add_together(adapter, words, adds, pairs);
  if (fault.empty()) fault = refuse(adapter, words, kShared * kWord + 4);
  if (fault.empty()) fault = refuse(adapter, words, AddWords::kCount * kWord);
  for (const uint64_t index : {kAlone - 1, kAlone + 1, kShared + 1, AddWords::kCount - 1}) {
    if (fault.empty()) fault = compare(words, index, 0);
  }
  return fault;
}

}  // namespace mscclc::testing
