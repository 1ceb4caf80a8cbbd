// Node by node over a whole row: a loop for each, which processors take several values at a time
// of. What an operation is stands in row_math.h, one function for the host and for kernels.
#include "executor/rows/evaluate.h"

#include <algorithm>
#include <cstring>

#include "executor/rows/row_values.h"
#include "ir/support/precondition.h"

namespace mscclc::rows {
namespace {

/// Calls `with` with the element type in which values of `type` are stored.
template <class With>
auto with_element(Type type, Dtype t, With with) {
  using device::Element;
  switch (type) {
    case Type::T:
      if (t == Dtype::f16) return with(Element<Dtype::f16>());
      if (t == Dtype::bf16) return with(Element<Dtype::bf16>());
      return with(Element<Dtype::f32>());
    case Type::f16:
      return with(Element<Dtype::f16>());
    case Type::bf16:
      return with(Element<Dtype::bf16>());
    case Type::e4m3:
      return with(Element<Dtype::e4m3>());
    case Type::e5m2:
      return with(Element<Dtype::e5m2>());
    case Type::e8m0:
      return with(PowerOfTwo());
    case Type::f32:
      break;
  }
  return with(Element<Dtype::f32>());
}

void load_values(Type type, Dtype t, const uint8_t* from, uint32_t count, float* to) {
  with_element(type, t, [&](auto element) {
    using E = decltype(element);
    for (uint32_t i = 0; i < count; ++i) {
      typename E::Bits bits;
      std::memcpy(&bits, from + size_t{i} * sizeof bits, sizeof bits);
      to[i] = load_as<E>(bits);
    }
  });
}

void store_values(Type type, Dtype t, const float* from, uint32_t count, uint8_t* to) {
  with_element(type, t, [&](auto element) {
    using E = decltype(element);
    for (uint32_t i = 0; i < count; ++i) {
      const auto bits = store_as<E>(from[i]);
      std::memcpy(to + size_t{i} * sizeof bits, &bits, sizeof bits);
    }
  });
}

/// The tree: pairs of neighbours, then pairs of these; what has none goes on alone. In `level`.
template <class Reduce>
float reduced(float* level, uint32_t count) {
  while (count > 1) {
    const uint32_t pairs = count / 2;
    for (uint32_t i = 0; i < pairs; ++i) level[i] = Reduce::of(level[2 * i], level[2 * i + 1]);
    if (count % 2 == 1) level[pairs] = level[count - 1];
    count = pairs + count % 2;
  }
  return level[0];
}

float reduced(Op op, float* level, uint32_t count) {
  if (op == Op::reduce_sum) return reduced<ReduceSum>(level, count);
  if (op == Op::reduce_max) return reduced<ReduceMax>(level, count);
  return reduced<ReduceMin>(level, count);
}

template <class Of>
void each(uint32_t count, float* to, Of of) {
  for (uint32_t i = 0; i < count; ++i) to[i] = of(i);
}

/// `count` values of an operation on arguments that have as many each.
void computed(const Node& node, const std::array<const float*, 4>& x, uint32_t count, float* to) {
  const float *const a = x[0], *const b = x[1], *const c = x[2], *const d = x[3];
  switch (node.op) {
    case Op::negate:
      return each(count, to, [=](uint32_t i) { return negate(a[i]); });
    case Op::add:
      return each(count, to, [=](uint32_t i) { return add(a[i], b[i]); });
    case Op::sub:
      return each(count, to, [=](uint32_t i) { return sub(a[i], b[i]); });
    case Op::mul:
      return each(count, to, [=](uint32_t i) { return mul(a[i], b[i]); });
    case Op::div:
      return each(count, to, [=](uint32_t i) { return div(a[i], b[i]); });
    case Op::if_less:
      return each(count, to, [=](uint32_t i) { return a[i] < b[i] ? c[i] : d[i]; });
    case Op::if_most:
      return each(count, to, [=](uint32_t i) { return a[i] <= b[i] ? c[i] : d[i]; });
    case Op::if_equal:
      return each(count, to, [=](uint32_t i) { return a[i] == b[i] ? c[i] : d[i]; });
    case Op::call_abs:
      return each(count, to, [=](uint32_t i) { return call_abs(a[i]); });
    case Op::call_sqrt:
      return each(count, to, [=](uint32_t i) { return call_sqrt(a[i]); });
    case Op::call_rsqrt:
      return each(count, to, [=](uint32_t i) { return call_rsqrt(a[i]); });
    case Op::call_exp:
      return each(count, to, [=](uint32_t i) { return call_exp(a[i]); });
    case Op::call_pow2_up:
      return each(count, to, [=](uint32_t i) { return call_pow2_up(a[i]); });
    case Op::call_pow2_down:
      return each(count, to, [=](uint32_t i) { return call_pow2_down(a[i]); });
    case Op::call_min:
      return each(count, to, [=](uint32_t i) { return call_min(a[i], b[i]); });
    case Op::call_max:
      return each(count, to, [=](uint32_t i) { return call_max(a[i], b[i]); });
    default:
      return each(count, to, [=](uint32_t i) { return call_fma(a[i], b[i], c[i]); });
  }
}

}  // namespace

/// The values of a row, by node; those that no later node needs give their place to others.
class RowEvaluator::Values {
 public:
  Values(const Function& function, Dtype t, uint32_t columns)
      : function_(function), t_(t), columns_(columns), at_(function.nodes.size()) {
    place();
  }

  void run(const uint8_t* const* arguments, uint8_t* const* results) {
    for (uint32_t n = 0; n < function_.nodes.size(); ++n) make(n, arguments);
    for (size_t k = 0; k < function_.outputs.size(); ++k) {
      const Stored& output = function_.outputs[k];
      const uint32_t count = values_of(output.kind, output.group, columns_);
      const float* const values =
          spread_to(output.node, spread_of(output.kind), output.group, count, 0);
      store_values(output.type, t_, values, count, results[k]);
    }
  }

 private:
  uint32_t count(Spread spread, uint32_t group) const {
    return spread == Spread::once     ? 1
           : spread == Spread::groups ? (columns_ + group - 1) / group
                                      : columns_;
  }
  uint32_t count(const Node& node) const { return count(node.spread, node.group); }

  /// Gives each node a place in `memory_`, as long as it is needed. Four more places are for
  /// arguments that are spread out, or reduced.
  void place() {
    const auto nodes = static_cast<uint32_t>(function_.nodes.size());
    std::vector<uint32_t> last(nodes);
    for (uint32_t n = 0; n < nodes; ++n) {
      const Node& node = function_.nodes[n];
      for (uint32_t a = 0; a < argument_count(node.op); ++a) last[node.args[a]] = n;
    }
    for (const Stored& output : function_.outputs) last[output.node] = nodes;
    std::vector<uint32_t> free;
    uint32_t rows = kSpare;
    uint64_t small = 0;
    std::vector<uint64_t> offsets(nodes);
    for (uint32_t n = 0; n < nodes; ++n) {
      if (function_.nodes[n].spread != Spread::columns) {
        offsets[n] = small;
        small += count(function_.nodes[n]);
        continue;
      }
      if (free.empty()) free.push_back(rows++);
      offsets[n] = free.back();
      free.pop_back();
      release(n, last, offsets, free);
    }
    memory_.resize(uint64_t{rows} * columns_ + small);
    for (uint32_t n = 0; n < nodes; ++n) {
      const bool wide = function_.nodes[n].spread == Spread::columns;
      at_[n] =
          memory_.data() + (wide ? offsets[n] * columns_ : uint64_t{rows} * columns_ + offsets[n]);
    }
  }
  /// Places of what was needed up to node `n` and no longer, its own included if nothing needs it.
  /// That of an argument is free for nodes after this one only, which reads it while it writes.
  void release(uint32_t n, const std::vector<uint32_t>& last, const std::vector<uint64_t>& offsets,
               std::vector<uint32_t>& free) const {
    const Node& node = function_.nodes[n];
    for (uint32_t a = 0; a < argument_count(node.op); ++a) {
      const uint32_t from = node.args[a];
      const bool twice =
          std::find(node.args.begin(), node.args.begin() + a, from) != node.args.begin() + a;
      if (twice || last[from] != n || function_.nodes[from].spread != Spread::columns) continue;
      free.push_back(static_cast<uint32_t>(offsets[from]));
    }
    if (last[n] == 0) free.push_back(static_cast<uint32_t>(offsets[n]));
  }

  void make(uint32_t n, const uint8_t* const* arguments) {
    const Node& node = function_.nodes[n];
    const uint32_t own = count(node);
    if (node.op == Op::param) {
      const Stored& param = function_.params[node.index];
      return load_values(param.type, t_, arguments[node.index], own, at_[n]);
    }
    if (node.op == Op::constant || node.op == Op::columns) {
      const bool fixed = node.op == Op::constant;
      std::fill_n(at_[n], own, fixed ? node.value : static_cast<float>(columns_));
      return;
    }
    if (is_reduction(node.op)) return reduce(node, at_[n]);
    std::array<const float*, 4> x{};
    for (uint32_t a = 0; a < argument_count(node.op); ++a) {
      x[a] = spread_to(node.args[a], node.spread, node.group, own, a);
    }
    if (node.op != Op::round) return computed(node, x, own, at_[n]);
    round(node.type, x[0], own, at_[n]);
  }

  void round(Type type, const float* from, uint32_t own, float* to) const {
    if (type == Type::T && function_.rounding == Rounding::once) {
      std::copy_n(from, own, to);
      return;
    }
    with_element(type, t_, [=](auto element) {
      each(own, to, [=](uint32_t i) { return round_to<decltype(element)>(from[i]); });
    });
  }

  void reduce(const Node& node, float* to) {
    const uint32_t width = node.over == 0 ? columns_ : node.over;
    float* const level = memory_.data();
    const float* const from = spread_to(node.args[0], Spread::columns, 0, columns_, 1);
    std::copy_n(from, columns_, level);
    for (uint32_t begin = 0; begin < columns_; begin += width) {
      *to++ = reduced(node.op, level + begin, std::min(width, columns_ - begin));
    }
  }

  /// A node's values where a value of this spread has its own: as they are, or spread out in a
  /// place of their own.
  const float* spread_to(uint32_t n, Spread spread, uint32_t group, uint32_t wanted,
                         uint32_t spare) {
    const Node& node = function_.nodes[n];
    const float* const from = at_[n];
    if (node.spread == Spread::once) {
      if (wanted == 1) return from;
      float* const to = memory_.data() + uint64_t{spare} * columns_;
      std::fill_n(to, wanted, from[0]);
      return to;
    }
    if (node.spread == spread) {
      precondition(node.group == group || spread == Spread::columns);
      return from;
    }
    precondition(node.spread == Spread::groups && spread == Spread::columns);
    float* const to = memory_.data() + uint64_t{spare} * columns_;
    for (uint32_t begin = 0, g = 0; begin < columns_; begin += node.group, ++g) {
      std::fill_n(to + begin, std::min(node.group, columns_ - begin), from[g]);
    }
    return to;
  }

  static constexpr uint32_t kSpare = 4;

  const Function& function_;
  const Dtype t_;
  const uint32_t columns_;
  std::vector<float> memory_;
  std::vector<float*> at_;
};

RowEvaluator::RowEvaluator(const Function& function, Dtype t, uint32_t columns) {
  precondition(can_be_t(t) && columns >= 1 && columns <= kMaxColumns);
  values_ = std::make_unique<Values>(function, t, columns);
}
RowEvaluator::~RowEvaluator() = default;

void RowEvaluator::run(const uint8_t* const* arguments, uint8_t* const* results) {
  values_->run(arguments, results);
}

std::vector<std::vector<uint8_t>> evaluate(const Function& function, Dtype t, uint32_t columns,
                                           std::span<const std::vector<uint8_t>> arguments) {
  precondition(arguments.size() == function.params.size());
  std::vector<const uint8_t*> from;
  for (size_t k = 0; k < arguments.size(); ++k) {
    precondition(arguments[k].size() == bytes_of_row(function.params[k], t, columns));
    from.push_back(arguments[k].data());
  }
  std::vector<std::vector<uint8_t>> results;
  std::vector<uint8_t*> to;
  for (const Stored& output : function.outputs) {
    to.push_back(results.emplace_back(bytes_of_row(output, t, columns)).data());
  }
  RowEvaluator(function, t, columns).run(from.data(), to.data());
  return results;
}

std::vector<uint8_t> stored_as(Type type, Dtype t, std::span<const float> values) {
  precondition(can_be_t(t));
  std::vector<uint8_t> bytes(values.size() * bytes_of(type, t));
  store_values(type, t, values.data(), static_cast<uint32_t>(values.size()), bytes.data());
  return bytes;
}

}  // namespace mscclc::rows
