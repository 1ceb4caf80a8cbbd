#include "tools/doctor/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

namespace mscclc::doctor {
namespace {

constexpr size_t kColumn = 12;  // of a check's name

std::string_view word(Level level) {
  static constexpr std::string_view kWords[] = {"ok", "note", "problem"};  // as levels come
  static_assert(std::size(kWords) == static_cast<size_t>(Level::problem) + 1);
  return kWords[static_cast<size_t>(level)];
}

size_t count(const Findings& findings, Level level) {
  return static_cast<size_t>(std::ranges::count(findings.all(), level, &Finding::level));
}

}  // namespace

bool Findings::has_problems() const {
  return std::ranges::any_of(all_, [](const Finding& f) { return f.level == Level::problem; });
}

std::string findings_text(const Findings& findings) {
  std::string text;
  for (const Finding& f : findings.all()) {
    text += fmt::format("{:<{}}  {:<7}  {}\n", f.check, kColumn, word(f.level), f.text);
    if (!f.remedy.empty()) text += fmt::format("{:{}}  -> {}\n", "", kColumn + 9, f.remedy);
  }
  const size_t problems = count(findings, Level::problem), notes = count(findings, Level::note);
  return text + fmt::format("{} problem{}, {} note{}\n", problems, problems == 1 ? "" : "s", notes,
                            notes == 1 ? "" : "s");
}

std::string findings_json(const Findings& findings) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding& f : findings.all()) {
    nlohmann::ordered_json one = {{"check", f.check}, {"level", word(f.level)}, {"text", f.text}};
    if (!f.remedy.empty()) one["remedy"] = f.remedy;
    list.push_back(std::move(one));
  }
  const nlohmann::ordered_json all = {{"findings", list},
                                      {"problems", count(findings, Level::problem)}};
  return all.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace mscclc::doctor
