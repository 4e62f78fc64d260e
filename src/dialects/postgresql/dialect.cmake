# This file knows what the PostgreSQL dialect is built with.
find_package(PostgreSQL 12 QUIET)
dlock_dialect(FOUND ${PostgreSQL_FOUND} LIBRARIES PostgreSQL::PostgreSQL MISSING libpq-dev SCHEMES postgres
  PACKAGE "find_dependency(PostgreSQL)" PKG_CONFIG libpq)
