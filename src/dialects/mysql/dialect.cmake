# What the MySQL and MariaDB dialect is built with: MariaDB Connector/C, for its non-blocking calls.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(DLOCK_MARIADB QUIET IMPORTED_TARGET GLOBAL libmariadb>=3.3)
endif()
if(NOT DLOCK_MARIADB_FOUND)
  set(DLOCK_MARIADB_FOUND OFF)
endif()
dlock_dialect(FOUND ${DLOCK_MARIADB_FOUND} LIBRARIES PkgConfig::DLOCK_MARIADB MISSING libmariadb-dev
  PACKAGE "dlock_find_module(DLOCK_MARIADB libmariadb)" PKG_CONFIG libmariadb
  ALONE faults.cpp greeting.cpp caller_connection.cpp)
