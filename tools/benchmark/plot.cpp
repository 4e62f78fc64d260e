// What gnuplot is told.
#include "plot.hpp"

#include "tools/shared/usage.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace bench {
namespace {

// In gnuplot's single quotes, where only these stand for something else.
std::string quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') result += c;
    result += c == '\n' ? ' ' : c;
  }
  return result + "'";
}

bool in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  return false;
}

// Percentiles from the right: 90, 99 and 99.9 are equally far apart.
void write_curves(const Plot& plot, std::ostream& out) {
  for (std::size_t i = 0; i < plot.curves.size(); ++i) {
    out << fmt::format("$curve{} << EOD\n", i);
    for (const auto& [percent, us] : plot.curves[i].second.curve())
      out << fmt::format("{} {}\n", 100 / (100 - percent), us);
    out << "EOD\n";
  }
  out << "set logscale xy\nset xlabel 'percentile'\nset ylabel 'microseconds'\nset key left top\n"
         "set xtics ('0' 1, '50' 2, '90' 10, '99' 100, '99.9' 1000, '99.99' 10000, '99.999' 100000)\nplot ";
  for (std::size_t i = 0; i < plot.curves.size(); ++i)
    out << fmt::format("{}$curve{} using 1:2 with lines linewidth 2 title {}", i == 0 ? "" : ", ", i,
                       quoted(plot.curves[i].first));
  out << "\n";
}

void write_bars(const Plot& plot, std::ostream& out) {
  out << "$bars << EOD\n";
  for (const auto& [name, value] : plot.bars) out << fmt::format("\"{}\" {}\n", name, value);
  out << "EOD\nset style fill solid 0.6\nset boxwidth 0.6\nset yrange [0:*]\nset grid ytics\nset ylabel "
      << quoted(plot.unit)
      << "\nplot $bars using 0:2:xtic(1) with boxes notitle, '' using 0:2:(sprintf('%.0f', $2)) with labels offset "
         "0,0.7 notitle\n";
}

}  // namespace

void check_plotting(const std::string& file) {
  using dlock::tools::in_quotes;
  using dlock::tools::UsageError;
  if (!file.ends_with(".svg"))
    throw UsageError(fmt::format("--plot {} does not end with .svg, which is what is drawn", in_quotes(file)));
  if (!in_path("gnuplot"))
    throw UsageError(fmt::format("--plot {} needs gnuplot, which is not installed (gnuplot-nox)", in_quotes(file)));
  if (const std::ofstream probe(file, std::ios::app); !probe)
    throw UsageError(fmt::format("--plot {} cannot be written: {}", in_quotes(file), std::strerror(errno)));
}

void draw(const Plot& plot, const std::string& file) {
  std::ostringstream script;
  script << "set terminal svg size 720,440 font 'sans,12' background 'white' noenhanced\nset output " << quoted(file)
         << "\nset title " << quoted(plot.title) << "\n";
  if (plot.curves.empty()) write_bars(plot, script);
  else write_curves(plot, script);
  std::FILE* gnuplot = ::popen("gnuplot", "w");
  if (gnuplot == nullptr) throw std::runtime_error(fmt::format("gnuplot: {}", std::strerror(errno)));
  std::fputs(script.str().c_str(), gnuplot);
  if (::pclose(gnuplot) != 0)
    throw std::runtime_error(fmt::format("gnuplot could not draw {}", dlock::tools::in_quotes(file)));
}

}  // namespace bench
