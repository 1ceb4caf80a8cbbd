#include "ir/program/flag_regions.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "ir/rows/check_row.h"
#include "ir/support/precondition.h"

namespace mscclc {
namespace {

constexpr std::string_view kScopes[] = {"gpu", "system"};
constexpr std::string_view kTileOrders[] = {"any", "rising", "own_first", "own_last"};

template <class Enum, size_t N>
std::optional<Enum> find_word(const std::string_view (&words)[N], std::string_view text) {
  const auto at = std::ranges::find(words, text);
  if (at == std::end(words)) return std::nullopt;
  return static_cast<Enum>(at - std::begin(words));
}

Side side_of(const FlagArray& array) { return array.of_output ? Side::output : Side::input; }

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

/// Does the number of flags divide the chunks of every rank?
std::optional<std::string> division_fault(const Program& program, const FlagArray& array) {
  for (uint32_t r = 0; r < program.contract.ranks; ++r) {
    const uint32_t chunks = program.contract.chunk_count(side_of(array), r);
    if (chunks % array.count == 0) continue;
    return "the array " + quoted(array.name) + " has " + std::to_string(array.count) +
           " flags for the " + std::to_string(chunks) + " chunks of the " +
           (array.of_output ? "output" : "input") + " at rank " + std::to_string(r) +
           "; each flag is for equally many";
  }
  return {};
}

std::optional<std::string> array_fault(const Program& program, const FlagArray& array) {
  const auto no = [&](std::string_view what) {
    return "the array of flags " + quoted(array.name) + " " + std::string(what);
  };
  if (array.count == 0 || array.count > kMaxFlags) return no("has no flags, or more than 4096");
  if (array.raises == 0 || array.raises > kMaxRaises)
    return no("has 'raises' that are not 1 to 2^20");
  if (array.bits != 32 && array.bits != 64) return no("has words that are not of 32 or 64 bits");
  if (array.after == FlagArray::kNoArray) return division_fault(program, array);
  if (array.of_output) return no("is of the output, so 'after' says nothing of it");
  const auto own = static_cast<size_t>(&array - program.flags.data());
  if (array.after >= own || !program.flags[array.after].of_output) {
    return no("can be 'after' an array of the output only that is declared before it");
  }
  return division_fault(program, array);
}

}  // namespace

std::string_view name(FlagScope scope) { return kScopes[static_cast<size_t>(scope)]; }

std::optional<FlagScope> find_flag_scope(std::string_view text) {
  return find_word<FlagScope>(kScopes, text);
}

std::string_view name(TileOrder order) { return kTileOrders[static_cast<size_t>(order)]; }

std::optional<TileOrder> find_tile_order(std::string_view text) {
  return find_word<TileOrder>(kTileOrders, text);
}

uint32_t tile_position(const Program& program, const FlagArray& array, uint32_t rank, uint32_t c) {
  if (array.tiles == TileOrder::any || array.tiles == TileOrder::rising) return c;
  const uint64_t first = rank + (array.tiles == TileOrder::own_last ? 1u : 0u);
  const uint64_t begin = first * array.count / program.contract.ranks % array.count;
  return static_cast<uint32_t>((c + array.count - begin) % array.count);
}

FlagRegion flag_region(const Program& program, uint32_t rank, uint32_t array, uint32_t flag) {
  precondition(rank < program.contract.ranks && array < program.flags.size() &&
               flag < program.flags[array].count);
  const FlagArray& flags = program.flags[array];
  const uint32_t chunks = program.contract.chunk_count(side_of(flags), rank) / flags.count;
  return {flags.of_output ? kOutput : kInput, flag * chunks, chunks};
}

uint32_t flag_number(const Program& program, uint32_t array, uint32_t flag) {
  for (uint32_t a = 0; a < array; ++a) flag += program.flags[a].count;
  return flag;
}

uint32_t flag_total(const Program& program) {
  return flag_number(program, static_cast<uint32_t>(program.flags.size()), 0);
}

std::string flag_text(const Program& program, uint32_t array, uint32_t flag) {
  return program.flags[array].name + "[" + std::to_string(flag) + "]";
}

bool may_wait_for(const Program& program, uint32_t array, uint32_t c, uint32_t output,
                  uint32_t of) {
  precondition(!program.flags[array].of_output && program.flags[output].of_output);
  return of < c || program.flags[array].after == output;
}

std::optional<FlagsFault> flags_fault(const Program& program) {
  if (program.flags.empty()) return {};
  if (program.foreign) return FlagsFault{"a plan without our key has no flags"};
  if (program.flags.size() > kMaxFlagArrays) return FlagsFault{"more than 16 arrays of flags"};
  std::set<std::string_view> names = {"input", "output"};
  for (const rows::External& e : program.externals) names.insert(e.name);
  for (const rows::Function& f : program.functions) names.insert(f.name);
  uint32_t total = 0;
  for (uint32_t i = 0; i < program.flags.size(); ++i) {
    const FlagArray& array = program.flags[i];
    if (!rows::is_row_name(array.name) || !names.insert(array.name).second) {
      return FlagsFault{"an array of flags has no name, or one that is taken", i};
    }
    const auto of_input = [](const FlagArray& a) { return !a.of_output; };
    if (!array.of_output &&
        std::count_if(program.flags.begin(), program.flags.begin() + i, of_input) > 0) {
      return FlagsFault{"a second array of flags of the input: " + quoted(array.name), i};
    }
    if (auto fault = array_fault(program, array)) return FlagsFault{*std::move(fault), i};
    total += array.count;
  }
  if (total > kMaxFlags) return FlagsFault{"more than 4096 flags"};
  return {};
}

std::optional<std::string> flag_op_fault(const Program& program, OpKind kind, uint32_t loop,
                                         std::span<const Operand> flags) {
  precondition([&] {
    return std::ranges::all_of(flags, [&](const Operand& o) {
      return o.buffer < program.flags.size() && o.first < program.flags[o.buffer].count;
    });
  });
  const bool awaits = info(kind).has(kAwaitsFlags);
  for (const Operand& o : flags) {
    const FlagArray& array = program.flags[o.buffer];
    if (awaits != array.of_output) continue;
    return quoted(flag_text(program, o.buffer, o.first)) +
           (array.of_output ? " is of the output: the plan notifies it, and the other side waits"
                            : " is of the input: the other side raises it, and the plan awaits it");
  }
  if (loop == kNone) return {};
  return quoted(info(kind).name) +
         " inside a pipeline, whose rounds move parts of each region; put it before or after";
}

}  // namespace mscclc
