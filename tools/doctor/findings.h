// What the checks find, and how it is shown.
#pragma once

#include <string>
#include <vector>

namespace mscclc::doctor {

enum class Level {
  fine,     ///< as it should be
  note,     ///< something to know; jobs run
  problem,  ///< jobs fail, or are slow
};

struct Finding {
  std::string check;  ///< the name of the check
  Level level = Level::fine;
  std::string text;
  std::string remedy;  ///< of notes and problems
};

/// Collects the findings of a check.
class Findings {
 public:
  void begin(std::string check) { check_ = std::move(check); }
  void fine(std::string text) { add(Level::fine, std::move(text), ""); }
  void note(std::string text, std::string remedy) {
    add(Level::note, std::move(text), std::move(remedy));
  }
  void problem(std::string text, std::string remedy) {
    add(Level::problem, std::move(text), std::move(remedy));
  }
  const std::vector<Finding>& all() const { return all_; }
  bool has_problems() const;

 private:
  void add(Level level, std::string text, std::string remedy) {
    all_.push_back({check_, level, std::move(text), std::move(remedy)});
  }
  std::string check_;
  std::vector<Finding> all_;
};

/// For people: a line each, remedies below them, and a summary.
std::string findings_text(const Findings& findings);
/// {"findings": [{"check", "level", "text", "remedy"}], "problems": 1}, in one line.
std::string findings_json(const Findings& findings);

}  // namespace mscclc::doctor
