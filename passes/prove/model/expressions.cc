#include "passes/prove/model/expressions.h"

namespace mscclc::proof {
namespace {

constexpr size_t kMaxText = 160;

}  // namespace

std::string Expressions::text(uint64_t order) const {
  std::string text;
  write(order, true, false, text);
  if (text.size() <= kMaxText) return text;
  return text.substr(0, text.rfind(' ', kMaxText)) + " ...";
}

/// `outermost`: its rounding says nothing. `grouped`: it stands to the right of a plus.
void Expressions::write(uint64_t order, bool outermost, bool grouped, std::string& text) const {
  if (text.size() > kMaxText) return;
  const auto found = nodes_.find(order);
  if (found == nodes_.end()) {
    text += "...";
    return;
  }
  const Node& node = found->second;
  switch (node.kind) {
    case Kind::input:
      text += 'x' + std::to_string(node.rank);
      return;
    case Kind::rounded:
      text += outermost ? "" : "[";
      write(node.left, false, false, text);
      text += outermost ? "" : "]";
      return;
    case Kind::exact:
      for (size_t i = 0; i < node.terms.size(); ++i) {
        text += i == 0 ? "exact(" : ", ";
        write(node.terms[i], false, false, text);
      }
      text += ")";
      return;
    case Kind::sum:
      text += grouped ? "(" : "";
      write(node.left, false, false, text);
      text += " + ";
      write(node.right, false, true, text);
      text += grouped ? ")" : "";
      return;
  }
}

}  // namespace mscclc::proof
