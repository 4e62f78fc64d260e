# What the PostgreSQL dialect is built with.
find_package(PostgreSQL 14 QUIET)  # libpq has pipelines since then; servers may be older
dlock_dialect(FOUND ${PostgreSQL_FOUND} LIBRARIES PostgreSQL::PostgreSQL MISSING libpq-dev
  PACKAGE "find_dependency(PostgreSQL)" PKG_CONFIG libpq ALONE server.cpp standby.cpp)
