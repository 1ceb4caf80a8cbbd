// The table of layers (layers.bzl), and what a file includes that the table does not allow.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mscclc::structure {

class Layers {
 public:
  /// `table`: "folder: folder folder" a line, "folder tests: …" for what only tests of the folder
  /// may include besides, and "*" for everything. Written by layer_table() of layers.bzl.
  explicit Layers(std::string_view table);

  /// The folder of the table that a path lies in: the innermost one; empty if there is none.
  std::string folder_of(std::string_view path) const;
  /// May a file include another? Paths from the root of the repository.
  bool allow(std::string_view file, std::string_view included) const;

 private:
  struct Row {
    std::set<std::string> all, tests;
  };
  std::map<std::string, Row> rows_;
};

/// What a source includes, as written, if it may be ours: in quotes, or from a folder of `layers`.
std::vector<std::string> includes(std::string_view source, const Layers& layers);

/// A line for every include of this file that its folder may not have.
std::vector<std::string> wrong_includes(std::string_view file, std::string_view source,
                                        const Layers& layers);

}  // namespace mscclc::structure
