// What stands on the screen of a VT52, the simplest terminal that full-screen programs still know.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::test {

// Threads: one.
class Vt52 {
 public:
  Vt52(std::size_t rows, std::size_t columns) { resize(rows, columns); }

  // Keeps what fits.
  void resize(std::size_t rows, std::size_t columns) {
    width_ = columns;
    lines_.resize(rows);
    for (auto& line : lines_) line.resize(columns, ' ');
    row_ = std::min(row_, rows - 1);
    column_ = std::min(column_, columns - 1);
  }

  // All that was ever sent to it, which may have grown since the last call.
  void read(const std::string& everything) {
    while (read_ < everything.size()) {
      const auto size = size_of(std::string_view(everything).substr(read_));
      if (size == 0) return;  // more is to come
      obey(std::string_view(everything).substr(read_, size));
      read_ += size;
    }
  }

  // Without the blanks at its end.
  std::string line(std::size_t row) const {
    const auto& text = lines_.at(row);
    return text.substr(0, text.find_last_not_of(' ') + 1);
  }
  bool has(std::string_view text) const {
    for (const auto& line : lines_)
      if (line.find(text) != std::string::npos) return true;
    return false;
  }
  std::string text() const {
    std::string all;
    for (std::size_t i = 0; i < lines_.size(); ++i) all += line(i) + "\n";
    return all;
  }

 private:
  static std::size_t size_of(std::string_view rest) {
    if (rest.front() != '\x1b') return 1;
    const std::size_t size = rest.size() > 1 && rest[1] == 'Y' ? 4 : 2;
    return rest.size() < size ? 0 : size;
  }

  void obey(std::string_view order) {
    if (order.size() == 1) {
      put(order.front());
      return;
    }
    switch (order[1]) {
      case 'A': row_ -= row_ > 0 ? 1 : 0; break;
      case 'B': row_ = std::min(row_ + 1, lines_.size() - 1); break;
      case 'C': column_ = std::min(column_ + 1, width_ - 1); break;
      case 'D': column_ -= column_ > 0 ? 1 : 0; break;
      case 'H': row_ = column_ = 0; break;
      case 'I': up(); break;
      case 'J':
        for (auto i = row_ + 1; i < lines_.size(); ++i) lines_[i].assign(width_, ' ');
        [[fallthrough]];
      case 'K': lines_[row_].replace(column_, width_ - column_, width_ - column_, ' '); break;
      case 'Y':
        row_ = std::min<std::size_t>(static_cast<unsigned char>(order[2]) - 32U, lines_.size() - 1);
        column_ = std::min<std::size_t>(static_cast<unsigned char>(order[3]) - 32U, width_ - 1);
        break;
      default: break;  // modes of the keyboard
    }
  }

  void put(char c) {
    switch (c) {
      case '\r': column_ = 0; return;
      case '\n': down(); return;
      case '\b': column_ -= column_ > 0 ? 1 : 0; return;
      case '\t': column_ = std::min((column_ / 8 + 1) * 8, width_ - 1); return;
      case '\a': return;
      default: break;
    }
    lines_[row_][column_] = c;
    column_ = std::min(column_ + 1, width_ - 1);
  }

  void down() {
    if (row_ + 1 < lines_.size()) {
      ++row_;
      return;
    }
    lines_.erase(lines_.begin());
    lines_.emplace_back(width_, ' ');
  }

  void up() {
    if (row_ > 0) {
      --row_;
      return;
    }
    lines_.pop_back();
    lines_.insert(lines_.begin(), std::string(width_, ' '));
  }

  std::vector<std::string> lines_;
  std::size_t width_ = 0, row_ = 0, column_ = 0, read_ = 0;
};

}  // namespace dlock::test
