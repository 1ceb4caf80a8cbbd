// What kernels of plans use of the standard library, for NVRTC, which has no headers of it
// (standard_names() lists those that stand for this one). Like the library's, as far as it goes.
#pragma once

using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long;
using uintptr_t = unsigned long;

namespace std {

using ::size_t;

template <class T, class U>
inline constexpr bool is_same_v = false;
template <class T>
inline constexpr bool is_same_v<T, T> = true;
template <class T>
inline constexpr bool is_floating_point_v = is_same_v<T, float> || is_same_v<T, double>;
template <class T>
concept number = requires(T a) {
  a < a;
};
template <class T>
inline constexpr bool is_signed_v = false;
template <number T>
inline constexpr bool is_signed_v<T> = T(-1) < T(0);

template <bool kFirst, class T, class U>
struct conditional {
  using type = T;
};
template <class T, class U>
struct conditional<false, T, U> {
  using type = U;
};
template <bool kFirst, class T, class U>
using conditional_t = typename conditional<kFirst, T, U>::type;

template <class To, class From>
constexpr To bit_cast(const From& from) {
  return __builtin_bit_cast(To, from);
}

template <class T, size_t kCount>
struct array {
  T elements[kCount];
  constexpr T& operator[](size_t i) { return elements[i]; }
  constexpr const T& operator[](size_t i) const { return elements[i]; }
  constexpr size_t size() const { return kCount; }
  constexpr const T* begin() const { return elements; }
  constexpr const T* end() const { return elements + kCount; }
  constexpr const T* data() const { return elements; }
};

template <class T>
class span {
 public:
  constexpr span() = default;
  constexpr span(T* data, size_t size) : data_(data), size_(size) {}
  template <class U, size_t kCount>
  constexpr span(U (&all)[kCount]) : data_(all), size_(kCount) {}
  template <class U, size_t kCount>
  constexpr span(const array<U, kCount>& all) : data_(all.data()), size_(kCount) {}
  constexpr span subspan(size_t from) const { return {data_ + from, size_ - from}; }
  constexpr T& operator[](size_t i) const { return data_[i]; }
  constexpr size_t size() const { return size_; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

template <class T, size_t kCount>
span(T (&)[kCount]) -> span<T>;

class string_view {
 public:
  constexpr string_view() = default;
  constexpr string_view(const char* text) : data_(text) {
    while (text[size_] != 0) ++size_;
  }
  constexpr size_t size() const { return size_; }

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

template <class T>
class optional;  // only in declarations of functions of the host

}  // namespace std
