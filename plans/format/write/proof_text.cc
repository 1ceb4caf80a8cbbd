#include <fmt/format.h>

#include <array>

#include "plans/format/json/json_out.h"
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

namespace {

/// `["replicated","ranks"]`
std::string text_of(const SumOrders& orders) {
  std::string text;
  for (const auto& [order, kept] : kProvedOrders) {
    if (orders.*kept) text += fmt::format("{}\"{}\"", text.empty() ? "" : ",", name(order));
  }
  return "[" + text + "]";
}

}  // namespace

std::string proof_text(const ProofRecord& record) {
  std::string text;
  JsonOut out([&](std::string_view block) {
    text += block;
    return true;
  });
  const Proof& proof = record.proof;
  out.text(fmt::format("{{\"prover\":{},\"target\":", record.prover));
  out.string(record.target);
  out.text(
      fmt::format(",\"out_of_place\":{},\"in_place\":{},\"orders\":{},\"keeps_input\":{},"
                  "\"graph_replay\":{},\"rounding\":\"{}\",\"between_calls\":\"{}\"}}",
                  proof.out_of_place, proof.in_place, text_of(proof.orders), proof.keeps_input,
                  record.graph_replay, name(proof.rounding), name(proof.between_calls)));
  out.flush();
  return text;
}

}  // namespace mscclc
