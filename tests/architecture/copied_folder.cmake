# The proof that a database is a folder: src/dialects/<FOLDER>, with its migrations, its schema and the
# tests' opener, copied under another name, which their code is told by one sed, is a database of that name. Run as a script
# with ROOT (the source tree), FOLDER, PLACE (where to build), GENERATOR, COMPILER and BUILD_TYPE.

set(source ${PLACE}/source)
set(build ${source}/build/copied)

# Files keep their times, so that a second run builds nothing again.
foreach(part CMakeLists.txt cmake include migrations schema src tests)
  file(REMOVE_RECURSE ${source}/${part})
endforeach()
foreach(part CMakeLists.txt cmake include migrations schema src)
  file(COPY ${ROOT}/${part} DESTINATION ${source})
endforeach()
foreach(part CMakeLists.txt conformance.cmake expected support openers servers)
  file(COPY ${ROOT}/tests/${part} DESTINATION ${source}/tests)
endforeach()
foreach(folder src/dialects migrations tests/openers)
  file(COPY ${source}/${folder}/${FOLDER}/ DESTINATION ${source}/${folder}/copied)
endforeach()
# Its times stay those of the original, so that a second run builds nothing again.
file(GLOB texts ${source}/src/dialects/copied/*.?pp ${source}/tests/openers/copied/*.?pp)
foreach(text IN LISTS texts)
  execute_process(COMMAND sh -c
    "touch -r $1 $1.time && sed -i 's/\\b${FOLDER}\\b/copied/g' $1 && touch -r $1.time $1 && rm $1.time" sh ${text}
    COMMAND_ERROR_IS_FATAL ANY)
endforeach()
# A few promises show that every statement of the copy is found and works; all of them would say nothing more about it.
set(promises adopt at_least listeners combining deadlock fence fifo hand_over late_release migrations_states migrations_up
  names no_resurrection node_reentrance reaper takeover transaction_lock wakes)
file(REMOVE_RECURSE ${source}/tests/conformance)
foreach(promise IN LISTS promises)
  file(COPY ${ROOT}/tests/conformance/${promise}.cpp DESTINATION ${source}/tests/conformance)
endforeach()
file(MAKE_DIRECTORY ${PLACE}/renamed)
configure_file(${ROOT}/schema/${FOLDER}.sql ${PLACE}/renamed/copied.sql COPYONLY)
file(COPY ${PLACE}/renamed/copied.sql DESTINATION ${source}/schema)

# Only the copy is built: what worked because the original was there, too, would not work now.
set(databases "")
file(GLOB folders RELATIVE ${source}/src/dialects ${source}/src/dialects/*/dialect.cmake)
foreach(file IN LISTS folders)
  get_filename_component(name ${file} DIRECTORY)
  string(TOUPPER ${name} upper)
  if(name STREQUAL "copied")
    list(APPEND databases -D DLOCK_WITH_${upper}=ON)
  else()
    list(APPEND databases -D DLOCK_WITH_${upper}=OFF)
  endif()
endforeach()

# The compiler's cache knows the same sources in other places of the disk.
set(ENV{CCACHE_BASEDIR} ${source})
set(ENV{CCACHE_NOHASHDIR} 1)

function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(code)
    message("${out}")
    message(FATAL_ERROR "${what} the copied folder failed")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()

run(configuring ${CMAKE_COMMAND} -S ${source} -B ${build} -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${COMPILER}
  -D CMAKE_BUILD_TYPE=${BUILD_TYPE} -D DLOCK_PRECOMPILE_FOR=tests -D DLOCK_UNITE_FOR=all -D DLOCK_BUILD_TOOLS=OFF
  -D DLOCK_INSTALL=OFF ${databases})
run(building ${CMAKE_COMMAND} --build ${build} --parallel 2 --target dlock conformance)
run(testing ${CMAKE_CTEST_COMMAND} --test-dir ${build} --output-on-failure -j4 -R "^conformance\\.copied\\.")

# All of its tests ran, on it alone.
string(REGEX MATCH "100% tests passed, 0 tests failed out of ([0-9]+)" _ "${out}")
set(passed ${CMAKE_MATCH_1})
list(LENGTH promises expected)
if(passed LESS expected OR out MATCHES "Skipped|Not Run")
  message("${out}")
  message(FATAL_ERROR "not all promises were tested on the copied folder")
endif()
message(STATUS "${passed} promises kept by the copied folder")
