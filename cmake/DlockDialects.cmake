# How a folder under src/dialects becomes a database this library speaks.
#
# A folder's dialect.cmake calls
#   dlock_dialect(FOUND <bool> LIBRARIES <targets…> MISSING <what to install>
#                 [PACKAGE <lines for the installed CMake package…>]
#                 [PKG_CONFIG <modules…>] [ALONE <sources that dlock_unite has to leave as they are…>])
# Its code lives in namespace dlock::dialects::<folder>, and its name is the folder's.

set(DLOCK_DIALECTS "")  # the folders that are built
set(DLOCK_PACKAGE_LINES "")
set(DLOCK_PKG_CONFIG_MODULES "")

function(dlock_dialect)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "FOUND;MISSING" "LIBRARIES;PACKAGE;PKG_CONFIG;ALONE")
  set(dlock_dialect_found ${arg_FOUND} PARENT_SCOPE)
  set(dlock_dialect_missing "${arg_MISSING}" PARENT_SCOPE)
  set(dlock_dialect_libraries ${arg_LIBRARIES} PARENT_SCOPE)
  set(dlock_dialect_package ${arg_PACKAGE} PARENT_SCOPE)
  set(dlock_dialect_pkg_config ${arg_PKG_CONFIG} PARENT_SCOPE)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_LIST_DIR})
  list(TRANSFORM arg_ALONE PREPEND ${folder}/)
  set(dlock_dialect_alone ${arg_ALONE} PARENT_SCOPE)
endfunction()

# Finds the folders, asks each for what it needs, and makes one object library a folder: dlock_dialect_<folder>.
macro(dlock_add_dialects)
  file(GLOB dlock_dialect_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/dialects/*/dialect.cmake)
  foreach(dlock_dialect_file IN LISTS dlock_dialect_files)
    get_filename_component(dlock_folder ${dlock_dialect_file} DIRECTORY)
    get_filename_component(dlock_name ${dlock_folder} NAME)
    string(TOUPPER ${dlock_name} dlock_upper)
    set(DLOCK_WITH_${dlock_upper} AUTO CACHE STRING "the ${dlock_name} dialect: ON, OFF, or AUTO where its library is found")
    set_property(CACHE DLOCK_WITH_${dlock_upper} PROPERTY STRINGS AUTO ON OFF)
    if(NOT DLOCK_WITH_${dlock_upper} STREQUAL "AUTO" AND NOT DLOCK_WITH_${dlock_upper})
      message(STATUS "dlock: without ${dlock_name}")
      continue()
    endif()
    include(${dlock_dialect_file})
    if(NOT dlock_dialect_found)
      if(DLOCK_WITH_${dlock_upper} STREQUAL "AUTO")
        message(STATUS "dlock: without ${dlock_name} (install ${dlock_dialect_missing} for it)")
        continue()
      endif()
      message(FATAL_ERROR "DLOCK_WITH_${dlock_upper} is ON, but ${dlock_name} cannot be built: install ${dlock_dialect_missing}")
    endif()
    dlock_add_dialect(${dlock_name})
    list(APPEND DLOCK_DIALECTS ${dlock_name})
    list(APPEND DLOCK_PACKAGE_LINES ${dlock_dialect_package})
    list(APPEND DLOCK_PKG_CONFIG_MODULES ${dlock_dialect_pkg_config})
  endforeach()
  if(NOT DLOCK_DIALECTS)
    message(FATAL_ERROR "no database is left: install libpq-dev, libmariadb-dev or libsqlite3-dev, or switch one of DLOCK_WITH_… on")
  endif()
  list(REMOVE_DUPLICATES DLOCK_PACKAGE_LINES)
  message(STATUS "dlock: with ${DLOCK_DIALECTS}")
  dlock_write_registry()
endmacro()

function(dlock_add_dialect name)
  set(folder ${PROJECT_SOURCE_DIR}/src/dialects/${name})
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  set(embedded ${CMAKE_CURRENT_BINARY_DIR}/embedded_${name}.cpp)
  file(GLOB_RECURSE texts CONFIGURE_DEPENDS ${folder}/*.sql ${PROJECT_SOURCE_DIR}/migrations/${name}/*.sql
    ${PROJECT_SOURCE_DIR}/migrations/${name}/*.structure
    ${PROJECT_SOURCE_DIR}/schema/${name}.sql)
  add_custom_command(OUTPUT ${embedded}
    COMMAND ${CMAKE_COMMAND} -D NAME=${name} -D ROOT=${PROJECT_SOURCE_DIR} -D OUT=${embedded}
      -P ${PROJECT_SOURCE_DIR}/cmake/EmbedDialect.cmake
    DEPENDS ${texts} ${PROJECT_SOURCE_DIR}/cmake/EmbedDialect.cmake VERBATIM)
  add_library(dlock_dialect_${name} OBJECT ${sources} ${embedded})
  target_link_libraries(dlock_dialect_${name} PUBLIC dlock_headers ${dlock_dialect_libraries} PRIVATE dlock_flags fmt::fmt)
  dlock_precompile(dlock_dialect_${name} <fmt/format.h>)
  dlock_unite(dlock_dialect_${name} ALONE ${dlock_dialect_alone})
endfunction()

function(dlock_write_registry)
  set(declarations "")
  set(entries "")
  foreach(name IN LISTS DLOCK_DIALECTS)
    string(APPEND declarations "namespace ${name} { const Dialect& dialect() noexcept; }\n")
    string(APPEND entries "    &${name}::dialect(),\n")
  endforeach()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/registry.cpp.in ${CMAKE_CURRENT_BINARY_DIR}/registry.cpp @ONLY)
endfunction()
