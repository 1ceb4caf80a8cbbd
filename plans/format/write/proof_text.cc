#include <array>

#include "plans/format/json/json_writer.h"
#include "plans/format/proof_record.h"

namespace mscclc {

std::string_view name(Rounding rounding) {
  constexpr std::array<std::string_view, 3> kNames = {"none", "once", "each_op"};
  return kNames[static_cast<size_t>(rounding)];
}

std::string_view name(BetweenCalls between_calls) {
  constexpr std::array<std::string_view, 3> kNames = {"meeting", "copies", "signals"};
  return kNames[static_cast<size_t>(between_calls)];
}

std::string proof_text(const ProofRecord& record) {
  std::string text;
  JsonOut out([&](std::string_view block) {
    text += block;
    return true;
  });
  JsonWriter json(out);
  const Proof& proof = record.proof;
  const auto orders = [&] {
    json.open('[');
    for (const auto& [order, kept] : kProvedOrders) {
      if (proof.orders.*kept) json.elements(name(order));
    }
    json.close(']');
  };
  json.open('{');
  json.members("prover", record.prover, "target", record.target, "out_of_place", proof.out_of_place,
               "in_place", proof.in_place, "orders", orders);
  if (!proof.sums.empty()) json.members("sums", proof.sums);
  json.members("keeps_input", proof.keeps_input, "graph_replay", record.graph_replay, "rounding",
               name(proof.rounding), "between_calls", name(proof.between_calls));
  json.close('}');
  out.flush();
  return text;
}

}  // namespace mscclc
