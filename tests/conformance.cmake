# How the promises are tested on every database: one program, started once a promise and database.
#
# A database is a folder under openers/ named like its dialect. Its opener.cmake calls
#   dlock_opener(KIND file|server LIBRARIES <targets…> [FIXTURE <the servers' ctest fixture>] [CLUSTER <a cluster's>])
# and its code lives in namespace dlock::test::<folder>.
#
#   conformance/*.cpp         promises of every database      ctest conformance.<database>.<promise>
#   conformance/server/*.cpp  promises where there is a server
#   conformance/file/*.cpp    promises where the database is a file
#   conformance/cluster/*.cpp promises where several servers take writes
#   tools/*.cpp               promises of the commands        ctest tools.<database>.<promise>
#   fault/…                   the same for processes and servers that die     ctest fault.<database>.<promise>
#
# In the release form all of conformance/ but the migrations is asked once more with every request in a statement of its
# own, and every lock handed over by one: conformance.<database>.<promise>_uncombined.

# What these promise is a time, and nothing about safety: they have the label `timing`. In a crowd they may run as well:
# like all bounds theirs follow the machine (support/slowness.hpp).
set(dlock_timing
  bench
  far_away
  many_leases
  reap_traffic
  waits
  wakes)

# These hold the database's clock, by which a lease ends for others, against a steady one: not where the machine's clock
# is stepped meanwhile (tools/dev/stepped_clock).
set(dlock_steady_clock
  at_least
  busy_again
  command_single
  conversions_in_doubt
  draw_race
  election
  half_done
  history
  last_run
  leaders
  lease_renewer
  max_hold
  never_inflicted
  passing_on
  pause
  reap_permits
  repeated
  semaphore
  shared_fences
  shared_in_doubt
  shared_locks
  shared_mutex
  shared_silence
  shared_terms
  takeover
  tls
  transfers
  unfenced
  wanted_since)

# These load the machine with many threads or processes: they count for two of the tests that run at the same time.
set(dlock_wide
  bench
  exclusion
  lifetimes
  many_leases
  migrations_up
  one_voice
  reap_traffic
  transfers
  unfenced)

add_executable(dlock_worker support/worker.cpp)
target_include_directories(dlock_worker PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(dlock_worker PRIVATE dlock::dlock dlock_flags dlock_test_flags Threads::Threads)
set_target_properties(dlock_worker PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)

# It stands in for some of the system's own calls, as sanitizers do.
if(NOT DLOCK_SANITIZE)
  add_executable(dlock_hampered support/hampered.cpp)
  target_link_libraries(dlock_hampered PRIVATE dlock::dlock dlock_flags dlock_test_flags Threads::Threads
    ${CMAKE_DL_LIBS})
  set_target_properties(dlock_hampered PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests
    ENABLE_EXPORTS ON)
endif()

file(GLOB_RECURSE dlock_promises CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} conformance/*.cpp fault/*.cpp
  tools/*.cpp)
list(FILTER dlock_promises EXCLUDE REGEX "^(fault/suite|tools/command_line)/")
if(NOT DLOCK_BUILD_TOOLS)
  list(FILTER dlock_promises EXCLUDE REGEX "^tools/")
elseif(NOT TARGET dlock-bench)
  list(REMOVE_ITEM dlock_promises tools/bench.cpp)
endif()
if(DLOCK_SANITIZE MATCHES "thread" AND NOT DLOCK_TEST_ALL)
  list(FILTER dlock_promises EXCLUDE REGEX "^fault/|/migrations_")
endif()
if(DLOCK_MUTANTS)  # a planted fault is shown to what fails the same way every time
  list(FILTER dlock_promises EXCLUDE REGEX "^fault/(transfers|unfenced|never_inflicted)\\.cpp$")
else()
  list(REMOVE_ITEM dlock_promises fault/ungated.cpp)
endif()
if(DLOCK_SANITIZE)  # a sanitizer allocates in its own way, has its own threads, and mutexes that are not free in a child
  list(REMOVE_ITEM dlock_promises conformance/allocations.cpp conformance/file/memory.cpp conformance/forks.cpp
    conformance/scarcity.cpp conformance/server/broken_pipes.cpp conformance/server/name_service.cpp)
endif()
file(GLOB dlock_support CONFIGURE_DEPENDS support/*.cpp)
list(FILTER dlock_support EXCLUDE REGEX "/(main|paths|worker|hampered|always_later)\\.cpp$")

add_executable(conformance ${dlock_promises} ${dlock_support})
set_target_properties(conformance PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
target_link_libraries(conformance PRIVATE dlock_test_main dlock_test_paths dlock_internal dlock_flags dlock_test_flags
  dlock_test_soci nlohmann_json::nlohmann_json Threads::Threads)
dlock_precompile(conformance <doctest/doctest.h> <fmt/format.h>)
add_dependencies(conformance dlock_worker)

# Upgrades are tested with versions of the table that no dlock has (support/later_versions.hpp): the linker has that file
# asked which dialects there are.
target_link_options(conformance PRIVATE LINKER:--wrap=_ZN5dlock8dialects3allEv)
if(TARGET dlock-migrate)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/migrate/*.cpp)
  add_executable(dlock_migrate_later ${sources} support/later_versions.cpp support/always_later.cpp)
  target_include_directories(dlock_migrate_later PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(dlock_migrate_later PRIVATE dlock_tools_shared dlock_internal dlock_flags)
  target_link_options(dlock_migrate_later PRIVATE LINKER:--wrap=_ZN5dlock8dialects3allEv)
  set_target_properties(dlock_migrate_later PROPERTIES OUTPUT_NAME dlock-migrate
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/later)
  add_dependencies(conformance dlock_migrate_later)
endif()
if(TARGET dlock_hampered)
  add_dependencies(conformance dlock_hampered)
endif()
foreach(tool dlock-command dlock-migrate dlock-bench)
  if(TARGET ${tool})
    add_dependencies(conformance ${tool})
  endif()
endforeach()

if(dlock_promises MATCHES "(^|;)fault/(transfers|unfenced|never_inflicted|ungated)")
  include(fault/suite/suite.cmake)
  dlock_bank_client()
endif()
dlock_unite(conformance)

function(dlock_opener)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "KIND;FIXTURE;CLUSTER" "LIBRARIES")
  set(dlock_opener_kind ${arg_KIND} PARENT_SCOPE)
  set(dlock_opener_fixture "${arg_FIXTURE}" PARENT_SCOPE)
  set(dlock_opener_cluster "${arg_CLUSTER}" PARENT_SCOPE)
  set(dlock_opener_libraries ${arg_LIBRARIES} PARENT_SCOPE)
endfunction()

# Which promises are asked for in which form. The release form asks for all; sanitizers look at the code, and one database
# shows them what commands and migrations do, which have threads nowhere.
function(dlock_is_asked database promise result)
  set(asked TRUE)
  if(DLOCK_SANITIZE AND NOT DLOCK_TEST_ALL)
    if(promise MATCHES "^tools/|/migrations_")
      set(asked FALSE)
      if(database STREQUAL "sqlite" AND NOT DLOCK_SANITIZE MATCHES "thread")
        set(asked TRUE)
      endif()
    elseif(DLOCK_SANITIZE MATCHES "thread" AND (promise MATCHES "^fault/" OR database STREQUAL "mysql"))
      set(asked FALSE)
    endif()
  endif()
  set(${result} ${asked} PARENT_SCOPE)
endfunction()

# `ARGN`: a word for the name's end, and what else is in its environment.
function(dlock_add_promise database promise)
  dlock_is_asked(${database} ${promise} asked)
  if(NOT asked)
    return()
  endif()
  get_filename_component(word ${promise} NAME_WE)
  string(REGEX REPLACE "/.*" "" group ${promise})
  list(POP_FRONT ARGN manner)
  set(test ${group}.${database}.${word})
  if(manner)
    string(APPEND test _${manner})
  endif()
  add_test(NAME ${test} COMMAND conformance --source-file=*/tests/${promise})
  set(labels ${group} ${database})
  if(test MATCHES "^conformance\\.sqlite\\." AND NOT manner)
    list(APPEND labels quick)
  endif()
  set_tests_properties(${test} PROPERTIES
    ENVIRONMENT "DLOCK_TEST_DATABASE=${database};DLOCK_TEST_NAME=${test};DLOCK_TEST_TIMEOUT=900;${ARGN}"
    SKIP_RETURN_CODE 77 TIMEOUT 900 LABELS "${labels}")
  if(promise MATCHES "/cluster/")
    set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT DLOCK_TEST_CLUSTERED=1)
    set_property(TEST ${test} APPEND PROPERTY LABELS cluster)
    # One at a time: some hold a server of it back.
    set_tests_properties(${test} PROPERTIES FIXTURES_REQUIRED ${dlock_opener_cluster} RESOURCE_LOCK ${dlock_opener_cluster})
  elseif(dlock_opener_fixture)
    set_tests_properties(${test} PROPERTIES FIXTURES_REQUIRED ${dlock_opener_fixture})
  endif()
  if(word IN_LIST dlock_timing)
    set_property(TEST ${test} APPEND PROPERTY LABELS timing)
  endif()
  if(word IN_LIST dlock_steady_clock)
    set_property(TEST ${test} APPEND PROPERTY LABELS steady_clock)
  endif()
  if(word IN_LIST dlock_wide)
    set_tests_properties(${test} PROPERTIES PROCESSORS 2 COST 500)  # who needs two places begins while there are some
  endif()
endfunction()

foreach(database IN LISTS DLOCK_DIALECTS)
  set(folder ${CMAKE_CURRENT_SOURCE_DIR}/openers/${database})
  if(NOT EXISTS ${folder}/opener.cmake)
    message(FATAL_ERROR "${database} has no tests: ${folder}/opener.cmake is missing")
  endif()
  include(${folder}/opener.cmake)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/application\\.cpp$")
  add_library(dlock_opener_${database} OBJECT ${sources})
  target_include_directories(dlock_opener_${database} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${folder})
  target_link_libraries(dlock_opener_${database} PRIVATE dlock_headers dlock_flags dlock_test_flags dlock_test_soci
    ${dlock_opener_libraries})
  target_link_libraries(conformance PRIVATE dlock_opener_${database} ${dlock_opener_libraries})
  if(TARGET dlock_bank_client)
    dlock_teller_of(${database} LIBRARIES ${dlock_opener_libraries})
  endif()
  foreach(promise IN LISTS dlock_promises)
    if(promise MATCHES "/cluster/")
      if(dlock_opener_cluster)
        dlock_add_promise(${database} ${promise})
      endif()
    elseif(NOT promise MATCHES "/(server|file)/" OR promise MATCHES "/${dlock_opener_kind}/")
      dlock_add_promise(${database} ${promise})
      if(promise MATCHES "^conformance/" AND NOT promise MATCHES "/migrations_" AND NOT DLOCK_SANITIZE)
        dlock_add_promise(${database} ${promise} uncombined DLOCK_TEST_COMBINE=1 DLOCK_TEST_LOCAL=0)
      endif()
    endif()
  endforeach()
endforeach()
