#include "tests/random_programs/families/families.h"

#include <algorithm>

namespace mscclc::random_programs {
namespace {

constexpr Family kFamilies[] = {
    {"flows", make_flows, 6},     {"stale", make_stale, 1},         {"packets", make_packets, 3},
    {"relays", make_relays, 1},   {"exchanges", make_exchanges, 2}, {"sums", make_sums, 1},
    {"locals", make_locals, 2},   {"tokens", make_tokens, 1},       {"barriers", make_barriers, 1},
    {"growing", make_growing, 1}, {"symmetry", make_symmetric, 1},  {"soups", make_soup, 5},
    {"twins", make_twins, 2},     {"echoes", make_echoes, 2},       {"junk", make_junk, 2},
    {"merged", make_merged, 2},   {"rows", make_rows, 2},           {"parts", make_parts, 2},
};

}  // namespace

std::span<const Family> families() { return kFamilies; }

const Family* find_family(std::string_view name) {
  const Family* const found = std::ranges::find(kFamilies, name, &Family::name);
  return found == std::end(kFamilies) ? nullptr : found;
}

const Family& draw_family(Dice& dice) {
  uint32_t all = 0;
  for (const Family& family : kFamilies) all += family.weight;
  uint32_t draw = dice.below(all);
  const Family* family = kFamilies;
  while (draw >= family->weight) draw -= family++->weight;
  return *family;
}

}  // namespace mscclc::random_programs
