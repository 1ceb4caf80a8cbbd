#include "compiler/builder/declare/names.h"

#include <fmt/format.h>

#include <algorithm>

namespace mscclc {

std::string_view kind_name(DeclKind kind) {
  static constexpr std::string_view kWords[] = {"name", "buffer", "channel", "semaphore"};
  return kWords[static_cast<size_t>(kind)];
}

void Names::begin_rank() {
  std::vector<Decl>& decls = decls_[draft_.rank];
  if (draft_.rank > 0) decls.reserve(decls_[draft_.rank - 1].size());  // ranks are much alike
  decls.resize(std::max<size_t>(decls.size(), draft_.output_name + 1));
  decls[draft_.input_name] = {DeclKind::buffer, kInput};
  decls[draft_.output_name] = {DeclKind::buffer, kOutput};
}

bool Names::declare(NameId id, DeclKind kind, uint32_t index, Mark mark) {
  std::vector<Decl>& decls = decls_[draft_.rank];
  if (id >= decls.size()) decls.resize(std::max<size_t>(id + 1, 2 * decls.size()));
  if (decls[id].kind != DeclKind::none) {
    reports_.fail("redeclared", mark, fmt::format("'{}' is already declared", draft_.name(id)));
    return false;
  }
  decls[id] = {kind, index};
  return true;
}

void Names::poison(NameId name) {
  reports_.set_failed();
  if (name >= poisoned_.size()) poisoned_.resize(name + 1);
  poisoned_[name] = true;
}

}  // namespace mscclc
