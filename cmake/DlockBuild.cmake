# How every target of this project is compiled.

# ccache where it is there: the same sources are built in several forms.
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(DLOCK_CCACHE ccache)
  if(DLOCK_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${DLOCK_CCACHE})
  endif()
endif()

# Whose standard headers are parsed once a target: `all` targets' that ask for it, the `tests`' alone, or `none`'s.
# Where it is not the library's, the compiler's cache knows its objects in other build trees. Who is taken into another
# build brings nothing unusual into it.
set(dlock_precompile all)
if(NOT PROJECT_IS_TOP_LEVEL)
  set(dlock_precompile none)
endif()
set(DLOCK_PRECOMPILE_FOR ${dlock_precompile} CACHE STRING "all, tests or none")
mark_as_advanced(DLOCK_PRECOMPILE_FOR)
if(NOT DLOCK_PRECOMPILE_FOR MATCHES "^(all|tests|none)$")
  message(FATAL_ERROR "DLOCK_PRECOMPILE_FOR must be all, tests or none, not \"${DLOCK_PRECOMPILE_FOR}\"")
endif()

# Whose files are compiled a dozen at a time, which takes less than half the time: `all` targets' that ask for it, the
# `tests`' alone, or `none`'s. A missing #include shows where every file of the library is compiled by itself: in dev, and
# for the mutants of the nightly form; of some of what has changed architecture.tidy shows it as well.
set(DLOCK_UNITE_FOR all CACHE STRING "all, tests or none")
mark_as_advanced(DLOCK_UNITE_FOR)
if(NOT DLOCK_UNITE_FOR MATCHES "^(all|tests|none)$")
  message(FATAL_ERROR "DLOCK_UNITE_FOR must be all, tests or none, not \"${DLOCK_UNITE_FOR}\"")
endif()

# Whether what is `for` all, tests or none is for the calling folder.
function(dlock_is_for for result)
  set(${result} FALSE PARENT_SCOPE)
  string(FIND "${CMAKE_CURRENT_SOURCE_DIR}/" "${PROJECT_SOURCE_DIR}/tests/" tests_at)
  if(for STREQUAL "all" OR (for STREQUAL "tests" AND tests_at EQUAL 0))
    set(${result} TRUE PARENT_SCOPE)
  endif()
endfunction()

# dlock_precompile(<target> [<further headers>…]): what nearly all of its files include is parsed once. Only the system's
# headers: what is precompiled knows a header with #pragma once by the time of its file too, and the compiler's cache
# hands it to another clone, where that of a header of this tree is another.
function(dlock_precompile target)
  if("${ARGN}" MATCHES "<(dlock/[^>]*)>")
    message(FATAL_ERROR "dlock_precompile takes headers of the system, not <${CMAKE_MATCH_1}> of this tree")
  endif()
  dlock_is_for("${DLOCK_PRECOMPILE_FOR}" wanted)
  if(wanted)
    target_precompile_headers(${target} PRIVATE <algorithm> <array> <atomic> <chrono> <condition_variable> <cstdint>
      <functional> <map> <memory> <mutex> <optional> <span> <stop_token> <string> <string_view> <thread> <vector> ${ARGN})
  endif()
endfunction()

# dlock_unite(<target> [APART <sources…>] [ALONE <sources…>]): to be called where it has all its sources. About a dozen at a
# time become one file. What is in an anonymous namespace of the library must have a name of its own there: a source where
# it has not is one of those APART, which become a file by themselves, or stands ALONE.
#
# Which go together follows from their names alone, so that a further one changes one file; those of one folder of tests/
# stay among themselves. CMake's own UNITY_BUILD would write the place of this tree into every file, and the compiler's
# cache would know none of them in another clone.
function(dlock_unite target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "APART;ALONE")
  get_target_property(sources ${target} SOURCES)
  set_target_properties(${target} PROPERTIES
    DLOCK_SOURCES "${sources}" DLOCK_APART "${arg_APART}" DLOCK_ALONE "${arg_ALONE}")
  dlock_is_for("${DLOCK_UNITE_FOR}" wanted)
  if(NOT wanted)
    return()
  endif()
  set(rest "")
  set(groups "")
  foreach(source IN LISTS sources)
    get_filename_component(path "${source}" ABSOLUTE)
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} "${path}")
    file(RELATIVE_PATH made ${PROJECT_BINARY_DIR} "${path}")
    if(name IN_LIST arg_ALONE OR NOT source MATCHES "^[^$].*\\.cpp$" OR name MATCHES "^\\.\\./" OR NOT made MATCHES "^\\.\\./")
      list(APPEND rest "${source}")
      continue()
    endif()
    set(group all)
    if(name IN_LIST arg_APART)
      set(group apart)
    elseif(name MATCHES "^tests/([^/]+)/")
      set(group ${CMAKE_MATCH_1})
    endif()
    list(APPEND groups ${group})
    list(APPEND names_${group} ${name})
  endforeach()
  list(REMOVE_DUPLICATES groups)
  foreach(group IN LISTS groups)
    dlock_unite_group(made ${CMAKE_CURRENT_BINARY_DIR}/united/${target}_${group} ${names_${group}})
    list(APPEND rest ${made})
  endforeach()
  set_target_properties(${target} PROPERTIES SOURCES "${rest}" UNITY_BUILD OFF)
endfunction()

# dlock_groups(<prefix> <names…>): the names in a number of groups that a further name rarely changes: <prefix>_0 to
# <prefix>_<prefix>_LAST, of which some may be empty.
function(dlock_groups prefix)
  list(LENGTH ARGN count)
  set(groups 1)
  while(count GREATER_EQUAL 20)
    math(EXPR count "${count} / 2")
    math(EXPR groups "${groups} * 2")
  endwhile()
  set(names ${ARGN})
  list(SORT names)
  foreach(name IN LISTS names)
    string(MD5 hash ${name})
    string(SUBSTRING ${hash} 0 4 hash)
    math(EXPR group "0x${hash} % ${groups}")
    list(APPEND names_${group} ${name})
  endforeach()
  math(EXPR last "${groups} - 1")
  foreach(group RANGE ${last})
    set(${prefix}_${group} "${names_${group}}" PARENT_SCOPE)
  endforeach()
  set(${prefix}_LAST ${last} PARENT_SCOPE)
endfunction()

# dlock_unite_group(<result> <prefix> <names…>): into a file a group.
function(dlock_unite_group result prefix)
  dlock_groups(group ${ARGN})
  set(made "")
  foreach(file RANGE ${group_LAST})
    if(group_${file})
      dlock_unite_into(${prefix}_${file}.cpp ${group_${file}})
      list(APPEND made ${prefix}_${file}.cpp)
    endif()
  endforeach()
  set(${result} ${made} PARENT_SCOPE)
endfunction()

# A source that defines nothing for others, as that of a test, is put into a namespace of its own: its anonymous namespace
# and its using-directives end with it. All headers come before, so that those it asks for are there already.
function(dlock_unite_into united)
  set(headers "")
  set(bodies "")
  set(count 0)
  foreach(name IN LISTS ARGN)
    set(path ${PROJECT_SOURCE_DIR}/${name})
    file(STRINGS ${path} for_others REGEX "^(namespace [a-zA-Z]|extern |template ?<>|int main)")
    if(for_others)
      string(APPEND bodies "#include \"${name}\"\n")
      continue()
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    get_filename_component(folder ${path} DIRECTORY)
    file(STRINGS ${path} includes REGEX "^#include")
    foreach(include IN LISTS includes)
      string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" beside "${include}")
      if(EXISTS ${folder}/${beside})
        file(RELATIVE_PATH header ${PROJECT_SOURCE_DIR} ${folder}/${beside})
        set(include "#include \"${header}\"")
      endif()
      list(APPEND headers "${include}")
    endforeach()
    math(EXPR count "${count} + 1")
    string(APPEND bodies "namespace united_${count} {\n#include \"${name}\"\n}\n")
  endforeach()
  list(REMOVE_DUPLICATES headers)
  list(JOIN headers "\n" headers)
  file(CONFIGURE OUTPUT ${united} CONTENT "${headers}\n${bodies}" @ONLY)
  # GCC takes the sources for headers.
  set_property(SOURCE ${united} PROPERTY COMPILE_OPTIONS -iquote ${PROJECT_SOURCE_DIR}
    $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# Programs that test are built in less time than they would save: without optimization in every form, and without
# UBSan, whose checks would be most of their code; what they test has them. To be linked after dlock_flags.
add_library(dlock_test_flags INTERFACE)
# Tests call for what is thrown, and leave the answer: what must not be left is shown by architecture.discards.
target_compile_options(dlock_test_flags INTERFACE -O0 -Wno-unused-result)
if(DLOCK_SANITIZE MATCHES "undefined")
  target_compile_options(dlock_test_flags INTERFACE -fno-sanitize=undefined)
endif()
if(DLOCK_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # a call in place of each check: a fifth of the time
  target_compile_options(dlock_test_flags INTERFACE --param=asan-instrumentation-with-call-threshold=0)
endif()
if(DLOCK_SANITIZE MATCHES "thread")  # which knows no fences, and GCC says so: Asio does without them
  target_compile_definitions(dlock_test_flags INTERFACE ASIO_DISABLE_FENCED_BLOCK)
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
