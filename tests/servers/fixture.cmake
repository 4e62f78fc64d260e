# Which private servers a ctest run starts: one a database, for the tests that require its fixture.
#
# A test finds the server's URL in its environment variable or, failing that, in DLOCK_TEST_SERVERS_RUN/<name>.env.
# Where neither is there (the server is not installed), the test's program ends with 77, which is a skip:
# support/database.cpp.

function(dlock_test_server name variable)
  foreach(step IN ITEMS start stop)
    add_test(NAME server.${name}.${step}
      COMMAND ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/fixture ${step} ${name} ${variable} ${DLOCK_TEST_SERVERS_RUN})
  endforeach()
  set_tests_properties(server.${name}.start PROPERTIES FIXTURES_SETUP ${name} SKIP_RETURN_CODE 77)
  set_tests_properties(server.${name}.stop PROPERTIES FIXTURES_CLEANUP ${name})
  set_tests_properties(server.${name}.start server.${name}.stop PROPERTIES TIMEOUT 600 LABELS server)
endfunction()

dlock_test_server(postgresql DLOCK_TEST_PG)
dlock_test_server(mariadb DLOCK_TEST_MYSQL)
dlock_test_server(galera DLOCK_TEST_GALERA)
