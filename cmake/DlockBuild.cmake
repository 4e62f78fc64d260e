# This file knows how every target of this project is compiled.

# ccache where it is there: the same sources are built in several forms.
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(DLOCK_CCACHE ccache)
  if(DLOCK_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${DLOCK_CCACHE})
  endif()
endif()

# Whose standard headers are parsed once a target: `all` targets' that ask for it, the `tests`' alone, or `none`'s.
# Where it is not the library's, every file of it is compiled by itself: a missing #include shows, and the compiler's
# cache knows the object in other build trees. Who is taken into another build brings nothing unusual into it.
set(dlock_precompile all)
if(NOT PROJECT_IS_TOP_LEVEL)
  set(dlock_precompile none)
endif()
set(DLOCK_PRECOMPILE_FOR ${dlock_precompile} CACHE STRING "all, tests or none")
mark_as_advanced(DLOCK_PRECOMPILE_FOR)
if(NOT DLOCK_PRECOMPILE_FOR MATCHES "^(all|tests|none)$")
  message(FATAL_ERROR "DLOCK_PRECOMPILE_FOR must be all, tests or none, not \"${DLOCK_PRECOMPILE_FOR}\"")
endif()

# dlock_precompile(<target> [<further headers>…]): what nearly all of its files include is parsed once.
function(dlock_precompile target)
  if(DLOCK_PRECOMPILE_FOR STREQUAL "all" OR DLOCK_PRECOMPILE_FOR STREQUAL "tests" AND
      CMAKE_CURRENT_SOURCE_DIR MATCHES "^${PROJECT_SOURCE_DIR}/tests")
    target_precompile_headers(${target} PRIVATE <algorithm> <array> <atomic> <chrono> <condition_variable> <cstdint>
      <functional> <map> <memory> <mutex> <optional> <span> <stop_token> <string> <string_view> <thread> <vector> ${ARGN})
  endif()
endfunction()

# Programs that test are built in less time than they would save: without optimization in every form, and without
# UBSan, whose checks would be most of their code; what they test has them. To be linked after dlock_flags.
add_library(dlock_test_flags INTERFACE)
# Tests call for what is thrown, and leave the answer: what must not be left is shown by architecture.discards.
target_compile_options(dlock_test_flags INTERFACE -O0 -Wno-unused-result)
if(DLOCK_SANITIZE MATCHES "undefined")
  target_compile_options(dlock_test_flags INTERFACE -fno-sanitize=undefined)
endif()

add_library(dlock_flags INTERFACE)
if(PROJECT_IS_TOP_LEVEL)
  target_compile_options(dlock_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wold-style-cast
    -Wnon-virtual-dtor -Woverloaded-virtual)
  if(DLOCK_WERROR)
    target_compile_options(dlock_flags INTERFACE -Werror)
  endif()
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False alarms in std::string's operator+ (GCC bug 105651), also under a host's -Wall.
  target_compile_options(dlock_flags INTERFACE -Wno-restrict)
endif()
if(DLOCK_SANITIZE)
  target_compile_options(dlock_flags INTERFACE -fsanitize=${DLOCK_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  if(DLOCK_SANITIZE MATCHES "undefined")  # SOCI, which tests and the demo use, hides the type information that vptr needs
    target_compile_options(dlock_flags INTERFACE -fno-sanitize=vptr)
  endif()
  target_link_options(dlock_flags INTERFACE -fsanitize=${DLOCK_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # its manual warns of false alarms; GCC 12 finds some in its own headers
    target_compile_options(dlock_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()

# What a shared library shows is what its sources mark for export and cmake/exports.map lets through: the standard
# library marks its templates as visible, so hidden visibility alone would let their instances out.
function(dlock_export_marked_only target)
  set(map ${PROJECT_SOURCE_DIR}/cmake/exports.map)
  target_link_options(${target} PRIVATE -Wl,--version-script=${map})
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${map})
endfunction()
