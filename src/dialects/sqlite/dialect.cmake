# What the SQLite dialect is built with.
find_package(SQLite3 3.35 QUIET)
dlock_dialect(FOUND ${SQLite3_FOUND} LIBRARIES SQLite::SQLite3 MISSING libsqlite3-dev
  PACKAGE "find_dependency(SQLite3)" PKG_CONFIG sqlite3)
