#include "tools/lsp/language/document.h"

#include <utility>

#include "tools/lsp/protocol/uri.h"

namespace mscclc::lsp {

Document::Document(std::string uri, std::string text, const Surroundings& surroundings)
    : uri_(std::move(uri)), path_(path_of_uri(uri_)), surroundings_(surroundings) {
  replace(std::move(text));
}

void Document::replace(std::string text) {
  text_ = std::move(text);
  lines_ = std::make_unique<Lines>(text_);
  forget();
}

bool Document::replace(const Range& range, const std::string& text) {
  const size_t begin = lines_->byte(range.start), end = lines_->byte(range.end);
  if (end < begin) return false;
  std::string whole = std::move(text_);
  whole.replace(begin, end - begin, text);
  replace(std::move(whole));
  return true;
}

void Document::forget() {
  read_ = false;
  checked_.reset();
}

void Document::read() {
  if (read_) return;
  read_ = true;
  std::unique_ptr<Tree> tree = read_tree(path_, text_, surroundings_.read_file);
  current_ = tree != nullptr;
  if (!current_) return;
  names_.reset();
  tree_ = std::move(tree);
}

Tree* Document::tree() {
  read();
  return tree_.get();
}

const Names* Document::names() {
  read();
  if (names_ == nullptr && tree_ != nullptr) names_ = std::make_unique<Names>(*tree_);
  return names_.get();
}

const Use* Document::use_at(const Position& position) {
  return is_current() ? names()->at(lines_->byte(position)) : nullptr;
}

bool Document::is_current() {
  read();
  return current_;
}

std::vector<ParameterSet> Document::parameter_sets() {
  return lsp::parameter_sets(text_, tree(), surroundings_.settings);
}

FrontEndOptions Document::front_end(const ParameterSet& set) const {
  return lsp::front_end(set.defines, surroundings_.read_file, surroundings_.most_ops);
}

Checked Document::checked_with(const ParameterSet& set) {
  return check(path_, text_, is_current() ? tree() : nullptr, front_end(set));
}

const Checked& Document::checked() {
  if (!checked_) checked_ = checked_with(parameter_sets().front());
  return *checked_;
}

}  // namespace mscclc::lsp
