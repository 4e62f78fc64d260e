// A screen of a terminal, by curses.
#include "screen.hpp"

#include "tools/shared/usage.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <csignal>
#include <cstdlib>

#define NCURSES_NOMACROS
#include <curses.h>

namespace dlock::tools {
namespace {

constexpr int alarm_color = 1, escape_delay_ms = 25;

SCREEN* open_screen = nullptr;

void line(int row, const std::string& text, chtype style) {
  ::wmove(stdscr, row, 0);
  ::wattrset(stdscr, static_cast<int>(style));
  ::waddnstr(stdscr, text.data(), static_cast<int>(text.size()));
  if (style == A_REVERSE)
    while (::getcury(stdscr) == row && ::getcurx(stdscr) < ::getmaxx(stdscr) - 1) ::waddch(stdscr, ' ');
  ::wclrtoeol(stdscr);
  ::wattrset(stdscr, A_NORMAL);
}

}  // namespace

Screen::Screen(bool colors) {
  std::setlocale(LC_CTYPE, "");  // for names beyond ASCII
  // While it draws, curses ignores SIGTSTP, and so loses a ^Z that comes then. It leaves the signal alone for good if
  // it finds it handled here. What stops this process restores the terminal itself: leave(), come_back().
  struct sigaction handled {
  }, before{};
  handled.sa_handler = [](int) {};
  ::sigaction(SIGTSTP, &handled, &before);
  known_ = ::tcgetattr(STDIN_FILENO, &modes_) == 0;
  open_screen = ::newterm(nullptr, stdout, stdin);
  ::sigaction(SIGTSTP, &before, nullptr);
  if (open_screen == nullptr) {
    const char* term = std::getenv("TERM");
    throw UsageError("the terminal TERM=" + in_quotes(term == nullptr ? "" : term) + " is unknown here; use -b");
  }
  ::cbreak();
  ::noecho();
  ::keypad(stdscr, TRUE);
  ::nodelay(stdscr, TRUE);
  ::set_escdelay(escape_delay_ms);
  ::curs_set(0);
  if (colors && ::has_colors()) {
    ::start_color();
    ::use_default_colors();
    ::init_pair(alarm_color, COLOR_RED, -1);
    colors_ = true;
  }
}

Screen::~Screen() {
  if (known_) ::tcsetattr(STDIN_FILENO, TCSANOW, &modes_);  // endwin() does so, too, but not where it cannot write
  ::endwin();
  ::delscreen(open_screen);
  open_screen = nullptr;
}

std::size_t Screen::rows_of_table() const { return static_cast<std::size_t>(std::max(::getmaxy(stdscr) - 3, 0)); }

void Screen::draw(const Frame& frame) {
  const auto width = static_cast<std::size_t>(std::max(::getmaxx(stdscr) - 1, 1));
  auto lines = frame.rows;
  lines.insert(lines.begin(), titles());
  const auto widths = widths_for(lines, width);
  const int last = ::getmaxy(stdscr) - 1;
  ::werase(stdscr);
  line(0, cut(frame.title, width), A_BOLD);
  line(1, cut(line_of(lines.front(), widths), width), A_REVERSE);
  for (std::size_t i = 0; i < frame.rows.size() && static_cast<int>(i) + 2 < last; ++i) {
    const auto style = frame.alarming[i] ? (colors_ ? COLOR_PAIR(alarm_color) : A_BOLD) : A_NORMAL;
    line(static_cast<int>(i) + 2, cut(line_of(frame.rows[i], widths), width), style);
  }
  if (last > 1) line(last, cut(frame.bottom, width), A_NORMAL);
  ::wrefresh(stdscr);
}

Pressed Screen::pressed() {
  wint_t code = 0;
  const int kind = ::wget_wch(stdscr, &code);
  if (kind == ERR) return {};
  if (kind == KEY_CODE_YES) {
    switch (code) {
      case KEY_UP: return {Key::up};
      case KEY_DOWN: return {Key::down};
      case KEY_PPAGE: return {Key::page_up};
      case KEY_NPAGE: return {Key::page_down};
      case KEY_HOME: return {Key::home};
      case KEY_END: return {Key::end};
      case KEY_ENTER: return {Key::enter};
      case KEY_BACKSPACE: return {Key::erase};
      default: return {Key::text};  // a key without a meaning
    }
  }
  switch (code) {
    case '\n':
    case '\r': return {Key::enter};
    case '\x1b': return {Key::escape};
    case '\b':
    case '\x7f': return {Key::erase};
    default: break;
  }
  std::string text(MB_CUR_MAX, '\0');
  const int size = std::wctomb(text.data(), static_cast<wchar_t>(code));
  text.resize(static_cast<std::size_t>(std::max(size, 0)));
  return {Key::text, text};
}

void Screen::fit() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
    ::resizeterm(size.ws_row, size.ws_col);
}

void Screen::leave() { ::endwin(); }

void Screen::come_back() {
  fit();
  ::clearok(stdscr, TRUE);
  ::wrefresh(stdscr);
}

}  // namespace dlock::tools
