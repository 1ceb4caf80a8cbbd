// What one attempt gives: a value, or the one error because of which there is none.
// docs/design/failures.md says when a function gives this, and when it takes Diagnostics.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "ir/support/precondition.h"

namespace mscclc {

/// Why something cannot be, or was not done. A check that only says what is wrong gives
/// std::optional<Error>, and is named for what it finds: why_not(), problem().
struct Error {
  std::string message;      ///< what is wrong, as diagnostics say it
  std::string remedy = {};  ///< what to do about it; empty: no more than the message says
  std::string code = {};    ///< of the diagnostic; empty: its reporter has one

  /// All of it, as part of a diagnostic's message.
  std::string text() const { return remedy.empty() ? message : message + "; " + remedy; }
  friend bool operator==(const Error& error, std::string_view text) { return error.text() == text; }
};

/// Thread safety: as of a T.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(Error error) : error_(std::move(error)) {}
  /// From what a T is made of. A null pointer is no value: it does not say why there is none.
  template <class From>
  requires(std::is_convertible_v<From, T> && !std::is_same_v<std::remove_cvref_t<From>, Result> &&
           !std::is_same_v<std::remove_cvref_t<From>, Error> &&
           !std::is_same_v<std::remove_cvref_t<From>, std::nullptr_t>) Result(From&& value)
      : value_(std::forward<From>(value)) {}

  explicit operator bool() const { return value_.has_value(); }
  /// REQUIRES: there is a value; so in what follows.
  T& operator*() & { return checked(), *value_; }
  const T& operator*() const& { return checked(), *value_; }
  T&& operator*() && { return checked(), *std::move(value_); }
  T* operator->() { return checked(), &*value_; }
  const T* operator->() const { return checked(), &*value_; }
  /// REQUIRES: there is no value.
  const Error& error() const {
    precondition(!value_.has_value());
    return error_;
  }

 private:
  void checked() const { precondition(value_.has_value()); }

  std::optional<T> value_;
  Error error_;
};

/// Of what is done for its effect. Made of nothing (`return {};`) it was done.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  explicit operator bool() const { return !error_.has_value(); }
  /// REQUIRES: it was not done.
  const Error& error() const {
    precondition(error_.has_value());
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace mscclc
