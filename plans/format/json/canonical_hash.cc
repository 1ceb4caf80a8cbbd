// Writes a parsed plan again in canonical form, into the hash.
#include "plans/format/json/content_hash.h"
#include "plans/format/json/json_out.h"
#include "plans/format/json/json_tape.h"

namespace mscclc {
namespace {

class Canonical {
 public:
  Canonical(const JsonTape& tape, const TextSink* unclaimed, HashOf what)
      : tape_(tape), unclaimed_(unclaimed), what_(what), out_([this](std::string_view text) {
          if (!in_origin_) hash_.update(text);
          if (unclaimed_ != nullptr && !in_claim_) (*unclaimed_)(text);
          return true;
        }) {}

  std::string run() {
    for (NodeId node = 0; node < tape_.size();) {
      close_until(node);
      if (node == claim_end_) end_claim();
      if (in_origin_ && node == origin_end_) end_origin();
      if (is_claim(node)) begin_claim(node);
      if (what_ == HashOf::plan && is_origin(node)) begin_origin(node);
      node = write(node);
    }
    if (in_claim_) {
      while (open_.size() > kExtraDepth) close_last();
      end_claim();
    }
    close_until(static_cast<NodeId>(tape_.size()));
    out_.flush();
    return hash_.digits();
  }

 private:
  /// Ends the arrays and objects that end in front of `node`.
  void close_until(NodeId node) {
    while (!open_.empty() && tape_[open_.back()].next <= node) close_last();
  }

  void close_last() {
    if (in_origin_ && open_.size() <= origin_depth_) end_origin();
    const bool object = tape_[open_.back()].kind() == JsonType::object;
    open_.pop_back();
    out_.need(2);
    out_.character(object ? '}' : ']');
    first_ = false;
  }

  void begin_claim(NodeId node) {
    out_.flush();
    in_claim_ = true;
    claim_end_ = tape_[node].next;
    if (unclaimed_ == nullptr || tape_[node].key != w_target) return;
    (*unclaimed_)(first_ ? R"("target":"")" : R"(,"target":"")");
  }
  void end_claim() {
    out_.flush();
    in_claim_ = false;
  }

  void begin_origin(NodeId node) {
    out_.flush();
    in_origin_ = true;
    origin_depth_ = open_.size();
    origin_end_ = tape_[node].next;
  }
  void end_origin() {
    out_.flush();
    in_origin_ = false;
  }

  /// Does the member say where the plan comes from?
  bool is_origin(NodeId node) const {
    for (const Word key : {w_description, w_files, w_variables, w_sites}) {
      if (is_of_extra_key(node, key)) return true;
    }
    return tape_[node].key == w_loc && open_.size() == kExtraDepth + 2 &&
           tape_[open_[1]].key == w_mscclc && tape_[open_[2]].key == w_ranks;
  }

  bool is_of_extra_key(NodeId node, Word key) const {
    return tape_[node].key == key && open_.size() == kExtraDepth &&
           tape_[open_[0]].kind() == JsonType::object && tape_[open_[1]].key == w_mscclc &&
           tape_[open_[1]].kind() == JsonType::object;
  }
  bool is_left_out(NodeId node) const { return is_of_extra_key(node, w_hash); }
  bool is_claim(NodeId node) const {
    return is_of_extra_key(node, w_target) || is_of_extra_key(node, w_proof);
  }

  /// Writes one node, of an array or object its beginning. Returns the next.
  NodeId write(NodeId node) {
    if (!open_.empty()) {
      if (is_left_out(node)) return tape_[node].next;
      out_.need(1);
      if (!first_) out_.character(',');
      if (tape_[open_.back()].kind() == JsonType::object) {
        out_.string(tape_.text(tape_[node].key));
        out_.need(1);
        out_.character(':');
      }
    }
    first_ = false;
    write_value(node);
    return node + 1;
  }

  void write_value(NodeId node) {
    const JsonNode& n = tape_[node];
    out_.need(32);
    switch (n.kind()) {
      case JsonType::null:
      case JsonType::real:
        out_.literal("null");
        break;
      case JsonType::boolean:
        out_.word(n.value != 0 ? "true" : "false");
        break;
      case JsonType::number:
        out_.number64(n.value);
        break;
      case JsonType::negative:
        out_.integer(static_cast<int64_t>(n.value));
        break;
      case JsonType::string:
        out_.string(tape_.text(static_cast<Word>(n.value)));
        break;
      case JsonType::array:
      case JsonType::object:
        out_.character(n.kind() == JsonType::object ? '{' : '[');
        open_.push_back(node);
        first_ = true;
        break;
    }
  }

  static constexpr size_t kExtraDepth = 2;  ///< of members of the extra key

  const JsonTape& tape_;
  const TextSink* const unclaimed_;
  const HashOf what_;
  bool in_claim_ = false;        ///< in a member that `unclaimed_` does not get ...
  NodeId claim_end_ = kNoNode;   ///< ... which ends before this node
  bool in_origin_ = false;       ///< in a member that is not hashed
  size_t origin_depth_ = 0;      ///< how much was open when it began
  NodeId origin_end_ = kNoNode;  ///< it ends before this node
  ContentHash hash_;
  JsonOut out_;
  std::vector<NodeId> open_;
  bool first_ = true;
};

}  // namespace

std::string canonical_hash(const JsonTape& tape,
                           const std::function<bool(std::string_view)>* unclaimed, HashOf what) {
  return Canonical(tape, unclaimed, what).run();
}

}  // namespace mscclc
