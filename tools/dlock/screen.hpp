// What a screen full of rows is made of.
#pragma once

#include "top_rows.hpp"

#include <termios.h>

#include <string>
#include <vector>

namespace dlock::tools {

enum class Key { none, up, down, page_up, page_down, home, end, enter, escape, erase, text };

struct Pressed {
  Key key = Key::none;
  std::string text{};  // of Key::text: one letter
};

struct Frame {
  std::string title, bottom;   // first and last line
  std::vector<Cells> rows;     // those below the titles
  std::vector<bool> alarming;  // of the same size
  Column sorted_by{};
};

// The terminal at standard input and output, as curses draws on it. The destructor leaves it as it was.
// Threads: one. There is one at a time.
class Screen {
 public:
  // Throws UsageError if the terminal is unknown.
  explicit Screen(bool colors);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  std::size_t rows_of_table() const;
  void draw(const Frame& frame);
  Pressed pressed();  // Key::none: nothing more
  void fit();         // after SIGWINCH
  void leave();       // for as long as this process is stopped
  void come_back();

 private:
  termios modes_{};  // of the terminal before
  bool known_ = false, colors_ = false;
};

}  // namespace dlock::tools
