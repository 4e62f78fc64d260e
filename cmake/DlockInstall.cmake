# This file knows what is installed, and how the installed package finds what it needs.
include(CMakePackageConfigHelpers)

install(TARGETS dlock EXPORT dlockTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/dlock ${PROJECT_BINARY_DIR}/include/dlock
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")

# A static library passes its own needs on to whoever links it.
set(DLOCK_FIND_DEPENDENCIES "")
if(NOT BUILD_SHARED_LIBS)
  list(JOIN DLOCK_PACKAGE_LINES "\n" lines)
  set(DLOCK_FIND_DEPENDENCIES "find_dependency(Threads)\nfind_dependency(fmt)\n${lines}")
endif()
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/dlockConfig.cmake.in
  ${PROJECT_BINARY_DIR}/dlockConfig.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/dlock)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/dlockConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/dlockConfig.cmake ${PROJECT_BINARY_DIR}/dlockConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/dlock)
install(EXPORT dlockTargets NAMESPACE dlock:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/dlock)
