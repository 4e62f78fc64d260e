# What is needed to open SQLite for a test. It is a file in the caller's process: there is no server,
# so what a server promises (tests under conformance/server and fault/server) has no meaning, and what one file with one
# writer promises (conformance/file) is tested in its place.
dlock_opener(KIND file LIBRARIES SOCI::sqlite3)
