// An open document: its text, and what is known of it. The tree is that of the present text, except
// while too much of that cannot be read: then it is the last one that could.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/lsp/language/check.h"
#include "tools/lsp/language/names.h"
#include "tools/lsp/language/parameters.h"
#include "tools/lsp/language/tree.h"
#include "tools/lsp/protocol/lines.h"

namespace mscclc::lsp {

/// What documents are compiled with.
struct Surroundings {
  ReadFile read_file;
  std::map<std::string, std::string> settings;  ///< values of parameters
  uint64_t most_ops = kMaxOps;
  double patch_seconds = 5;  ///< that someone waits for a patch
};

class Document {
 public:
  Document(std::string uri, std::string text, const Surroundings& surroundings);

  const std::string& uri() const { return uri_; }
  const std::string& path() const { return path_; }
  const std::string& text() const { return text_; }
  const Lines& lines() const { return *lines_; }
  /// Replaces the text, or a part of it. False: the range ends before it begins.
  void replace(std::string text);
  [[nodiscard]] bool replace(const Range& range, const std::string& text);

  /// nullptr if no text so far could be read.
  Tree* tree();
  const Names* names();
  /// The name at a position; nullptr: there is none, or the present text cannot be read.
  const Use* use_at(const Position& position);
  /// The tree is that of the present text.
  bool is_current();
  std::vector<ParameterSet> parameter_sets();
  /// With the first set of parameters; kept until the text changes.
  const Checked& checked();
  /// With one of them; not kept.
  Checked checked_with(const ParameterSet& set);
  FrontEndOptions front_end(const ParameterSet& set) const;
  /// Files that it imports, or settings, have changed.
  void forget();
  const Surroundings& surroundings() const { return surroundings_; }

  std::optional<int64_t> version;  ///< the editor's, of the text

 private:
  void read();
  const std::string uri_, path_;
  const Surroundings& surroundings_;
  std::string text_;
  std::unique_ptr<Lines> lines_;
  std::unique_ptr<Tree> tree_;
  std::unique_ptr<Names> names_;
  bool read_ = false, current_ = false;
  std::optional<Checked> checked_;
};

}  // namespace mscclc::lsp
