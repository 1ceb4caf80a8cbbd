// What runners of tests that are commands have in common: files, a shell, and differences shown.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace mscclc::testing {

void write_whole(const std::filesystem::path& path, const std::string& text);
/// `text` with all of `from` replaced.
std::string replaced(std::string text, std::string_view from, const std::string& to);

/// Runs `command` in `folder`, standard output and standard error into files; returns its exit
/// code, or 128 + the signal that ended it.
int run_shell(const std::string& command, const std::filesystem::path& folder,
              const std::filesystem::path& out, const std::filesystem::path& err);

/// Prints how the files differ, or the first lines of it.
void show_difference(const std::filesystem::path& expected, const std::filesystem::path& actual);

/// The folder of `mscclc` comes first in PATH; messages are in English; under `bazel run` work goes
/// on at the repository's root. Returns a new folder for scratch; empty: there is none.
std::filesystem::path set_up(const std::string& mscclc);

}  // namespace mscclc::testing
