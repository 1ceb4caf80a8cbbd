// A client as a language model or an editor is one: all it knows of a program's mistakes is what
// 'mscclc verify --json' prints, and all it does is to apply the patches that are offered there.
#pragma once

#include <filesystem>
#include <string>

namespace mscclc::testing {

class Client {
 public:
  explicit Client(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// What the command says of a program.
  struct Answer {
    bool proved = false;
    std::string first_error;  ///< its code; empty: there is none
    std::string patched;      ///< the program with the first patch that is offered; empty: none is
    std::string title;        ///< of the patch
  };
  /// `options`: more of the command line, as "-D R=4".
  Answer ask(const std::string& program, const std::string& options = "") const;
  /// Is it proved? Asked for nothing else.
  bool is_proved(const std::string& program, const std::string& options = "") const;
  /// Does a program run right in the simulator?
  bool runs(const std::string& program) const;

 private:
  int run(const std::string& program, const std::string& command) const;

  const std::filesystem::path folder_;
};

}  // namespace mscclc::testing
