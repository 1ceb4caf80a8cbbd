#include "tools/draw/layout.h"

#include <fmt/format.h>

#include "ir/contract/collectives.h"
#include "ir/diagnostics/printable.h"
#include "tools/draw/layout_parts.h"
#include "tools/draw/words.h"

namespace mscclc::draw {
namespace {

std::string title_of(const Program& program) {
  const std::string title = program.name.empty() ? "(no name)" : printable_line(program.name);
  const size_t ranks = program.ranks.size();
  return fmt::format("{}: {} over {} rank{}", title, name(program.contract.kind), ranks,
                     ranks == 1 ? "" : "s");
}

/// What the bands stand for.
std::string bands_fact(const Program& program, const Choice& choice) {
  if (choice.bands.size() == program.ranks.size()) return "";
  std::vector<int64_t> drawn;
  for (const ChosenRank& band : choice.bands) drawn.push_back(band.rank);
  std::string text =
      fmt::format("drawn: rank{} {}", drawn.size() == 1 ? "" : "s", list_text(drawn));
  if (choice.bands.size() == 1 && choice.bands[0].stands_for.size() == program.ranks.size()) {
    text = fmt::format("all ranks do the same, and rank {} is drawn", drawn[0]);
    if (choice.names.turn != RankTurn::none) {
      const std::string way = traffic(program, choice.names, choice.bands[0].rank);
      if (!way.empty()) text += ": " + way;
    }
  }
  return text;
}

void add_facts(const Program& program, const Choice& choice, const DrawOptions& options,
               Picture& picture) {
  const auto add = [&](const std::string& fact) {
    if (!fact.empty()) picture.facts.push_back(fact);
  };
  add(bands_fact(program, choice));
  if (!options.proved.empty()) add(options.proved);
  if (!options.chunk.empty()) {
    add("only what touches " + printable_line(beginning(options.chunk, 80)));
  }
}

}  // namespace

Result<Picture> lay_out(const Program& program, const DrawOptions& options) {
  const std::vector<Flow> flows = flows_of(program);
  const Steps steps = make_steps(program, flows);
  const auto choice = choose(program, steps, options);
  if (!choice) return choice.error();
  const auto draw = [&](bool once) {
    auto picture = build_picture(program, steps, flows, *choice, options, once);
    if (!picture) return picture;
    picture->name = program.name;
    picture->title = title_of(program);
    add_facts(program, *choice, options, *picture);
    if (once) picture->facts.emplace_back("what a block repeats is drawn once; --rank draws all");
    picture->begins = "a call begins";
    picture->ends = "the call ends";
    if (!options.between_calls.empty()) picture->ends += ". The next one: " + options.between_calls;
    join_arrows(*picture);
    place(*picture);
    return picture;
  };
  auto picture = draw(false);
  const bool picked = !options.ranks.empty() || !options.blocks.empty() || !options.chunk.empty();
  if (!picture || picked || picture->height <= kScreenHeight) return picture;
  return draw(true);
}

}  // namespace mscclc::draw
