# This file knows what is needed to open MariaDB or MySQL for a test.
dlock_opener(KIND server FIXTURE mariadb CLUSTER galera LIBRARIES SOCI::mysql
  EACH combining draw_race fence fence_conflicts fence_rows fifo in_doubt inspect listeners locked_rows
    locked_tables migrations_guard migrations_up node_reentrance odd_defaults one_statement passwords reaper rights
    takeover waits)
