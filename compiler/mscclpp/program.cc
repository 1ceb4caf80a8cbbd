// Names of what programs consist of.
#include "compiler/mscclpp/program.h"

namespace mscclc::mscclpp {
namespace {

enum class Form : uint8_t { plain, relaxed };

struct Row {
  OpKind op;
  Form form;
};

const Row& row_of(Name name) {
  static constexpr Row kRows[] = {
#define MSCCLPP_OP(name, op, form, reads, writes) {OpKind::op, Form::form},
#include "compiler/mscclpp/op_names.def"
#undef MSCCLPP_OP
  };
  return kRows[static_cast<size_t>(name)];
}

}  // namespace

OpKind op_of(Name name) { return row_of(name).op; }

bool is_relaxed(Name name) { return row_of(name).form == Form::relaxed; }

std::string_view text_of(Name name) {
  const OpInfo& op = info(op_of(name));
  return is_relaxed(name) ? op.relaxed : op.wire;
}

std::string_view text_of(Kind kind) {
  switch (kind) {
    case Kind::memory:
      return mscclc::name(ChannelKind::memory);
    case Kind::port:
      return mscclc::name(ChannelKind::port);
    case Kind::by_switch:
      return mscclc::name(ChannelKind::switch_);
    case Kind::none:
      break;
  }
  return "none";
}

char letter_of(int32_t buffer) { return "ios"[buffer - kInput]; }

}  // namespace mscclc::mscclpp
