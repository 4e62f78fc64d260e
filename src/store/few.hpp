// This file knows a list that mostly has one element.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace dlock::store {

// As many answers as there were questions. The first one needs no memory beside the list itself.
template <class T>
class Few {
 public:
  Few() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a list of many is one of these
  Few(std::vector<T> all) : all_(std::move(all)), size_(all_.size()) {}
  explicit Few(T only) : only_(std::move(only)), size_(1) {}

  std::size_t size() const noexcept { return size_; }
  T operator[](std::size_t index) const { return all_.empty() ? only_ : static_cast<T>(all_[index]); }
  T front() const { return (*this)[0]; }

 private:
  T only_{};
  std::vector<T> all_;
  std::size_t size_ = 0;
};

}  // namespace dlock::store
