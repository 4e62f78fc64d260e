# shellcheck shell=bash
# What the scripts of this folder share. They are started by ctest with ROOT (the source tree), WORK (a
# folder of the build tree), GENERATOR, CXX, LAUNCHER (before the compiler, may be empty), BUILD_TYPE (may be empty),
# DATABASES (those built), EXAMPLES (of the docs) and PROGRAMS (of examples/; those that are run), with blanks between.

# What a careful user asks of the compiler.
# shellcheck disable=SC2034  # for those who source this
warnings=(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror)

# quietly COMMAND…: its output is shown only if it fails.
quietly() {
  local output
  output=$("$@" 2>&1 </dev/null) || {
    local status=$?
    printf '%s\n%s: exit %s\n' "$output" "$*" "$status" >&2
    exit 1
  }
}

fail() {
  echo "$*" >&2
  exit 1
}
