#include "executor/rows/evaluate.h"

#include <cstring>

#include "executor/rows/row_values.h"
#include "ir/base/precondition.h"

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

float reduced(Op op, std::vector<float> level) {
  const auto pair = [op](float a, float b) {
    return op == Op::reduce_sum   ? ReduceSum::of(a, b)
           : op == Op::reduce_max ? ReduceMax::of(a, b)
                                  : ReduceMin::of(a, b);
  };
  while (level.size() > 1) {
    const size_t pairs = level.size() / 2;
    for (size_t i = 0; i < pairs; ++i) level[i] = pair(level[2 * i], level[2 * i + 1]);
    if (level.size() % 2 == 1) level[pairs] = level.back();
    level.resize(pairs + level.size() % 2);
  }
  return level[0];
}

class Evaluation {
 public:
  Evaluation(const Function& function, Dtype t, uint32_t columns)
      : function_(function), t_(t), columns_(columns), values_(function.nodes.size()) {}

  void run(std::span<const std::vector<uint8_t>> arguments) {
    for (uint32_t n = 0; n < function_.nodes.size(); ++n) {
      const Node& node = function_.nodes[n];
      if (node.op == Op::param) {
        values_[n] = loaded(function_.params[node.index], arguments[node.index]);
      } else if (is_reduction(node.op)) {
        values_[n] = reductions(node);
      } else {
        values_[n].resize(count(node.spread, node.group));
        for (uint32_t i = 0; i < values_[n].size(); ++i) values_[n][i] = value(node, i);
      }
    }
  }

  std::vector<uint8_t> stored(const Stored& output) const {
    std::vector<uint8_t> bytes;
    const uint32_t count = values_of(output.kind, output.group, columns_);
    with_element(output.type, t_, [&](auto element) {
      using E = decltype(element);
      bytes.resize(count * sizeof(typename E::Bits));
      for (uint32_t i = 0; i < count; ++i) {
        const auto bits = store_as<E>(at(output.node, i, spread_of(output.kind), output.group));
        std::memcpy(&bytes[i * sizeof bits], &bits, sizeof bits);
      }
    });
    return bytes;
  }

 private:
  uint32_t count(Spread spread, uint32_t group) const {
    return spread == Spread::once     ? 1
           : spread == Spread::groups ? (columns_ + group - 1) / group
                                      : columns_;
  }

  std::vector<float> loaded(const Stored& param, const std::vector<uint8_t>& bytes) const {
    const uint32_t count = values_of(param.kind, param.group, columns_);
    precondition(bytes.size() == size_t{count} * bytes_of(param.type, t_));
    std::vector<float> values(count);
    with_element(param.type, t_, [&](auto element) {
      using E = decltype(element);
      for (uint32_t i = 0; i < count; ++i) {
        typename E::Bits bits;
        std::memcpy(&bits, &bytes[i * sizeof bits], sizeof bits);
        values[i] = load_as<E>(bits);
      }
    });
    return values;
  }

  std::vector<float> reductions(const Node& node) const {
    const std::vector<float>& all = values_[node.args[0]];
    const uint32_t width = node.over == 0 ? columns_ : node.over;
    std::vector<float> results;
    for (uint32_t begin = 0; begin < columns_; begin += width) {
      const uint32_t end = std::min(begin + width, columns_);
      results.push_back(reduced(node.op, {all.begin() + begin, all.begin() + end}));
    }
    return results;
  }

  /// A node's value where a value of this spread has its i-th.
  float at(uint32_t n, uint32_t i, Spread spread, uint32_t group) const {
    const Node& node = function_.nodes[n];
    if (node.spread == Spread::once) return values_[n][0];
    const bool wider = node.spread == Spread::groups && spread == Spread::columns;
    precondition(wider || node.group == group);
    return values_[n][wider ? i / node.group : i];
  }

  float value(const Node& node, uint32_t i) const {
    std::array<float, 4> x{};
    for (uint32_t a = 0; a < argument_count(node.op); ++a) {
      x[a] = at(node.args[a], i, node.spread, node.group);
    }
    switch (node.op) {
      case Op::constant:
        return node.value;
      case Op::columns:
        return static_cast<float>(columns_);
      case Op::negate:
        return negate(x[0]);
      case Op::add:
        return add(x[0], x[1]);
      case Op::sub:
        return sub(x[0], x[1]);
      case Op::mul:
        return mul(x[0], x[1]);
      case Op::div:
        return div(x[0], x[1]);
      case Op::if_less:
        return x[0] < x[1] ? x[2] : x[3];
      case Op::if_most:
        return x[0] <= x[1] ? x[2] : x[3];
      case Op::if_equal:
        return x[0] == x[1] ? x[2] : x[3];
      case Op::round:
        return rounded(node.type, x[0]);
      default:
        return called(node.op, x);
    }
  }

  float rounded(Type type, float x) const {
    if (type == Type::T && function_.rounding == Rounding::once) return x;
    return with_element(type, t_, [x](auto element) { return round_to<decltype(element)>(x); });
  }

  static float called(Op op, const std::array<float, 4>& x) {
    switch (op) {
      case Op::call_abs:
        return call_abs(x[0]);
      case Op::call_sqrt:
        return call_sqrt(x[0]);
      case Op::call_rsqrt:
        return call_rsqrt(x[0]);
      case Op::call_exp:
        return call_exp(x[0]);
      case Op::call_pow2_up:
        return call_pow2_up(x[0]);
      case Op::call_pow2_down:
        return call_pow2_down(x[0]);
      case Op::call_min:
        return call_min(x[0], x[1]);
      case Op::call_max:
        return call_max(x[0], x[1]);
      default:
        return call_fma(x[0], x[1], x[2]);
    }
  }

  const Function& function_;
  const Dtype t_;
  const uint32_t columns_;
  std::vector<std::vector<float>> values_;  // by node
};

}  // namespace

std::vector<std::vector<uint8_t>> evaluate(const Function& function, Dtype t, uint32_t columns,
                                           std::span<const std::vector<uint8_t>> arguments) {
  precondition(can_be_t(t) && columns >= 1 && columns <= kMaxColumns);
  precondition(arguments.size() == function.params.size());
  Evaluation evaluation(function, t, columns);
  evaluation.run(arguments);
  std::vector<std::vector<uint8_t>> results;
  for (const Stored& output : function.outputs) results.push_back(evaluation.stored(output));
  return results;
}

std::vector<uint8_t> stored_as(Type type, Dtype t, std::span<const float> values) {
  return with_element(type, t, [&](auto element) {
    using E = decltype(element);
    std::vector<uint8_t> bytes(values.size() * sizeof(typename E::Bits));
    for (size_t i = 0; i < values.size(); ++i) {
      const auto bits = store_as<E>(values[i]);
      std::memcpy(&bytes[i * sizeof bits], &bits, sizeof bits);
    }
    return bytes;
  });
}

}  // namespace mscclc::rows
