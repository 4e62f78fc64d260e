# What is installed, and how the installed package finds what it needs. Everything in the installed tree
# is found relative to where it stands, so the tree may be moved.
#
# All headers are installed, also the adapters of databases that were not built: each includes its own vendor only.
include(CMakePackageConfigHelpers)

install(TARGETS dlock EXPORT dlockTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/dlock ${PROJECT_BINARY_DIR}/include/dlock
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")

# Beside share/doc/dlock/README.md, where its links to them point.
set(DLOCK_INSTALL_DOCDIR ${CMAKE_INSTALL_DATAROOTDIR}/doc/dlock)
install(FILES ${PROJECT_SOURCE_DIR}/CHANGELOG.md ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${DLOCK_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples ${PROJECT_SOURCE_DIR}/schema DESTINATION ${DLOCK_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${DLOCK_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.svg")
file(GLOB pages RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/*.md)
list(REMOVE_ITEM pages docs/files.md)  # that is about the sources
foreach(page IN ITEMS README.md LISTS pages)
  # Links to headers lead to the installed ones; what is not installed is named without a link.
  cmake_path(GET page PARENT_PATH folder)
  cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_INCLUDEDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE headers)
  cmake_path(ABSOLUTE_PATH DLOCK_INSTALL_DOCDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE place)
  file(RELATIVE_PATH headers ${place}/${folder} ${headers})
  file(READ ${PROJECT_SOURCE_DIR}/${page} text)
  string(REGEX REPLACE "\\]\\((\\.\\./)?include/" "](${headers}/" text "${text}")
  string(REGEX REPLACE "\\[([^]]*)\\]\\((\\.\\./)?(CONTRIBUTING|tests/README)\\.md\\)" "\\1" text "${text}")
  file(WRITE ${PROJECT_BINARY_DIR}/installed/${page} "${text}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${page})
  install(FILES ${PROJECT_BINARY_DIR}/installed/${page} DESTINATION ${DLOCK_INSTALL_DOCDIR}/${folder})
endforeach()

# For CMake. A static library passes its own needs on to whoever links it.
set(DLOCK_FIND_DEPENDENCIES "")
if(NOT BUILD_SHARED_LIBS)
  list(JOIN DLOCK_PACKAGE_LINES "\n" lines)
  set(DLOCK_FIND_DEPENDENCIES "find_dependency(Threads)\nfind_dependency(fmt)\n${lines}")
endif()
list(JOIN DLOCK_DIALECTS " " DLOCK_COMPONENTS)
set(DLOCK_INSTALL_CMAKEDIR ${CMAKE_INSTALL_LIBDIR}/cmake/dlock)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/dlockConfig.cmake.in
  ${PROJECT_BINARY_DIR}/dlockConfig.cmake INSTALL_DESTINATION ${DLOCK_INSTALL_CMAKEDIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/dlockConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/dlockConfig.cmake ${PROJECT_BINARY_DIR}/dlockConfigVersion.cmake
  DESTINATION ${DLOCK_INSTALL_CMAKEDIR})
install(EXPORT dlockTargets NAMESPACE dlock:: DESTINATION ${DLOCK_INSTALL_CMAKEDIR})

# For pkg-config: one file for both kinds of library. The client libraries are named as they are linked dynamically;
# asking for their modules instead would, with --static, ask for all that they themselves are made of.
find_package(PkgConfig REQUIRED)
set(DLOCK_PC_LIBS_PRIVATE "")
foreach(module IN LISTS DLOCK_PKG_CONFIG_MODULES)
  string(MAKE_C_IDENTIFIER "DLOCK_PC_${module}" prefix)
  pkg_check_modules(${prefix} QUIET ${module})
  if(NOT ${prefix}_FOUND)
    message(STATUS "dlock: dlock.pc cannot say how ${module} is linked: it has no file for pkg-config")
  endif()
  list(APPEND DLOCK_PC_LIBS_PRIVATE ${${prefix}_LDFLAGS})
endforeach()
foreach(folder IN LISTS CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)  # every linker looks there
  list(REMOVE_ITEM DLOCK_PC_LIBS_PRIVATE -L${folder} -L${folder}/)
endforeach()
list(APPEND DLOCK_PC_LIBS_PRIVATE -pthread)
list(REMOVE_DUPLICATES DLOCK_PC_LIBS_PRIVATE)
list(JOIN DLOCK_PC_LIBS_PRIVATE " " DLOCK_PC_LIBS_PRIVATE)
cmake_path(IS_ABSOLUTE CMAKE_INSTALL_LIBDIR libdir_is_absolute)
if(libdir_is_absolute)
  set(DLOCK_PC_UP "")
  set(DLOCK_PC_LIBDIR ${CMAKE_INSTALL_LIBDIR})
else()
  file(RELATIVE_PATH DLOCK_PC_UP /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(REGEX REPLACE "/$" "" DLOCK_PC_UP ${DLOCK_PC_UP})
  set(DLOCK_PC_LIBDIR "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
cmake_path(IS_ABSOLUTE CMAKE_INSTALL_INCLUDEDIR includedir_is_absolute)
if(libdir_is_absolute OR includedir_is_absolute)
  set(DLOCK_PC_INCLUDEDIR ${CMAKE_INSTALL_FULL_INCLUDEDIR})
else()
  set(DLOCK_PC_INCLUDEDIR "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/dlock.pc.in ${PROJECT_BINARY_DIR}/dlock.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/dlock.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
