// The sources and documents of the repository, which tests of its structure have as data.
#pragma once

#include <map>
#include <set>
#include <string>

namespace mscclc::structure {

/// Text by path, of all C++ and CUDA files.
std::map<std::string, std::string> sources();

/// The same of all texts that are written for people and are no documents: code, and what builds
/// and tests it.
std::map<std::string, std::string> texts();

/// The same of all documents (Markdown).
std::map<std::string, std::string> pages();

/// The paths of all files, whatever they are.
std::set<std::string> files();

}  // namespace mscclc::structure
