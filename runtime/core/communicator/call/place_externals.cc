#include "runtime/core/communicator/call/place_externals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "executor/rows/evaluate.h"
#include "executor/rows/externals.h"
#include "runtime/core/communicator/call/call_memory.h"

namespace mscclc {
namespace {

using rows::External;
using rows::ExternalLayout;
using rows::Kind;

/// Rows, and values of columns, are loaded so many bytes at once.
constexpr uint64_t kRowAlign = 16;

uint32_t columns_of(const External& e, uint32_t columns) {
  return rows::values_of(e.kind, e.group, columns);
}

/// "rows x 2880 f16", as the plan has it in this call.
std::string wanted_text(const External& e, const ExternalLayout& layout, uint32_t columns,
                        Dtype dtype) {
  const std::string_view type = e.type == rows::Type::T ? info(dtype).name : rows::name_of(e.type);
  return fmt::format("{} x {} {}", layout.rows, columns_of(e, columns), type);
}

/// One call's externals.
class Placing {
 public:
  Placing(const ExternalsOfCall& call, std::span<const CallExternal> given,
          Diagnostics& diagnostics)
      : call_(call),
        given_(given),
        diagnostics_(diagnostics),
        layouts_(rows::lay_out_externals(call.plan, call.rank, call.chunking, call.dtype)),
        found_(layouts_.size()) {}

  bool run(std::vector<BlockPrograms::Places::External>& places) {
    places.assign(layouts_.size(), {});
    for (const CallExternal& given : given_) {
      const auto at = std::ranges::find(declared(), given.name, &External::name);
      if (at == declared().end()) {
        return refuse_undeclared(call_.rank, call_.plan.name, "external", given.name, declared(),
                                 diagnostics_);
      }
      const auto e = static_cast<size_t>(at - declared().begin());
      if (found_[e] != nullptr) return refuse(*at, "is given twice");
      found_[e] = &given;
      if (!fits(*at, layouts_[e], given)) return false;
      places[e] = place(*at, layouts_[e], given);
    }
    for (size_t e = 0; e < found_.size(); ++e) {
      if (found_[e] == nullptr) {
        return refuse(declared()[e], fmt::format("is missing: {}", wanted(e)));
      }
    }
    return apart();
  }

 private:
  const std::vector<External>& declared() const { return call_.plan.externals; }
  std::string wanted(size_t e) const {
    return fmt::format("the call needs {}", wanted_text(declared()[e], layouts_[e],
                                                        call_.plan.contract.columns, call_.dtype));
  }

  bool refuse(const External& e, const std::string& why) {
    diagnostics_.error("bad-external", {},
                       fmt::format("rank {}: the external '{}' {}", call_.rank, e.name, why));
    return false;
  }

  bool fits(const External& e, const ExternalLayout& layout, const CallExternal& given) {
    const std::string should = ": " + wanted(static_cast<size_t>(&e - declared().data()));
    if (type_of(given.type) != type_of(e.type)) {
      return refuse(e, fmt::format("is of {}", name_of(given.type)) + should);
    }
    if (given.data == nullptr) {
      if (e.kind == Kind::scalar && e.is_read() && !e.is_written()) return true;
      if (layout.bytes() == 0) return true;
      return refuse(e, "has no memory" + should);
    }
    const uint32_t columns = columns_of(e, call_.plan.contract.columns);
    if (given.columns != columns) {
      return refuse(e, fmt::format("has {} columns", given.columns) + should);
    }
    if (given.rows < layout.rows) {
      return refuse(e, fmt::format("has {} rows", given.rows) + should);
    }
    const uint64_t value = rows::bytes_of(e.type, call_.dtype);
    const bool is_wide = e.kind == Kind::row || e.kind == Kind::columns;
    const uint64_t align = is_wide ? kRowAlign : value;
    if (reinterpret_cast<uintptr_t>(given.data) % align != 0) {
      return refuse(e, fmt::format("begins at {}, no multiple of {} bytes: it must, as the "
                                   "device loads so many at once",
                                   fmt::ptr(given.data), align));
    }
    return true;
  }
  /// T, and the type that it is in this call, are one.
  rows::Type type_of(rows::Type type) const {
    if (type != rows::Type::T) return type;
    return call_.dtype == Dtype::f16    ? rows::Type::f16
           : call_.dtype == Dtype::bf16 ? rows::Type::bf16
                                        : rows::Type::f32;
  }
  std::string_view name_of(rows::Type type) const { return rows::name_of(type_of(type)); }

  BlockPrograms::Places::External place(const External& e, const ExternalLayout& layout,
                                        const CallExternal& given) const {
    if (given.data == nullptr && e.kind == Kind::scalar) {
      const std::vector<uint8_t> bytes =
          rows::stored_as(e.type, call_.dtype, std::span(&given.value, 1));
      uint64_t word = 0;
      std::memcpy(&word, bytes.data(), bytes.size());
      return {.address = reinterpret_cast<uint8_t*>(word), .is_value = true};
    }
    return {.address = static_cast<uint8_t*>(given.data),
            .first_row = layout.first_row,
            .row_bytes = layout.shared ? 0 : layout.row_bytes};
  }

  /// What is written shares no byte with anything else of the call.
  bool apart() {
    struct Range {
      CallMemory memory;
      bool written;
    };
    std::vector<Range> all = {{{"input", call_.input.data, call_.input.bytes}, false},
                              {{"output", call_.output.data, call_.output.bytes}, true}};
    for (size_t e = 0; e < found_.size(); ++e) {
      const void* const data = found_[e]->data;
      const Range own = {{"external '" + declared()[e].name + "'", data,
                          data == nullptr ? 0 : layouts_[e].bytes()},
                         declared()[e].is_written()};
      for (const Range& other : all) {
        if (!own.written && !other.written) continue;
        if (!own.memory.overlaps(other.memory)) continue;
        return refuse(declared()[e], fmt::format("overlaps the {}, and the plan writes {}",
                                                 other.memory.name, own.written ? "it" : "that"));
      }
      all.push_back(own);
    }
    return true;
  }

  const ExternalsOfCall& call_;
  const std::span<const CallExternal> given_;
  Diagnostics& diagnostics_;
  const std::vector<ExternalLayout> layouts_;
  std::vector<const CallExternal*> found_;  ///< by external of the plan
};

}  // namespace

bool place_externals(const ExternalsOfCall& call, std::span<const CallExternal> externals,
                     std::vector<BlockPrograms::Places::External>& places,
                     Diagnostics& diagnostics) {
  if (call.plan.externals.empty() && externals.empty()) {
    places.clear();
    return true;
  }
  return Placing(call, externals, diagnostics).run(places);
}

}  // namespace mscclc
