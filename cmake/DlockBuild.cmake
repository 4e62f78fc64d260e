# This file knows how every target of this project is compiled.

# ccache where it is there: the same sources are built in several forms.
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(DLOCK_CCACHE ccache)
  if(DLOCK_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${DLOCK_CCACHE})
  endif()
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
endif()

# What a shared library shows is what its sources mark for export and cmake/exports.map lets through: the standard
# library marks its templates as visible, so hidden visibility alone would let their instances out.
function(dlock_export_marked_only target)
  set(map ${PROJECT_SOURCE_DIR}/cmake/exports.map)
  target_link_options(${target} PRIVATE -Wl,--version-script=${map})
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${map})
endfunction()
