# How to find SOCI where it comes without a CMake package (Debian's 4.0.3 has none).
#
# Targets: SOCI::core, and SOCI::<component> for postgresql, mysql and sqlite3. A component that is not there is not
# found; SOCI itself is found when the core is. If the installed header does not compile by itself (it asks for Boost,
# which its package does not bring), a replacement of its configuration header goes before it.

find_package(SOCI CONFIG QUIET)
if(SOCI_FOUND AND TARGET SOCI::soci_core)
  add_library(SOCI::core ALIAS SOCI::soci_core)
  foreach(component postgresql mysql sqlite3)
    if(TARGET SOCI::soci_${component})
      add_library(SOCI::${component} ALIAS SOCI::soci_${component})
    endif()
  endforeach()
  return()
endif()

find_path(SOCI_INCLUDE_DIR soci/soci.h)
find_library(SOCI_CORE_LIBRARY soci_core)
mark_as_advanced(SOCI_INCLUDE_DIR SOCI_CORE_LIBRARY)

if(SOCI_INCLUDE_DIR)
  file(STRINGS ${SOCI_INCLUDE_DIR}/soci/version.h soci_line REGEX "^#define SOCI_LIB_VERSION ")
  string(REGEX REPLACE ".*\"([0-9_]+)\".*" "\\1" SOCI_VERSION "${soci_line}")
  string(REPLACE "_" "." SOCI_VERSION "${SOCI_VERSION}")
endif()

if(SOCI_INCLUDE_DIR AND SOCI_CORE_LIBRARY AND NOT TARGET SOCI::core)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_INCLUDES ${SOCI_INCLUDE_DIR})
  check_cxx_source_compiles("#include <soci/soci.h>\nint main() {}" DLOCK_SOCI_HEADER_COMPILES)
  unset(CMAKE_REQUIRED_INCLUDES)
  set(soci_includes ${SOCI_INCLUDE_DIR})
  if(NOT DLOCK_SOCI_HEADER_COMPILES)
    list(PREPEND soci_includes ${CMAKE_CURRENT_LIST_DIR}/soci-shim)
  endif()
  add_library(SOCI::core UNKNOWN IMPORTED)
  set_target_properties(SOCI::core PROPERTIES IMPORTED_LOCATION ${SOCI_CORE_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES "${soci_includes}")
  # The backends' headers include those of the client libraries.
  find_package(PostgreSQL QUIET)
  find_package(SQLite3 QUIET)
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_search_module(SOCI_MYSQL_CLIENT QUIET IMPORTED_TARGET libmariadb mysqlclient)
  endif()
  set(soci_client_postgresql PostgreSQL::PostgreSQL)
  set(soci_client_sqlite3 SQLite::SQLite3)
  set(soci_client_mysql PkgConfig::SOCI_MYSQL_CLIENT)
  foreach(component postgresql mysql sqlite3)
    find_library(SOCI_${component}_LIBRARY soci_${component})
    mark_as_advanced(SOCI_${component}_LIBRARY)
    if(SOCI_${component}_LIBRARY AND TARGET ${soci_client_${component}})
      add_library(SOCI::${component} UNKNOWN IMPORTED)
      set_target_properties(SOCI::${component} PROPERTIES IMPORTED_LOCATION ${SOCI_${component}_LIBRARY}
        INTERFACE_LINK_LIBRARIES "SOCI::core;${soci_client_${component}}")
      set(SOCI_${component}_FOUND TRUE)
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SOCI REQUIRED_VARS SOCI_CORE_LIBRARY SOCI_INCLUDE_DIR VERSION_VAR SOCI_VERSION
  HANDLE_COMPONENTS)
