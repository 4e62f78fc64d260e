# What is needed to open PostgreSQL for a test.
dlock_opener(KIND server FIXTURE postgresql LIBRARIES SOCI::postgresql)
