# How the clients of the fault suite are built: a program that uses the library as an application does,
# with a session of its own for each database (openers/<database>/application.cpp).
#
#   dlock_bank_client()                          before the databases
#   dlock_teller_of(database LIBRARIES …)   for each

function(dlock_bank_client)
  set(suite ${CMAKE_CURRENT_SOURCE_DIR}/fault/suite)
  add_executable(dlock_bank_client ${suite}/client.cpp ${suite}/engines.cpp ${suite}/neighbours.cpp
    ${suite}/watch.cpp ${suite}/application.cpp ${suite}/history.cpp)
  set_target_properties(dlock_bank_client PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_include_directories(dlock_bank_client PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(dlock_bank_client PRIVATE dlock_internal dlock_flags dlock_test_flags dlock_test_soci Threads::Threads)
  target_sources(conformance PRIVATE ${suite}/bank.cpp ${suite}/campaign.cpp ${suite}/checker.cpp ${suite}/history.cpp
    ${suite}/kept_run.cpp ${suite}/nodes.cpp ${suite}/nemesis.cpp ${suite}/clients.cpp)
  add_dependencies(conformance dlock_bank_client)
  add_executable(dlock_judge ${suite}/judge.cpp ${suite}/kept_run.cpp ${suite}/checker.cpp ${suite}/history.cpp)
  set_target_properties(dlock_judge PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_include_directories(dlock_judge PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(dlock_judge PRIVATE dlock_flags dlock_test_flags)
endfunction()

function(dlock_teller_of database)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBRARIES")
  add_library(dlock_application_${database} OBJECT ${CMAKE_CURRENT_SOURCE_DIR}/openers/${database}/application.cpp)
  target_include_directories(dlock_application_${database} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(dlock_application_${database} PRIVATE dlock_headers dlock_flags dlock_test_flags dlock_test_soci
    ${arg_LIBRARIES})
  target_link_libraries(dlock_bank_client PRIVATE dlock_application_${database} ${arg_LIBRARIES})
endfunction()
