// How the words of a command line are taken out of the process title before anything else happens.
#pragma once

#include <string>
#include <vector>

namespace dlock::tools {

// A command line, cut at its first "--".
struct Arguments {
  std::string program;
  std::vector<std::string> words;    // before the first "--"
  std::vector<std::string> command;  // after it
  bool cut = false;                  // whether there was a "--"
};

// Copies the words, then overwrites every URL among those before "--" in argv itself, so that ps shows no password.
Arguments take_arguments(int argc, char** argv);

}  // namespace dlock::tools
