# What is needed to open MariaDB or MySQL for a test.
dlock_opener(KIND server FIXTURE mariadb CLUSTER galera LIBRARIES SOCI::mysql)
