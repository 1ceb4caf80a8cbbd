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
  size_t makers = 0;     ///< those that are constructors, destructors or static
  size_t members = 0;    ///< data that each object has: no constants, no static ones
  size_t hidden = 0;     ///< those of the members that are not public
  size_t shown = 0;      ///< those that are public and can change: neither constants nor references
  size_t line = 0;

  size_t size() const { return functions + members; }
  /// Functions that may change an object that is there.
  size_t changers() const { return functions - queries - makers; }
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

  /// Most of its data everyone may change, and it has functions that change it, too: who keeps it
  /// in order? Records have no such functions, or few.
  bool is_open() const;
};

/// The classes of all these files (text by path), largest first.
std::vector<ClassOfTree> classes_of_tree(const std::map<std::string, std::string>& sources);

}  // namespace mscclc::structure
