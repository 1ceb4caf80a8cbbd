#include "ir/program/applied.h"

#include <algorithm>

#include "ir/rows/row_wire.h"
#include "ir/support/precondition.h"

namespace mscclc {
namespace {

/// function, first chunk, number of results; results, parameters.
constexpr size_t kHead = 3;

int64_t encoded(const RowValue& value) {
  return value.external ? ~int64_t{value.index} : int64_t{value.index};
}

/// Works out what `then` binds, and what keeps it from it.
class Binder {
 public:
  explicit Binder(const Program& program)
      : program_(program), function_(program.functions[program.contract.then]) {}

  std::optional<ThenBinding> run(std::string* fault) {
    ThenBinding binding{.function = program_.contract.then};
    bound_.assign(program_.externals.size(), false);
    if (!bind_params(binding) || !bind_results(binding) || !all_bound()) {
      if (fault != nullptr) *fault = fault_;
      return {};
    }
    return binding;
  }

 private:
  bool no(std::string fault) {
    fault_ = std::move(fault);
    return false;
  }

  uint32_t find(std::string_view name) const {
    const auto at = std::ranges::find(program_.externals, name, &rows::External::name);
    return at == program_.externals.end() ? kNone
                                          : static_cast<uint32_t>(at - program_.externals.begin());
  }

  static bool alike(const rows::Stored& a, const rows::External& b) {
    return a.kind == b.kind && a.type == b.type && a.group == b.group;
  }
  static bool is_row_of_t(const rows::Stored& stored) {
    return stored.kind == rows::Kind::row && stored.type == rows::Type::T;
  }

  bool bind_params(ThenBinding& out) {
    if (function_.params.empty() || !is_row_of_t(function_.params[0])) {
      const std::string instead =
          function_.params.empty()
              ? ""
              : "; '" + function_.params[0].name + "' is a '" +
                    rows::declared_text(rows::form_of(function_.params[0])) + "'";
      return no("'" + function_.name + "' must take the sum, a 'row T', as its first parameter" +
                instead);
    }
    out.params.push_back(kNone);
    for (size_t i = 1; i < function_.params.size(); ++i) {
      const rows::Stored& param = function_.params[i];
      const uint32_t e = find(param.name);
      if (e == kNone) {
        return no("'" + function_.name + "' has a parameter '" + param.name +
                  "', and there is no external of this name; write 'external " + param.name + ": " +
                  rows::declared_text(rows::form_of(param)) + "'");
      }
      const rows::External& external = program_.externals[e];
      if (!alike(param, external)) {
        return no("the external '" + external.name + "' and the parameter of '" + function_.name +
                  "' are not of one kind and type");
      }
      if (!external.is_read()) {
        return no("'" + function_.name + "' reads the external '" + external.name +
                  "', which is 'out'; declare it 'in' or 'inout'");
      }
      bound_[e] = true;
      out.params.push_back(e);
    }
    return true;
  }

  /// The external that a result is stored in, or kNone: the output.
  uint32_t place_of(const std::string& result) const {
    constexpr std::string_view kOut = "_out";
    for (const std::string_view name :
         {std::string_view(result),
          result.ends_with(kOut) ? std::string_view(result).substr(0, result.size() - kOut.size())
                                 : std::string_view()}) {
      const uint32_t e = find(name);
      if (e != kNone && program_.externals[e].is_written()) return e;
    }
    return kNone;
  }

  bool bind_results(ThenBinding& out) {
    bool has_output = false;
    std::vector<bool> written(program_.externals.size());
    for (uint32_t i = 0; i < function_.outputs.size(); ++i) {
      const rows::Stored& result = function_.outputs[i];
      const uint32_t e = place_of(result.name);
      out.results.push_back(e);
      if (e == kNone) {
        if (has_output || result.kind != rows::Kind::row) {
          return no("the result '" + result.name + "' of '" + function_.name +
                    "' goes nowhere: one result, a 'row', is the output, and others need an "
                    "external of their name that is 'out' or 'inout'");
        }
        has_output = true;
        out.output = i;
        continue;
      }
      if (!alike(result, program_.externals[e])) {
        return no("the external '" + program_.externals[e].name + "' and the result '" +
                  result.name + "' are not of one kind and type");
      }
      if (written[e]) {
        return no("two results of '" + function_.name + "' go to the external '" +
                  program_.externals[e].name + "'");
      }
      bound_[e] = written[e] = true;
    }
    if (!has_output) return no("no result of '" + function_.name + "' is left for the output");
    for (uint32_t e = 0; e < written.size(); ++e) {
      if (program_.externals[e].is_written() && !written[e]) {
        return no("no result of '" + function_.name + "' goes to the external '" +
                  program_.externals[e].name + "'; declare it 'in'");
      }
    }
    return true;
  }

  bool all_bound() {
    const auto lost = std::ranges::find(bound_, false);
    return lost == bound_.end() ||
           no("'" + function_.name + "' has no use for the external '" +
              program_.externals[static_cast<size_t>(lost - bound_.begin())].name + "'");
  }

  const Program& program_;
  const rows::Function& function_;
  std::vector<bool> bound_;  ///< by external
  std::string fault_;
};

}  // namespace

bool applied_fits(const Program& program, const Op& op) {
  if (op.applied.count < kHead || !program.integers.has(op.applied.first, op.applied.count)) {
    return false;
  }
  const std::span<const int64_t> all = program.values(op.applied);
  if (all[0] < 0 || all[0] >= static_cast<int64_t>(program.functions.size())) return false;
  const rows::Function& function = program.functions[static_cast<size_t>(all[0])];
  return all[1] >= 0 && all[1] < int64_t{kNone} &&
         all[2] == static_cast<int64_t>(function.outputs.size()) &&
         all.size() == kHead + function.outputs.size() + function.params.size();
}

Applied applied(const Program& program, const Op& op) {
  precondition([&] { return applied_fits(program, op); });
  return applied(program, op.applied);
}

Applied applied(const Program& program, Slice encoded) {
  const std::span<const int64_t> all = program.values(encoded);
  const auto results = static_cast<size_t>(all[2]);
  return {static_cast<uint32_t>(all[0]), static_cast<uint32_t>(all[1]), all.subspan(kHead, results),
          all.subspan(kHead + results)};
}

bool has_rows(const Program& program, const Applied& what) {
  const auto is = [&](int64_t encoded) {
    const RowValue value = Applied::value(encoded);
    return value.external && program.externals[value.index].has_rows();
  };
  return std::ranges::any_of(what.results, is) || std::ranges::any_of(what.params, is);
}

std::vector<int64_t> encode_applied(uint32_t function, uint32_t first,
                                    std::span<const RowValue> results,
                                    std::span<const RowValue> params) {
  std::vector<int64_t> all = {function, first, static_cast<int64_t>(results.size())};
  for (const RowValue& value : results) all.push_back(encoded(value));
  for (const RowValue& value : params) all.push_back(encoded(value));
  return all;
}

std::vector<int64_t> with_first(const Program& program, const Op& op, uint32_t first) {
  const std::span<const int64_t> values = program.values(op.applied);
  std::vector<int64_t> all(values.begin(), values.end());
  all[1] = first;
  return all;
}

std::optional<ThenBinding> bind_then(const Program& program, std::string* fault) {
  if (program.contract.then == Contract::kNoFunction) return {};
  return Binder(program).run(fault);
}

void settle_output(Program& program) {
  const std::optional<ThenBinding> then = bind_then(program);
  if (!then) return;
  const rows::Function& function = program.functions[then->function];
  program.contract.output_type = function.outputs[then->output].type;
}

std::string_view form_name(const Program& program, const rows::Form& form) {
  if (form.kind == rows::Kind::row) return rows::name_of(form.type);
  for (const rows::External& e : program.externals) {
    if (rows::form_of(e) == form) return e.name;
  }
  return "";
}

std::optional<rows::Form> find_form(const Program& program, std::string_view name) {
  if (const auto type = rows::find_type(name)) return rows::Form{.type = *type};
  for (const rows::External& e : program.externals) {
    if (e.name == name) return rows::form_of(e);
  }
  return {};
}

uint32_t owner_of_shard(const Contract& contract, uint32_t chunk) {
  return chunk / (contract.part_chunks() / contract.ranks);
}

}  // namespace mscclc
