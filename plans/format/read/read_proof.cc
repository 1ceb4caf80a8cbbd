// The record of a proof: what the plan's writer says of it.
#include <fmt/format.h>

#include <algorithm>

#include "plans/format/read/read_state.h"

namespace mscclc {
namespace {

/// One of the values 0, 1, … of an enum, by its word.
template <class Enum, size_t N>
bool read_choice(const JsonReader& json, NodeId node, const KnownWord (&words)[N], Enum& out) {
  Word word = 0;
  if (!json.word(node, word)) return false;
  for (size_t i = 0; i < N; ++i) {
    if (word != words[i]) continue;
    out = static_cast<Enum>(i);
    return true;
  }
  return json.fail(node, fmt::format("unknown word '{}'", json.tape().text(word)));
}

/// The list of contracts that the sums keep.
bool read_orders(const JsonReader& json, NodeId list, SumOrders& orders) {
  if (!json.expect(list, JsonType::array)) return false;
  for (NodeId e = json.first(list); e != json.end(list); e = json.next(e)) {
    std::string_view word;
    if (!json.string(e, word)) return false;
    const auto* const row =
        std::ranges::find(kProvedOrders, word, [](const ProvedOrder& r) { return name(r.order); });
    if (row == kProvedOrders.end()) return json.fail(e, fmt::format("unknown word '{}'", word));
    if (orders.*row->kept) return json.fail(e, fmt::format("a second '{}'", word));
    orders.*row->kept = true;
  }
  return true;
}

/// Records of version 4 and before say only whether sums are the same on all ranks.
constexpr uint32_t kFirstWithOrders = 5;

bool read_sums(const JsonReader& json, NodeId node, const Members& m, ProofRecord& record) {
  const KnownWord wanted = record.prover < kFirstWithOrders ? w_deterministic : w_orders;
  const KnownWord other = wanted == w_orders ? w_deterministic : w_orders;
  if (m.has(other))
    return json.fail(m[other], fmt::format("no record of version {} has it", record.prover));
  if (!m.has(wanted))
    return json.fail(node, fmt::format("'{}' is missing", json.tape().text(wanted)));
  return wanted == w_orders ? read_orders(json, m[wanted], record.proof.orders)
                            : json.boolean(m[wanted], record.proof.orders.replicated);
}

bool read_attributes(const JsonReader& json, const Members& m, ProofRecord& record) {
  Proof& proof = record.proof;
  proof.proved = true;
  return json.boolean(m[w_out_of_place], proof.out_of_place) &&
         json.boolean(m[w_in_place], proof.in_place) &&
         json.boolean(m[w_keeps_input], proof.keeps_input) &&
         json.boolean(m[w_graph_replay], record.graph_replay) &&
         read_choice(json, m[w_rounding], {w_none, w_once, w_each_op}, proof.rounding) &&
         read_choice(json, m[w_between_calls], {w_meeting, w_copies, w_signals},
                     proof.between_calls);
}

}  // namespace

bool read_proof(const JsonReader& json, NodeId node, std::string_view plan_target,
                ProofRecord& record) {
  Members m;
  std::string_view target;
  if (!m.read(json, node,
              {w_prover, w_target, w_out_of_place, w_in_place, w_keeps_input, w_graph_replay,
               w_rounding, w_between_calls},
              {w_deterministic, w_orders, w_sums}) ||
      !json.number(m[w_prover], record.prover) || !json.string(m[w_target], target) ||
      !read_attributes(json, m, record) || !read_sums(json, node, m, record)) {
    return false;
  }
  record.target = target;
  if (m.has(w_sums)) {
    std::string_view sums;
    if (!json.string(m[w_sums], sums)) return false;
    record.proof.sums = sums;
  }
  return target == plan_target ||
         json.fail(m[w_target], "proof-target",
                   fmt::format("the proof is for the target '{}', the plan for '{}'", target,
                               plan_target));
}

}  // namespace mscclc
