// How large the classes of the sources are, and over how many files each is spread: read from the
// text, without a compiler.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mscclc::structure {

/// A class, struct or union with a body. A nested one counts for itself.
struct ClassSize {
  std::string name;      ///< with its namespaces and the classes around it
  size_t functions = 0;  ///< declared in its body; those that are defaulted or deleted do not count
  size_t queries = 0;    ///< those of the functions that are const
  size_t members = 0;    ///< data that each object has: no constants, no static ones
  size_t hidden = 0;     ///< those of the members that are not public
  size_t line = 0;

  size_t size() const { return functions + members; }
};

/// What one file has of classes.
struct FileClasses {
  std::vector<ClassSize> classes;
  /// Classes of which the file defines a function outside of their bodies.
  std::set<std::string> completed;
};

/// Throws std::runtime_error with the line where the file has a construct that this reader does not
/// know.
FileClasses classes_of(std::string_view source);

/// A class of the tree.
struct ClassOfTree {
  ClassSize size;
  std::string path;               ///< of its body
  std::set<std::string> sources;  ///< that define its functions, its body's not among them

  /// Much data, of which none is private, and many functions that change it.
  bool all_public() const;
};

/// The classes of all these files (text by path), largest first.
std::vector<ClassOfTree> classes_of_tree(const std::map<std::string, std::string>& sources);

}  // namespace mscclc::structure
